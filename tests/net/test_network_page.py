"""The page on running between organisations says what works."""

import re
import threading
from pathlib import Path

from consortium import SITES, Consortium, rows
from test_over_a_network import ONE

from securecomp.statistics import Study

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "between-organisations.md"


def snippets():
    """The page's snippets, by the name of the function that each begins with."""
    found = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return {re.search(r"Study\.(join|connect)", text)[0]: text for text in found}


def test_the_snippet_in_python_runs_at_every_site(tmp_path, monkeypatch, capsys):
    snippet = snippets()["Study.join"]
    consortium = Consortium(tmp_path, ONE)
    monkeypatch.chdir(tmp_path)
    errors = []

    def site(name):
        text = snippet.replace('"north"', f'"{name}"').replace("north.id", f"{name}.id")
        try:
            exec(text, {"north": rows(name), "url": consortium.url})  # noqa: S102
        except BaseException as error:
            errors.append(error)

    with consortium.relay():
        threads = [threading.Thread(target=site, args=(name,)) for name in SITES]
        threads += [
            threading.Thread(target=consortium.server, args=(name,)) for name in consortium.servers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert capsys.readouterr().out.count("medical") == len(SITES)


def test_the_snippet_of_an_analyst_runs(tmp_path, monkeypatch, capsys):
    consortium = Consortium(tmp_path, '[questions]\nanswer = ["glm"]\n', analysts=("alice",))
    monkeypatch.chdir(tmp_path)
    threads = [
        *(threading.Thread(target=consortium.agent, args=(name,)) for name in SITES),
        *(threading.Thread(target=consortium.server, args=(n,)) for n in consortium.servers),
    ]
    with consortium.relay():
        for thread in threads:
            thread.start()
        exec(snippets()["Study.connect"], {"Study": Study, "url": consortium.url})  # noqa: S102
        with consortium.asked("alice") as study:
            study.no_more()
        for thread in threads:
            thread.join()
    assert "age" in capsys.readouterr().out
