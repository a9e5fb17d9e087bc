"""The relay's page and a site's own: who may see them, what they show, and how they look."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import httpx2
import pytest
from chromium import running
from consortium import SITES, Consortium, rows
from starlette.applications import Starlette
from test_over_a_network import ONE

from securecomp.cli.report_page import page as results_page
from securecomp.errors import ParameterError
from securecomp.net.pages import page_guard, relay_page
from securecomp.net.pages.site_page import SitePage
from securecomp.net.parties import Parties
from securecomp.net.questions import consent_files, study_questions
from securecomp.net.relay_store import RelayStore
from securecomp.statistics import Study

TOKEN = "a token that nobody guesses"  # noqa: S105
TAB = 9


@pytest.fixture(autouse=True)
def looking_often(monkeypatch):
    monkeypatch.setattr(page_guard, "LOOK", 0.3)


@pytest.fixture
def consortium(tmp_path):
    made = Consortium(tmp_path, ONE)
    made.start_relay(page_token=TOKEN)
    yield made
    made.stop_relay()


@pytest.fixture
def browser():
    """A person's browser, as far as pages without scripts go."""
    with httpx2.Client(follow_redirects=True) as client:
        yield client


@pytest.fixture
def site(tmp_path):
    made = SitePage(
        "north",
        "Length <of> stay",
        tmp_path / "north.state",
        lambda found: results_page([result for _, result in found]),
    )
    yield made
    made.close()


def signed_in(client, address, token=TOKEN):
    answer = client.post(f"{address}/login", data={"token": token})
    assert answer.status_code == 200, answer.text
    return answer.text


def plain(site):
    """The page's address without the token."""
    return site.address.partition("#")[0]


def token(site):
    return site.address.partition("#")[2]


def text(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_there_is_no_page_without_a_token(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        assert httpx2.get(f"{consortium.url}/page").status_code == 404


def test_the_token_opens_the_relay_s_page_and_nothing_else_does(consortium, browser):
    address = f"{consortium.url}/page"
    assert "Token" in browser.get(address).text
    for wrong in ("", TOKEN[:-1], "é" * 30):
        answer = browser.post(f"{address}/login", data={"token": wrong})
        assert answer.status_code == 401
        assert "This is not the token." in answer.text
    assert "parties" not in browser.get(address).text
    browser.cookies.set("securecomp_page", "guessed")
    assert "parties" not in browser.get(address).text
    browser.cookies.clear()
    answer = browser.post(f"{address}/login", data={"token": TOKEN}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/page"))
    assert "0 of 6 parties are here" in browser.get(address).text


def test_every_answer_loads_nothing_from_elsewhere_and_stays_in_no_cache(consortium, browser):
    address = f"{consortium.url}/page"
    signed_in(browser, address)
    for path in ("", "/style.css", "/live.js"):
        headers = browser.get(f"{address}{path}").headers
        assert headers["content-security-policy"] == page_guard.STRICT, path
        assert headers["cache-control"] == "no-store", path
        assert headers["x-content-type-options"] == "nosniff", path


def test_another_site_s_form_is_not_taken(site, browser):
    address = plain(site)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = browser.post(f"{address}/login", data={"token": token(site)}, headers=headers)
        assert answer.status_code == 403
    signed_in(browser, address, token(site))
    answer = browser.post(
        f"{address}/consent",
        data={"number": "1", "answer": "allow"},
        headers={"Origin": "https://evil.example"},
    )
    assert answer.status_code == 403


def test_a_site_s_page_has_its_own_name_alone(site, browser):
    for path in ("", "/login", "/style.css", "/results"):
        method = "POST" if path == "/login" else "GET"
        answer = browser.request(method, plain(site) + path, headers={"Host": "evil.example"})
        assert (answer.status_code, answer.text) == (421, "this page has another address\n")


def test_the_relay_s_page_says_who_is_late(consortium, browser):
    north = consortium.member("north")
    north.office.put([("south", "1/first step", bytes(5000))])
    north.close()
    page = signed_in(browser, f"{consortium.url}/page")
    shown = text(page)
    assert "1 of 6 parties are here; others wait for south" in shown
    assert "north site here just now 0 0 bytes" in shown
    assert "south site late never 1 5.0 kB" in shown
    assert "1 first step north just now 1 5.0 kB" in shown


def test_parties_are_away_after_a_minute_and_names_are_escaped(tmp_path):
    study = Parties(bytes(32), {"<b>n": b"k", "south": b"k"}, {}, {})
    store = RelayStore(tmp_path / "relay.db")
    news = relay_page.RelayNews(seen={(study.id, "<b>n"): 1000.0})
    news.sent(study.id, "<i>1", "<b>n", "<u>step")
    page = relay_page.RelayPage([study], store, news, TOKEN, lambda: 1061.0)
    app = Starlette(routes=page.routes())

    async def looked():
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://relay", follow_redirects=True
        ) as client:
            return (await client.post("/page/login", data={"token": TOKEN})).text

    shown = asyncio.run(looked())
    store.close()
    assert "0 of 2 parties are here" in shown
    assert "&lt;b&gt;n</th>" in shown
    assert "&lt;u&gt;step" in shown
    assert 'away</span></td><td class="text">1 minute ago' in shown
    assert not re.search("<[biu]>", shown)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (59, "50 seconds ago"), (60, "1 minute ago"), (7300, "2 hours ago")],
)
def test_times_in_words(seconds, words):
    assert relay_page.ago(seconds) == words


def test_steps_are_named_without_session_and_run():
    assert relay_page.step_name(f"{'ab' * 16}/shares", "1") == "shares"
    assert relay_page.step_name("1/agree/3", "1") == "agree/3"
    assert relay_page.step_name(f"/session/{'ab' * 16}", "1") == "session"


def test_a_person_answers_questions_on_the_site_s_page(site, browser, tmp_path):
    state, found = tmp_path / "north.state", {}
    question = study_questions.made({"ask": "mean", "column": "<los>"}, "the question")

    def ask(number):
        found[number] = consent_files.ask(state, number, "alice", question, ["rows"])

    threads = [threading.Thread(target=ask, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 10
    while len(consent_files.waiting(state)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    address = plain(site)
    page = signed_in(browser, address, token(site))
    assert "2 questions for you" in page
    assert "alice asks: mean(column=&#39;&lt;los&gt;&#39;)" in page
    refused = browser.post(f"{address}/consent", data={"number": "2", "answer": "refuse"})
    assert (refused.status_code, "needs a reason" in refused.text) == (400, True)
    for given in ({"number": "x", "answer": "allow"}, {"number": "1", "answer": "maybe"}):
        assert browser.post(f"{address}/consent", data=given).status_code == 400
    browser.post(f"{address}/consent", data={"number": "1", "answer": "allow"})
    browser.post(
        f"{address}/consent", data={"number": "2", "answer": "refuse", "reason": "not this"}
    )
    for thread in threads:
        thread.join(10)
    assert found == {1: "", 2: "not this"}
    again = browser.post(f"{address}/consent", data={"number": "1", "answer": "allow"})
    assert (again.status_code, "no question 1 waits" in again.text) == (409, True)


def test_a_token_file_is_drawn_once_and_private(tmp_path):
    path = tmp_path / "page.token"
    drawn = page_guard.token_file(path)
    assert page_guard.token_file(path) == drawn
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o640)
    with pytest.raises(ParameterError, match="other users can read this token; run: chmod 600"):
        page_guard.token_file(path)
    path.chmod(0o600)
    path.write_text("short\n")
    with pytest.raises(ParameterError, match="a token has at least 20 characters"):
        page_guard.token_file(path)


def test_a_taken_port_is_named(site, tmp_path):
    port = urllib.parse.urlsplit(site.address).port
    with pytest.raises(ParameterError, match=f"another program listens on port {port}"):
        SitePage("south", "s", tmp_path / "s.state", lambda _: "", port)


def fits(browser, address):
    """Open an address at three widths, in both colours: no complaint, nothing wider."""
    for width in (1280, 768, 390):
        for dark in (False, True):
            browser.open(address, width=width, dark=dark)
            assert browser.complaints == []
            assert browser.value("document.documentElement.scrollWidth") == width
    assert all(asked.startswith(address) for asked in browser.requests)


def reached(browser):
    """What the Tab key comes to, from the page's begin."""
    found = []
    for _ in range(30):
        browser.press("Tab", TAB)
        name = browser.value(
            "(e => e === document.body ? '' : e.innerText || e.ariaLabel || e.id)"
            "(document.activeElement)"
        )
        if not name or (found and name == found[0]):
            break
        found.append(name)
    return found


def eventually(browser, expression):
    end = time.monotonic() + 15
    while not browser.value(expression):
        assert time.monotonic() < end, browser.value("document.body.innerText")
        time.sleep(0.05)


def test_the_relay_s_page_in_a_browser(consortium, tmp_path):
    address = f"{consortium.url}/page"
    with running(tmp_path / "profile") as browser:
        fits(browser, address)
        browser.open(f"{address}#{urllib.parse.quote(TOKEN[:-1])}")
        eventually(browser, "document.body.innerText.includes('This is not the token')")
        browser.open(address)
        browser.value(f"document.getElementById('token').value = {TOKEN!r}")
        browser.value("document.getElementById('login').requestSubmit()")
        eventually(browser, "Boolean(document.getElementById('news-1'))")
        fits(browser, address)
        assert reached(browser)[0].startswith("Parties")
        assert "Pause" in reached(browser)
        assert browser.value("document.querySelectorAll('th:not([scope])').length") == 0
        browser.open(address)
        browser.value("document.activeElement.blur()")
        north = consortium.member("north")
        north.office.put([("south", "1/t", b"1")])
        north.close()
        eventually(browser, "document.body.innerText.includes('1 of 6 parties are here')")
        assert browser.complaints == []


def test_a_site_s_page_in_a_browser(site, tmp_path):
    question = study_questions.made({"ask": "mean", "column": "los"}, "the question")
    result = Study({name: rows(name) for name in SITES}).mean("los")
    state = tmp_path / "north.state"
    site.watch("shares", ["south"])
    with running(tmp_path / "profile") as browser:
        browser.open(site.address)
        eventually(browser, "Boolean(document.getElementById('news'))")
        assert browser.value("location.href") == plain(site)  # no token in the history
        fits(browser, plain(site))
        assert browser.value("document.querySelector('h1').innerText") == "Length <of> stay"
        site.heard(question, result)
        answered = []
        thread = threading.Thread(
            target=lambda: answered.append(consent_files.ask(state, 1, "alice", question, ["rows"]))
        )
        thread.start()
        eventually(browser, "document.body.innerText.includes('1 question for you')")
        names = reached(browser)
        assert [n for n in names if n in ("Take part", "reason-1", "Refuse", "Pause")] == [
            "Take part", "reason-1", "Refuse", "Pause",
        ]  # fmt: skip
        # What is typed stays while the page looks again.
        browser.value("document.getElementById('reason-1').focus()")
        browser.value("document.getElementById('reason-1').value = 'not now'")
        site.end("The run is done.")
        eventually(browser, "document.getElementById('news').innerText.includes('done')")
        assert browser.value("document.getElementById('reason-1').value") == "not now"
        browser.value("document.querySelector('button[value=refuse]').click()")
        thread.join(10)
        assert answered == ["not now"]
        browser.open(f"{plain(site)}/results", width=390)
        assert browser.complaints == []
        assert "mean of los" in browser.value("document.body.innerText")


def test_join_shows_a_page_until_it_is_interrupted(consortium, browser):
    command = [sys.executable, "-m", "securecomp", "join", str(consortium.path), "--site", "north"]
    rows("north").to_csv(consortium.folder / "north.csv", index=False)
    command += ["--data", str(consortium.folder / "north.csv"), "--relay", consortium.url]
    command += ["--identity", str(consortium.folder / "north.identity"), "--yes", "--page"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        line = next(line for line in process.stderr if line.startswith("page: "))
        address, _, secret = line.split()[1].partition("#")
        shown = signed_in(browser, address, secret)
        assert "None yet." in shown
        consortium.sites = [name for name in SITES if name != "north"]
        consortium.run()
        next(line for line in process.stderr if "until you press Ctrl-C" in line)
        assert "The run is done." in browser.get(address).text
        assert "mean" in browser.get(f"{address}/results").text
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "mean of" in out
