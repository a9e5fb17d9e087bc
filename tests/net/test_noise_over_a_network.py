"""Noise in parts over a network: each site's own part, drawn once, paid from its own ledger."""

import contextlib
import sqlite3
import threading
from collections import defaultdict
from dataclasses import replace

import pytest
from cases import each_case
from click.testing import CliRunner
from consortium import SITES, Consortium, Killed, described, rows, until_it_lives
from test_over_a_network import documents
from test_questions import staying

from securecomp.cli.main import main
from securecomp.errors import (
    BudgetError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.federated import FederatedLogisticRegression
from securecomp.net import programs, simulation, study_file
from securecomp.net.questions import asking
from securecomp.net.site_state import SiteState
from securecomp.privacy import policy
from securecomp.privacy.distributed import NoisePlan
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.replayed_ledger import ReplayedLedger
from securecomp.statistics import Count, Histogram, Mean, Study

PRIVACY = """
[privacy]
epsilon = 2
delta = 1e-6
"""
QUESTIONS = (
    PRIVACY
    + """
[privacy.bounds]
los = [0, 60]
[[analyses]]
ask = "count"
by = "ward"
[[analyses]]
ask = "mean"
column = "los"
[[analyses]]
ask = "histogram"
column = "age"
edges = [20, 60, 100]
"""
)
COUNT = PRIVACY + '[[analyses]]\nask = "count"\nby = "ward"\n'
FACTS = "minimum_count = 0\n"


def ledger_of(consortium, site):
    return consortium.path.with_name(f"{consortium.path.name}.{site}.ledger")


def private(folder, text=COUNT, protocol="sharing", epsilon=8, sites=SITES, facts="", **more):
    """A consortium whose sites have ledgers."""
    folder.mkdir(exist_ok=True)
    consortium = Consortium(folder, text, protocol, sites, FACTS + facts, **more)
    near = study_file.read(consortium.path).privacy.neighbours
    for site in sites:
        Ledger.create(ledger_of(consortium, site), site, epsilon, "1e-5", near)
    return consortium


def spent(consortium, site):
    return float(Ledger(ledger_of(consortium, site)).state().spent.epsilon)


@pytest.fixture
def parts(monkeypatch):
    """The noise that each thread, named as its site, has drawn: block to the draws."""
    drawn = defaultdict(lambda: defaultdict(list))
    draw = NoisePlan.draw

    def spy(self, block, *entropy):
        found = draw(self, block, *entropy)
        drawn[threading.current_thread().name][block].append(found)
        return found

    monkeypatch.setattr(NoisePlan, "draw", spy)
    return drawn


def as_site(consortium):
    """A site that names its thread."""

    def site(name, frame, run):
        threading.current_thread().name = name
        return consortium.site(name, frame, run)

    return site


def exact(ward, sites=SITES):
    return sum(int((rows(site).ward == ward).sum()) for site in sites)


def check_sum_of_parts(result, parts, sites=SITES):
    """The released counts are the exact ones and the noise of all sites, each once."""
    for place, ward in enumerate(("medical", "surgical")):
        noise = sum(parts[site][0][0][place] for site in sites)
        row = next(row for row in result.rows if row["group"] == ward)
        assert row["value"] == exact(ward, sites) + noise


@each_case("protocol", ["sharing", "masking"])
def test_the_answer_is_the_exact_one_and_the_noise_of_all_sites(protocol, tmp_path, parts):
    parts.clear()
    consortium = private(tmp_path / protocol, QUESTIONS, protocol)
    with consortium.relay():
        found = consortium.run(site=as_site(consortium))
    assert documents(found["north"]) == documents(found["south"]) == documents(found["west"])
    check_sum_of_parts(found["north"]["count(by='ward')"], parts)
    # Other parts at every site; nothing is zero noise.
    assert len({str(parts[site][0]) for site in SITES}) == len(SITES)
    promise = found["south"]["mean(column='los')"].guarantee
    assert (promise.epsilon, promise.delta) == (2.0, 1e-6)
    assert "2 of 3 sites' enough" in promise.mechanism
    # The parts are those of one process: the same promise, scale and error, of the same plan.
    study = study_file.read(consortium.path)
    together = Study(
        {site: rows(site) for site in SITES},
        columns=study.columns,
        protocol=study.sums(),
        minimum_count=0,
        privacy=study.privacy,
    )
    one = together.run([Count(by="ward"), Mean("los"), Histogram("age", edges=(20, 60, 100))])
    for here, there in zip(one, found["south"].values(), strict=True):
        assert replace(there.guarantee, spent=None) == here.guarantee
    # One run, however many questions: paid once, at every site, from its own ledger.
    for site in SITES:
        state = Ledger(ledger_of(consortium, site)).state()
        assert (float(state.spent.epsilon), len(state.open)) == (2.0, 0)
        assert "count of rows by ward; mean of los" in state.entries[1].what


@each_case("dropouts", [0, 1])
def test_masking_opens_no_sum_with_less_noise_than_was_promised(dropouts, tmp_path, parts):
    """One site of four leaves before the sum."""
    parts.clear()
    sites = ("east", "north", "south", "west")
    text = COUNT.replace("delta", f"dropouts = {dropouts}\ndelta")
    folder = tmp_path / str(dropouts)
    consortium = private(folder, text, "masking", sites=sites, facts="answer_within = 1\n")

    def site(name, frame, run):
        if name != "west":
            return as_site(consortium)(name, frame, run)
        member = consortium.member(name)
        try:
            programs.begin(member, programs.study_at(member.study, member.carrier, {name: frame}))
        finally:
            member.close()

    with consortium.relay():
        found = consortium.run({"west": rows("west")}, site=site)
    for name in sites[:3]:
        if dropouts:
            check_sum_of_parts(found[name]["count(by='ward')"], parts, sites[:3])
        else:
            assert isinstance(found[name], SecureCompError)
    if not dropouts:
        assert "too few clients" in str(found["server"])
        assert "nothing was revealed" in str(found["server"])


def test_a_finished_run_says_the_same_again_and_costs_nothing_and_another_run_is_paid(tmp_path):
    consortium = private(tmp_path)
    with consortium.relay():
        first = documents(consortium.run()["north"])
        assert documents(consortium.site("north")) == first  # nobody else is there
        assert [spent(consortium, site) for site in SITES] == [2.0] * 3
        # Its noise is drawn anew, and may be the same by chance.
        documents(consortium.run(run="2")["north"])
    assert [spent(consortium, site) for site in SITES] == [4.0] * 3


def test_a_kill_at_any_moment_draws_no_second_noise_and_pays_once(tmp_path, monkeypatch, parts):
    """Before and after every transaction of the state, and of the ledger."""
    write, seen, thread = SiteState._write, set(), None
    consortium = private(tmp_path, protocol="masking")

    def mortal(what, work):
        for after in (False, True):
            if after:
                done = work()
            if threading.current_thread() is thread and (after, what) not in seen:
                seen.add((after, what))
                raise Killed
        return done

    def written(self, commands):
        commands = list(commands)
        try:
            mortal(described(commands), lambda: write(self, commands))
        except Killed:
            if not hasattr(self, "seed"):  # nobody else closes it
                self._db.close()
            raise

    monkeypatch.setattr(SiteState, "_write", written)
    for name in ("reserve", "settle"):
        real = getattr(ReplayedLedger, name)
        monkeypatch.setattr(
            ReplayedLedger,
            name,
            lambda self, *given, name=name, real=real: mortal(name, lambda: real(self, *given)),
        )

    def site(name, frame, run):
        nonlocal thread
        threading.current_thread().name = name
        if name != "south":
            return consortium.site(name, frame, run)
        thread = threading.current_thread()

        def paid():
            if noised_outbox(consortium):
                assert spent(consortium, "south") == 2.0

        return until_it_lives(lambda: consortium.site(name, frame, run), paid)

    with consortium.relay():
        found = consortium.run(site=site)
    assert {(False, "reserve"), (True, "reserve"), (False, "settle"), (True, "settle")} <= seen
    assert len(seen) > 20
    # A run that was killed after its end has no seed: what it draws once more is not sent.
    drawn = parts["south"][0][:-1]
    assert len(drawn) > 5
    assert all(one == drawn[0] for one in drawn)
    for name in SITES:
        assert not isinstance(found[name], BaseException), found[name]
        check_sum_of_parts(found[name]["count(by='ward')"], parts)
    state = Ledger(ledger_of(consortium, "south")).state()
    assert [entry.kind for entry in state.entries] == ["create", "reserve", "settle"]
    assert float(state.spent.epsilon) == 2.0


def noised_outbox(consortium):
    """Whether the state of south has a message of a sum."""
    path = consortium.path.with_name("study.toml.south.1.state")
    if not path.exists():
        return False
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").fetchall()
        tags = [t for (t,) in database.execute("SELECT tag FROM outbox")] if tables else []
    return any(not tag.startswith("1/") for tag in tags)


def test_an_exhausted_ledger_is_named_before_anything_is_sent(tmp_path):
    consortium = private(tmp_path)
    ledger = Ledger(ledger_of(consortium, "south"))
    terms = study_file.read(consortium.path).privacy
    for _ in range(4):
        ledger.reserve("something else", terms.cost, terms.neighbours)
    with consortium.relay():
        found = consortium.run()
    assert isinstance(found["south"], BudgetError)
    assert not noised_outbox(consortium)
    for name in ("north", "west", *consortium.servers):
        assert "south: has stopped: its privacy budget does not cover what is asked" in str(
            found[name]
        )
    # Nobody else has paid for what was not answered.
    assert [spent(consortium, site) for site in SITES] == [0.0, 8.0, 0.0]


def test_data_that_changed_between_reservation_and_answer_are_not_sent(tmp_path):
    """The noise would be the same: the difference of the two messages were the rows'."""
    consortium = private(tmp_path)
    with consortium.relay():
        first = consortium.member("north")
        first.carrier.begin = lambda: None
        object.__setattr__(first.study, "patience", 1)
        study = programs.study_at(
            first.study, first.carrier, {"north": rows("north")}, first.ledger
        )
        with pytest.raises(RemoteProtocolError, match="nothing came"):
            study.count(by="ward")
        first.close()
        other = consortium.member("north")
        frame = {"north": rows("north").iloc[1:]}
        study = programs.study_at(other.study, other.carrier, frame, other.ledger)
        with pytest.raises(LocalProtocolError, match="the data or the software has changed"):
            study.count(by="ward")
        other.close()
    assert spent(consortium, "north") == 2.0


def test_a_site_without_a_ledger_is_told_how_to_make_one(tmp_path):
    consortium = private(tmp_path)
    ledger_of(consortium, "west").unlink()
    with pytest.raises(ParameterError, match=r"there is no ledger.*budget create .*--unit record"):
        consortium.member("west")


def test_another_cost_under_one_mark_is_paid_anew(tmp_path):
    """And what was ended for less is no payment."""
    terms = policy.Privacy(1, 1e-6)
    Ledger.create(tmp_path / "a", "a", 10, "1e-4")
    mark = ["one"]
    ledger = ReplayedLedger(tmp_path / "a", lambda: mark[0])
    first = ledger.reserve("count", terms.cost, terms.neighbours)
    assert ledger.reserve("count", terms.cost, terms.neighbours) == first
    ledger.settle(first)
    ledger.settle(first)
    assert ledger.reserve("count", terms.cost, terms.neighbours) == first
    more = policy.Privacy(2, 1e-6)
    ledger.reserve("count", more.cost, more.neighbours)
    assert ledger.state().spent.epsilon == 3
    mark[0] = "two"
    second = ledger.reserve("count", terms.cost, terms.neighbours)
    ledger.cancel(second)
    assert ledger.reserve("count", terms.cost, terms.neighbours) != second
    assert ledger.state().spent.epsilon == 4


def test_analysts_hear_noised_answers_until_a_site_s_budget_ends(tmp_path):
    text = PRIVACY + '[questions]\nanswer = ["count", "mean"]\n'
    consortium = private(tmp_path, text, epsilon=4, analysts=("alice",))
    with staying(consortium) as found, consortium.asked("alice") as study:
        answers = [study.count(by="ward"), study.mean("los")]
        with pytest.raises(asking.RefusedQuestionError, match="its privacy budget does not cover"):
            study.count()
        study.no_more()
    assert all(answer.guarantee.epsilon == 2.0 for answer in answers)
    for site in SITES:
        assert [r.rows for _, r in found[site]] == [a.rows for a in answers]
        assert spent(consortium, site) == 4.0


@each_case(
    "old, new, words",
    [
        ("epsilon = 2", "epsilon = -1", r"\[privacy\] epsilon must be above 0"),
        ("epsilon = 2\n", "", r"\[privacy\] epsilon: say what is promised"),
        ("epsilon = 2", 'epsilon = 2\nledger = "x"', "each site names its own ledger"),
        ('"count"', '"median"\ncolumn = "los"', r"\[\[analyses\]\] 1: with \[privacy\] ask is one"),
        ("epsilon = 2", 'epsilon = 2\nunit = "site"', 'unit = "site" is for training'),
        ("epsilon = 2", 'epsilon = 2\nunit = "patient"', r"\[privacy\].*identifier"),
    ],
)
def test_terms_that_cannot_be_are_refused(old, new, words, tmp_path):
    text = COUNT.replace('\nby = "ward"', "") if "median" in new else COUNT
    folder = tmp_path / str(abs(hash(new)))
    folder.mkdir()
    with pytest.raises(ParameterError, match=words):
        Consortium(folder, text.replace(old, new))


TRAINING = {"strategy": "sgd", "rounds": 3}


def trained(consortium, site, kind=FederatedLogisticRegression, **facts):
    """Train at one site, as `Study.join` does."""
    member = consortium.member(site)
    try:
        frame = rows(site)
        frame["pid"] = [i // 2 for i in range(len(frame))]
        with programs.taking_part(member, site, frame) as study:
            return kind(**{**TRAINING, **facts}).fit(study, "died ~ age + ward")
    finally:
        member.close()


@each_case("unit", ["record", "patient", "site"])
def test_training_with_noise_gives_all_sites_one_model_and_is_paid_once(unit, tmp_path, parts):
    parts.clear()
    more = {"strategy": "averaging"} if unit == "site" else {}
    whose = 'identifier = "pid"\nrecords = 2\n' if unit == "patient" else ""
    consortium = private(tmp_path / unit, PRIVACY + f'unit = "{unit}"\n{whose}')
    kills = {1, 5}

    def site(name, frame, run):
        threading.current_thread().name = name
        if name != "south":
            return trained(consortium, name, **more)

        def killed(done, _total):
            if done in kills:
                kills.discard(done)
                raise Killed

        return until_it_lives(lambda: trained(consortium, name, progress=killed, **more))

    with consortium.relay():
        found = consortium.run(site=site)
    for name in SITES:
        assert not isinstance(found[name], BaseException), found[name]
        assert found[name].coef_.tobytes() == found["north"].coef_.tobytes()
        assert found[name].guarantee_.epsilon == 2.0
        state = Ledger(ledger_of(consortium, name)).state()
        assert [entry.kind for entry in state.entries] == ["create", "reserve", "settle"]
    blocks = (-1,) if unit == "site" else (0, -1)
    for block in blocks:
        many = 1 if block == 0 else TRAINING["rounds"]
        once = {str(draw) for draw in parts["south"][block]}
        assert len(once) == many < len(parts["south"][block]) + (block == 0)


def test_what_a_restart_would_make_another_training_is_refused(tmp_path):
    consortium = private(tmp_path, PRIVACY)
    study_of = {}
    with consortium.relay():
        member = consortium.member("north")
        study_of = programs.study_at(
            member.study, member.carrier, {"north": rows("north")}, member.ledger
        )
        for facts, words in (
            ({"checkpoint": tmp_path / "c"}, "goes on from the site's state"),
            ({"privacy": policy.Privacy(9, 1e-6)}, "the study has other terms"),
            ({"absent": lambda *_: {}}, "needs all sites to the end"),
        ):
            with pytest.raises(ParameterError, match=words):
                FederatedLogisticRegression(**TRAINING, **facts).fit(study_of, "died ~ age")
        member.close()
    assert spent(consortium, "north") == 0.0


def test_the_command_line_shows_the_terms_and_takes_a_ledger(tmp_path):
    consortium = private(tmp_path)
    shown = CliRunner().invoke(main, ["study", "show", str(consortium.path)])
    assert "noise: skellam, epsilon 2" in shown.output
    rows("north").to_csv(tmp_path / "north.csv", index=False)
    given = simulation.join_command(
        consortium.path,
        "north",
        tmp_path / "north.csv",
        tmp_path / "north.identity",
        consortium.url,
        "--ledger",
        str(tmp_path / "mine"),
    )[3:]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 1
    assert f"{tmp_path / 'mine'}: there is no ledger" in " ".join(result.stderr.split())
