"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 300, LEFT = 16, RIGHT = 16, TOP = 16, BOTTOM = 40, POINTS = 240;
  const byId = (id) => document.getElementById(id);
  const sliders = { epsilon: byId("epsilon"), answers: byId("answers") };
  const values = {
    epsilon: JSON.parse(sliders.epsilon.dataset.values),
    answers: JSON.parse(sliders.answers.dataset.values),
  };
  const drawing = byId("curves");
  const count = Number(drawing.dataset.count);
  let width = 640; // as wide as its place, so that text keeps its size on a phone

  // How likely the sum of n Laplace variables is a positive gamma variable of shape k + 1.
  function weights(n) {
    const found = [0.5 ** n];
    for (let j = 1; j < n; j++) found.push((found[j - 1] * (n - 1 + j)) / (2 * j));
    return found.reverse();
  }

  function accuracy(epsilon, n) {
    const middle = (n * epsilon) / 2;
    let term = Math.exp(-middle), reached = term, wrong = 0;
    weights(n).forEach((weight, k) => {
      wrong += weight * reached;
      term *= middle / (k + 1);
      reached += term;
    });
    return 1 - wrong;
  }

  function typical(epsilon, n) {
    return (2 * weights(n).reduce((sum, weight, k) => sum + weight * (k + 1), 0)) / (n * epsilon);
  }

  function densities(epsilon, n) {
    const ways = weights(n);
    return (distance) => {
      const reach = Math.abs(distance) * n * epsilon;
      let term = Math.exp(-reach), sum = 0;
      ways.forEach((weight, k) => {
        sum += weight * term;
        term *= reach / (k + 1);
      });
      return n * epsilon * sum;
    };
  }

  const percent = (share) => {
    const text = (100 * share).toFixed(1);
    return text === "100.0" ? "> 99.9 %" : `${text} %`;
  };
  const size = (error) => error.toFixed(error >= 10 ? 0 : error >= 0.1 ? 2 : 3);
  const plain = (number) => String(Number(number.toPrecision(6)));

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    drawing.append(made);
  }

  function step(span) {
    const power = 10 ** Math.floor(Math.log10(span / 5));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= width / 60);
  }

  function draw(epsilon, n, error) {
    width = drawing.clientWidth || width;
    const density = densities(epsilon, n);
    const middle = count - 0.5, half = Math.max(1, 0.5 + 4 * error);
    const most = density(0);
    const across = (x) => LEFT + ((x - middle + half) / (2 * half)) * (width - LEFT - RIGHT);
    const up = (y) => HEIGHT - BOTTOM - (y / most) * (HEIGHT - TOP - BOTTOM);
    // The places of the peaks are among the points, so that none is cut off.
    const places = [count - 1, middle, count];
    for (let i = 0; i <= POINTS; i++) places.push(middle - half + (2 * half * i) / POINTS);
    places.sort((a, b) => a - b);
    const line = (height) =>
      "M" + places.map((x) => `${across(x).toFixed(2)} ${up(height(x)).toFixed(2)}`).join("L");
    const inside = (x) => density(x - count), outside = (x) => density(x - count + 1);
    drawing.replaceChildren();
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const floor = HEIGHT - BOTTOM;
    const both = line((x) => Math.min(inside(x), outside(x)));
    element("path", { class: "both", d: `${both}L${width - RIGHT} ${floor}L${LEFT} ${floor}Z` });
    element("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: floor, y2: floor });
    element("line", { class: "between", x1: across(middle), x2: across(middle), y1: TOP, y2: floor });
    element("path", { class: "without", d: line(outside) });
    element("path", { class: "with", d: line(inside) });
    const apart = step(2 * half);
    for (let x = Math.ceil((middle - half) / apart) * apart; x <= middle + half; x += apart) {
      element("line", { class: "axis", x1: across(x), x2: across(x), y1: floor, y2: floor + 5 });
      const anchor = across(x) < 40 ? "start" : across(x) > width - 40 ? "end" : "middle";
      element("text", { x: across(x), y: floor + 22, "text-anchor": anchor }, plain(x));
    }
  }

  function show() {
    const epsilon = values.epsilon[sliders.epsilon.value], n = values.answers[sliders.answers.value];
    const right = accuracy(epsilon, n), error = typical(epsilon, n), total = epsilon * n;
    const texts = {
      "epsilon-value": plain(epsilon),
      "answers-value": String(n),
      accuracy: percent(right),
      cap: percent(1 / (1 + Math.exp(-total))),
      error: size(error),
      total: plain(total),
    };
    for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
    sliders.epsilon.setAttribute("aria-valuetext", `epsilon ${texts["epsilon-value"]}`);
    sliders.answers.setAttribute("aria-valuetext", `${n} ${n === 1 ? "answer" : "answers"}`);
    const words =
      `With ${n === 1 ? "one answer" : `${n} answers`} at epsilon ${texts["epsilon-value"]}, ` +
      `a guess whether you are in is right ${texts.accuracy} of the time, and the count is ` +
      `typically off by ${texts.error}.`;
    byId("words").textContent = words;
    drawing.setAttribute("aria-label", `Two curves, one step apart. ${words}`);
    draw(epsilon, n, error);
  }

  // dial.html#epsilon=0.1&answers=10 opens the page at these positions.
  function follow() {
    for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
      const place = values[name]?.indexOf(Number(text)) ?? -1;
      if (place >= 0) sliders[name].value = place;
    }
    show();
  }

  sliders.epsilon.addEventListener("input", show);
  sliders.answers.addEventListener("input", show);
  addEventListener("hashchange", follow);
  addEventListener("resize", show);
  follow();
})();
