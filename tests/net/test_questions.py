"""Questions of analysts: asked of agents that stay, answered by all sites, or refused by one."""

import contextlib
import threading

import pytest
from cases import each_case
from consortium import SITES, Consortium, Killed, rows, until_it_lives

from securecomp.errors import AuthenticationError, ParameterError, RemoteProtocolError
from securecomp.net.network_carrier import NetworkCarrier
from securecomp.net.questions import question_log
from securecomp.net.questions.asking import RefusedQuestionError
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.net.study_messages import AnalystQuestion, SiteVerdict
from securecomp.protocol.identity import Identity
from securecomp.statistics import Study

RULES = """
[questions]
answer = ["count", "mean", "t_test", "kaplan_meier"]
ask = ["glm"]
most = 4
"""


@contextlib.contextmanager
def staying(consortium, frames=None, person=None):
    """Agents and servers that stay until the analysts have no more questions."""
    found = {}

    def site(name, frame, run):
        return consortium.agent(name, frame, run, (person or {}).get(name))

    thread = threading.Thread(target=lambda: found.update(consortium.run(frames, site=site)))
    with consortium.relay():
        thread.start()
        yield found
        thread.join(120)
        assert not thread.is_alive()


def together(consortium):
    """The same study in one process."""
    study = consortium.member(SITES[0], run="facts").study
    return Study(
        {site: rows(site) for site in sorted(SITES)},
        columns=study.columns,
        protocol=study.sums(),
        rows=study.rows,
    )


@each_case("protocol", ["sharing", "masking"])
def test_an_analyst_without_rows_hears_what_one_process_says(protocol, tmp_path):
    folder = tmp_path / protocol
    folder.mkdir()
    consortium = Consortium(folder, RULES, protocol, analysts=("alice",))
    with staying(consortium) as found, consortium.asked("alice") as study:
        answers = [study.mean("los", by="ward"), study.glm("died ~ age"), study.count()]
        study.no_more()
    one = together(consortium)
    wanted = [one.mean("los", by="ward"), one.glm("died ~ age"), one.count()]
    assert [a.to_json() for a in answers] == [w.to_json() for w in wanted]
    for site in SITES:
        assert [r.to_json() for _, r in found[site]] == [w.to_json() for w in wanted]


def test_refusals_name_the_site_and_the_rule_and_open_nothing(tmp_path):
    """By the rules, by a person, and by rows that do not allow it; the agents go on."""
    consortium = Consortium(tmp_path, RULES, analysts=("alice",))
    frames = {site: rows(site) for site in SITES}
    frames["south"].loc[3, "weight"] = 900.0  # beyond the bound that all agreed on
    asked = []

    def person(number, analyst, question, opened):
        asked.append((number, analyst, str(question), len(opened) > 0))
        return "ask the ethics board first"

    with staying(consortium, frames, {"west": person}) as found, consortium.asked("alice") as study:
        with pytest.raises(ParameterError, match="does not allow cox"):
            study.cox("days", "died", ["age"])
        with pytest.raises(ParameterError, match="no_such"):
            study.mean("no_such")
        with pytest.raises(RefusedQuestionError, match="ask the ethics board first") as one:
            study.glm("died ~ age")
        with pytest.raises(RefusedQuestionError, match=r"RangeError.*operator sees") as two:
            study.mean("weight")
        assert study.count().rows[0]["value"] == 180
        study.no_more()
    assert one.value.refusals.keys() == {"west"}
    assert two.value.refusals.keys() == {"south"}
    assert "row" not in str(two.value).replace("its rows", "")
    assert asked == [(1, "alice", "glm(formula='died ~ age')", True)]
    for site in SITES:
        assert [q.ask for q, _ in found[site]] == ["count"]
    key = consortium.key("south").public
    entries = question_log.read(tmp_path / "south.1.log", "south", key)
    assert [(e["part"], e["event"]) for e in entries] == [
        (1, "asked"), (1, "decided"), (2, "asked"), (2, "not possible here"), (2, "decided"),
        (3, "asked"), (3, "decided"), (3, "opened"),
    ]  # fmt: skip
    assert "row 4" in entries[3]["reason"]  # its operator reads it, and the analyst does not
    assert entries[-1]["receivers"] == ["north", "south", "west", "alice"]


def test_no_more_questions_than_were_agreed(tmp_path):
    consortium = Consortium(
        tmp_path, '[questions]\nanswer = ["count"]\nmost = 1\n', analysts=("alice", "bob")
    )
    with staying(consortium), consortium.asked("alice") as study:
        first = study.count()
        with pytest.raises(RefusedQuestionError, match="allows no more"):
            study.count(by="ward")
        study.no_more()
        with consortium.asked("bob") as other:
            with pytest.raises(RefusedQuestionError, match="allows no more"):
                other.count()
            other.no_more()
    assert first.rows[0]["value"] == 180


def test_what_one_sum_answers_is_opened_to_the_analyst_alone(tmp_path):
    analyses = '[[analyses]]\nask = "mean"\ncolumn = "los"\n'
    consortium = Consortium(
        tmp_path, RULES + analyses, facts='receivers = "analysts"\n', analysts=("alice",)
    )
    with staying(consortium) as found, consortium.asked("alice") as study:
        own = study.own()
        answers = [study.count(by="ward"), study.glm("died ~ age")]
        study.no_more()
    one = together(consortium)
    assert [r.to_json() for _, r in own] == [one.mean("los").to_json()]
    wanted = [one.count(by="ward").to_json(), one.glm("died ~ age").to_json()]
    assert [a.to_json() for a in answers] == wanted
    for site in SITES:
        heard = [None if r is None else r.to_json() for _, r in found[site]]
        assert heard == [None, None, wanted[1]]  # a regression's steps depend on totals
        # No total of the first two is in the site's state.
        member = consortium.member(site)
        assert member.state.total(0)[1] == b"" != member.state.total(2 << 32)[1]
        member.close()


def test_an_answer_that_was_heard_comes_again_without_the_sites(tmp_path):
    consortium = Consortium(tmp_path, RULES, analysts=("alice",))
    with staying(consortium):
        with consortium.asked("alice") as study:
            first = study.mean("los").to_json()
        with consortium.asked("alice") as study:
            assert study.mean("los").to_json() == first
            second = study.mean("age").to_json()
            study.no_more()
    with consortium.relay(), consortium.asked("alice") as study:
        assert study.mean("age").to_json() == second
        assert study.mean("los").to_json() == first


@each_case("place", [1, 3])
def test_an_agent_that_is_killed_takes_the_question_up_again(place, tmp_path, monkeypatch):
    folder = tmp_path / str(place)
    folder.mkdir()
    consortium = Consortium(
        folder,
        RULES.replace('ask = ["glm"]', "").replace('"count"', '"count", "glm"'),
        analysts=("alice",),
    )
    left = [place]
    opened = NetworkCarrier.opened

    def dying(self, session, play):
        if self.name == "south" and self.channel.part:
            left[0] -= 1
            if not left[0]:
                raise Killed
        return opened(self, session, play)

    monkeypatch.setattr(NetworkCarrier, "opened", dying)

    kills = []

    def agent(name, frame, run, person=None):
        return until_it_lives(
            lambda: Consortium.agent(consortium, name, frame, run, person),
            lambda: kills.append(name),
        )

    consortium.agent = agent
    with staying(consortium) as found, consortium.asked("alice") as study:
        answer = study.glm("died ~ age").to_json()
        study.no_more()
    assert kills == ["south"]
    assert answer == together(consortium).glm("died ~ age").to_json()
    assert [r.to_json() for _, r in found["south"]] == [answer]


def test_a_question_that_fails_at_one_site_ends_alone(tmp_path, monkeypatch):
    """A site's error after the first sum ends this question everywhere, and no other."""
    consortium = Consortium(
        tmp_path,
        RULES.replace('ask = ["glm"]', "").replace('"count"', '"count", "glm"'),
        analysts=("alice",),
    )
    agree = NetworkCarrier.agree

    def failing(self, what, values, tolerance):
        if self.name == "south":
            raise ParameterError("row 17 is odd")
        return agree(self, what, values, tolerance)

    monkeypatch.setattr(NetworkCarrier, "agree", failing)
    with staying(consortium) as found, consortium.asked("alice") as study:
        with pytest.raises(RemoteProtocolError, match="an error of its own") as error:
            study.glm("died ~ age")
        assert error.value.sender == "south"
        assert study.count().rows[0]["value"] == 180
        study.no_more()
    assert "17" not in str(error.value)
    for name in (*SITES, *consortium.servers):
        assert not isinstance(found[name], BaseException), found[name]
    entries = question_log.read(tmp_path / "south.1.log", "south", consortium.key("south").public)
    assert [e["reason"] for e in entries if e["event"] == "stopped"] == ["row 17 is odd"]


def test_garbage_of_an_analyst_is_refused_and_the_next_question_answered(tmp_path):
    consortium = Consortium(tmp_path, RULES, analysts=("alice", "mallory"))
    with staying(consortium) as found:
        bad = consortium.member("mallory")
        for tag in ("1/question/0", "1/question/x", "1/question/007", "1/stop", "1/turn/1"):
            bad.office.put([(site, tag, b"garbage") for site in SITES])
        with consortium.asked("alice") as study:
            assert study.count().rows[0]["value"] == 180
            study.no_more()
        bad.close()
        bad = consortium.member("mallory")
        message = AnalystQuestion.signed(bad.identity, bad.study, "1", 1, "")
        bad.channel.tell(SITES, "1/question/1", message)
        bad.close()
    for site in SITES:
        assert [q.ask for q, _ in found[site]] == ["count"]
        entries = question_log.read(tmp_path / f"{site}.1.log", site, consortium.key(site).public)
        refused = next(e for e in entries if e["event"] == "decided" and e["refusals"])
        assert refused["refusals"].keys() == set(SITES)


def test_an_analyst_who_tells_the_sites_different_questions_is_refused(tmp_path):
    consortium = Consortium(tmp_path, RULES, analysts=("alice",))
    with staying(consortium):
        alice = consortium.member("alice")
        for site in SITES:
            text = StudyQuestion("mean", {"column": "age" if site == "west" else "los"}).to_json()
            told = AnalystQuestion.signed(alice.identity, alice.study, "1", 0, text)
            alice.channel.tell([site], "1/question/0", told)
        alice.channel.attend(
            "verdicts", lambda: [s for s in SITES if s not in alice.state.senders("1/verdict/1")]
        )
        refusals = {s: alice.channel.read(s, "1/verdict/1", SiteVerdict).refusal for s in SITES}
        told = AnalystQuestion.signed(alice.identity, alice.study, "1", 1, "")
        alice.channel.tell(SITES, "1/question/1", told)
        alice.close()
    assert refusals["north"] == refusals["south"] == ""
    assert "another question" in refusals["west"]


def test_a_changed_log_is_noticed(tmp_path):
    identity = Identity.generate()
    log = question_log.QuestionLog(tmp_path / "log", "north", identity)
    log.add(1, "asked", analyst="alice")
    log.add(1, "asked", analyst="again")  # a program that was started again
    log.add(1, "decided", refusals={})
    log.add(2, "asked", analyst="bob")
    path = tmp_path / "log"
    whole = path.read_bytes()
    entries = question_log.read(path, "north", identity.public)
    assert [e.get("analyst") for e in entries] == ["alice", None, "bob"]
    lines = whole.splitlines(keepends=True)
    changed = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole) - 1)]
    changed += [lines[1] + lines[2], lines[0] + lines[2], lines[1] + lines[0] + lines[2]]
    for wrong in changed:
        path.write_bytes(wrong)
        if wrong.count(b"\n") < 3 and b"\n".join(wrong.split(b"\n")[:-1]) in whole:
            continue  # its end is cut off, which only a copy elsewhere shows
        with pytest.raises(AuthenticationError, match="the log was changed"):
            question_log.read(path, "north", identity.public)
    path.write_bytes(whole + b'["half a li')  # a crash in the middle of an entry
    again = question_log.QuestionLog(path, "north", identity)
    again.add(2, "decided", refusals={})
    assert len(question_log.read(path, "north", identity.public)) == 4


@each_case(
    "facts, words",
    [
        ('[questions]\nanswer = ["count"]\n', "asked by \\[analysts\\]"),
        ('[questions]\nanswer = ["nothing"]\n', "answer is a list of"),
        ('[questions]\nanswer = ["count"]\nask = ["count"]\n', "count is in both lists"),
        ('[questions]\nmost = 0\nanswer = ["count"]\n', "most"),
        ("[questions]\nother = 1\n", "has no 'other'"),
    ],
)
def test_rules_that_cannot_be(facts, words, tmp_path):
    folder = tmp_path / str(len(facts))
    folder.mkdir()
    with pytest.raises(ParameterError, match=words):
        Consortium(folder, facts)
