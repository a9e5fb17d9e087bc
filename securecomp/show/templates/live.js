"use strict";
(() => {
  const login = document.getElementById("login");
  const token = location.hash.slice(1);
  if (token) history.replaceState(null, "", location.pathname);
  if (login) {
    // A link to this page may carry the token after its #, which no server sees.
    if (token) {
      login.elements.token.value = token;
      login.requestSubmit();
    }
    return;
  }
  const button = document.getElementById("pause"), fresh = document.getElementById("fresh");
  const seconds = Number(document.body.dataset.look);
  let paused = false;

  function replace(part, other) {
    // Whoever reads or types in a part keeps it as it is.
    if (!other || part.innerHTML === other.innerHTML || part.contains(document.activeElement)) return;
    part.replaceChildren(...other.childNodes);
  }

  async function look() {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (page.getElementById("login")) return location.reload();
      for (const part of document.querySelectorAll("[data-live]")) replace(part, page.getElementById(part.id));
      fresh.textContent = `Looked at ${new Date().toLocaleTimeString()}; again every ${seconds} seconds.`;
    } catch {
      fresh.textContent = "The program does not answer; it may have ended. This page is as it was last.";
    }
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Go on" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    if (paused) fresh.textContent = "Paused.";
    else look();
  });
  setInterval(look, 1000 * seconds);
  fresh.textContent = `Looks every ${seconds} seconds.`;
})();
