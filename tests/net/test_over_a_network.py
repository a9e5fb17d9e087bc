"""Every sum-based analysis over a network: each party apart, and the result that of one process."""

import json
import sqlite3
import threading
import tomllib

import pytest
from cases import each_case
from consortium import SITES, Consortium, Killed, described, rows, until_it_lives

from securecomp.core.entropy import system
from securecomp.errors import KeyMismatchError, LocalProtocolError, RemoteProtocolError
from securecomp.federated import FederatedLogisticRegression
from securecomp.net import programs, study_file
from securecomp.net.questions import study_questions
from securecomp.net.site_state import SiteState
from securecomp.paillier import PrivateKey
from securecomp.statistics import Study

ANALYSES = """
[[analyses]]
ask = "count"
by = "ward"
[[analyses]]
ask = "sum"
column = "los"
[[analyses]]
ask = "mean"
column = "weight"
by = "ward"
[[analyses]]
ask = "variance"
column = "los"
[[analyses]]
ask = "skewness"
column = "los"
[[analyses]]
ask = "histogram"
column = "age"
edges = [20, 40, 60, 80, 100]
[[analyses]]
ask = "crosstab"
row = "ward"
col = "arm"
[[analyses]]
ask = "covariance"
columns = ["los", "age"]
[[analyses]]
ask = "correlation"
columns = ["los", "age", "weight"]
[[analyses]]
ask = "t_test"
column = "los"
by = "ward"
[[analyses]]
ask = "chi_square"
row = "ward"
col = "arm"
[[analyses]]
ask = "odds_ratio"
exposure = "arm"
outcome = "dead"
exposed = "drug"
event = 1
[[analyses]]
ask = "median"
column = "los"
[[analyses]]
ask = "anova"
column = "los"
by = "ward"
[[analyses]]
ask = "kaplan_meier"
time = "days"
event = "died"
times = [100, 200, 300, 400]
[[analyses]]
ask = "logrank"
time = "days"
event = "died"
by = "arm"
times = [100, 200, 300, 400]
[[analyses]]
ask = "roc_auc"
score = "age"
outcome = "dead"
event = 1
[[analyses]]
ask = "glm"
formula = "died ~ age + ward"
[[analyses]]
ask = "glm"
formula = "los ~ age + weight"
family = "linear"
[[analyses]]
ask = "cox"
time = "days"
event = "died"
covariates = ["age", "arm"]
times = [100, 200, 300, 400]
[[analyses]]
ask = "fisher"
row = "arm"
col = "dead"
[[analyses]]
ask = "mantel_haenszel"
exposure = "arm"
outcome = "dead"
exposed = "drug"
event = 1
[[analyses]]
ask = "mantel_haenszel"
exposure = "arm"
outcome = "dead"
strata = "ward"
exposed = "drug"
event = 1
[[analyses]]
ask = "quantiles"
column = "weight"
q = [0.1, 0.9]
by = "ward"
[[analyses]]
ask = "relative_risk"
exposure = "arm"
outcome = "dead"
exposed = "drug"
event = 1
[[analyses]]
ask = "risk_difference"
exposure = "arm"
outcome = "dead"
exposed = "drug"
event = 1
[[analyses]]
ask = "standardisation"
columns = ["los", "weight"]
[[analyses]]
ask = "glm"
formula = "los ~ age + arm"
family = "poisson"
"""
ONE = '[[analyses]]\nask = "mean"\ncolumn = "los"\n'
TWO = ONE + '[[analyses]]\nask = "glm"\nformula = "died ~ age"\n'


def in_one_process(path, sites=SITES, frames=None, key=None):
    """What the same study says where all sites are in one process."""
    study = study_file.read(path)
    together = Study(
        {site: rows(site) if frames is None else frames[site] for site in sorted(sites)},
        columns=study.columns,
        protocol=study.sums(key),
        rows=study.rows,
    )
    return {str(a): a.put_to(together) for a in study.analyses}


def documents(results):
    """Results as machines read them, without what it took."""
    assert not isinstance(results, BaseException), results
    return {ask: result.to_json() for ask, result in results.items()}


def test_every_analysis_that_can_be_asked_for_is_among_these():
    asked = {one["ask"] for one in tomllib.loads(ANALYSES)["analyses"]}
    assert asked == set(study_questions.ANALYSES) - set(study_questions.FOR_ANALYSTS)


SAMPLE = {"count", "mean", "crosstab", "t_test", "mantel_haenszel", "quantiles", "logrank"}
"""Analyses of each kind: of one sum, of several, of sites as strata, of times."""


@each_case("protocol", ["sharing", "masking"])
def test_bit_for_bit_the_result_of_one_process(protocol, tmp_path):
    """A sample; all of them, with more parties, are slow."""
    folder = tmp_path / protocol
    folder.mkdir()
    parts = ANALYSES.split("[[analyses]]")[1:]
    chosen = [p for p in parts if tomllib.loads(p)["ask"] in SAMPLE] + parts[-1:]
    consortium = Consortium(folder, "".join(f"[[analyses]]{p}" for p in chosen), protocol)
    with consortium.relay():
        found = consortium.run()
    wanted = documents(in_one_process(consortium.path))
    assert len(wanted) == len(chosen) > len(SAMPLE)
    for site in SITES:
        assert documents(found[site]) == wanted
    assert all(found[name] is None for name in consortium.servers)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["sharing", "masking", "paillier"])
def test_bit_for_bit_with_seven_parties_and_more(protocol, tmp_path):
    """Six sites and the protocol's servers, a relay beside them."""
    sites = ("east", "far", "mid", "north", "south", "west")
    key = PrivateKey.generate(2048) if protocol == "paillier" else None
    facts = f"paillier_public = {json.dumps(key.public.to_json())}\n" if key else ""
    consortium = Consortium(tmp_path, ANALYSES, protocol, sites, facts)
    consortium.private = key
    with consortium.relay():
        found = consortium.run()
    wanted = documents(in_one_process(consortium.path, sites, key=key))
    assert len(wanted) == ANALYSES.count("ask =")
    for site in sites:
        assert documents(found[site]) == wanted
    assert len(sites) + len(consortium.servers) >= 7


def test_a_finished_run_says_its_result_again_and_another_run_is_apart(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        first = consortium.run()
        again = documents(consortium.site("north"))  # nobody else is there
        second = consortium.run(run="2")
    assert again == documents(first["south"]) == documents(second["west"])


def test_the_relay_restarts_while_all_wait(tmp_path):
    consortium = Consortium(tmp_path, TWO)
    consortium.start_relay()
    passed = []

    def watch(step, awaited):
        passed.append(step)
        if len(passed) == 12:
            consortium.stop_relay()
            consortium.start_relay()

    def site(name, frame, run):
        return consortium.site(name, frame, run, watch=watch if name == "west" else None)

    found = consortium.run(site=site)
    consortium.stop_relay()
    assert len(passed) > 12
    assert documents(found["north"]) == documents(in_one_process(consortium.path))


@pytest.mark.parametrize("protocol", ["masking", pytest.param("sharing", marks=pytest.mark.slow)])
def test_a_site_killed_before_and_after_every_transaction_goes_on(protocol, tmp_path, monkeypatch):
    """Other bytes than before a kill would be refused by the relay, and the run would stop."""
    write, seen = SiteState._write, set()
    thread = None

    def counted(self, commands):
        commands = list(commands)
        what = described(commands)
        for after in (False, True):
            if after:
                write(self, commands)
            if threading.current_thread() is thread and (after, what) not in seen:
                seen.add((after, what))
                if not hasattr(self, "seed"):  # nobody else closes it
                    self._db.close()
                raise Killed

    monkeypatch.setattr(SiteState, "_write", counted)
    consortium = Consortium(tmp_path, TWO, protocol)

    def site(name, frame, run):
        nonlocal thread
        if name != "south":
            return consortium.site(name, frame, run)
        thread = threading.current_thread()
        return until_it_lives(lambda: consortium.site(name, frame, run))

    with consortium.relay():
        found = consortium.run(site=site)
    assert len(seen) > 60
    wanted = documents(in_one_process(consortium.path))
    assert documents(found["south"]) == documents(found["north"]) == wanted


def test_data_that_changed_after_messages_were_sent_are_refused(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        member = consortium.member("north")
        member.carrier.begin = lambda: None  # alone: the others never come
        study = programs.study_at(member.study, member.carrier, {"north": rows("north")})
        member.study = member.study
        object.__setattr__(member.carrier.study, "patience", 1)
        with pytest.raises(RemoteProtocolError, match=r"server 1: nothing came .* server 3"):
            study.mean("los")
        member.close()
        other = consortium.member("north")
        study = programs.study_at(
            other.study, other.carrier, {"north": rows("north").assign(los=1)}
        )
        with pytest.raises(LocalProtocolError, match="the data or the software has changed"):
            study.mean("los")
        other.close()


def test_nothing_in_the_relay_s_file_is_readable(tmp_path):
    """Planted: a column's name, a level, a rare value and its total."""
    consortium = Consortium(tmp_path, ONE)
    frames = {site: rows(site).assign(los=41) for site in SITES}
    with consortium.relay():
        consortium.run(frames)
        database = sqlite3.connect(tmp_path / "relay.db")
        tags = {tag for (tag,) in database.execute("SELECT tag FROM messages")}
        database.close()
        raw = b"".join(p.read_bytes() for p in tmp_path.glob("relay.db*"))
    assert len(tags) >= 5
    total = 41 * 180
    for planted in (b"los", b"medical", total.to_bytes(8, "little"), total.to_bytes(8, "big")):
        assert planted not in raw
    for name in SITES:
        assert consortium.key(name).export() not in raw


def test_sites_that_heard_different_totals_are_noticed(tmp_path):
    consortium = Consortium(tmp_path, TWO)

    def site(name, frame, run):
        member = consortium.member(name, run)
        remember = member.state.remember

        def other(number, session, total, prefix):
            if name == "west" and number == 0:
                total = bytes([total[0] ^ 1]) + total[1:]
            remember(number, session, total, prefix)

        member.state.remember = other
        opened = member.carrier.opened

        def told(session, play):
            first = member.carrier.chain.number == 0
            values = opened(session, play)
            if name == "west" and first:  # what a lying server would have had it compute
                member.carrier.chain.head = b"x" * 32
            return values

        member.carrier.opened = told
        try:
            return {str(a): r for a, r in programs.join(member, name, rows(name))}
        finally:
            member.close()

    with consortium.relay():
        found = consortium.run(site=site)
    errors = [str(e) for e in found.values() if isinstance(e, RemoteProtocolError)]
    assert len(errors) == 6
    assert any("and west go on from different totals before sum 2" in e for e in errors)


def test_a_proposal_off_the_site_s_own_numbers_is_refused_by_name(tmp_path):
    consortium = Consortium(tmp_path, TWO)

    def site(name, frame, run):
        member = consortium.member(name, run)
        agree = member.carrier.agree
        if name == "north":  # the first site steers, say to single somebody out
            member.carrier.agree = lambda what, values, tolerance: agree(
                what, [2 * v for v in values], tolerance
            )
        try:
            return {str(a): r for a, r in programs.join(member, name, rows(name))}
        finally:
            member.close()

    with consortium.relay():
        found = consortium.run(site=site)
    assert "north: proposed other numbers than this site has computed" in str(found["south"])
    assert isinstance(found["west"], RemoteProtocolError)


def test_an_error_at_one_site_stops_all_and_tells_no_value(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        found = consortium.run({"south": rows("south").assign(los=999)})
    assert "bound" in str(found["south"])
    for name in ("north", "west", "server 1"):
        assert str(found[name]).startswith("south: has stopped: an error of its own")
        assert "999" not in str(found[name])


def test_masking_goes_on_without_a_site_that_leaves(tmp_path):
    """All that stay agree on the survivors: their totals are the same."""
    three = ONE + '[[analyses]]\nask = "sum"\ncolumn = "age"\n[[analyses]]\nask = "count"\n'
    sites = ("east", "north", "south", "west")
    consortium = Consortium(tmp_path, three, "masking", sites, "answer_within = 2\n")

    def site(name, frame, run):
        if name != "west":
            return consortium.site(name, frame, run)
        return consortium.leaving(name, run)

    with consortium.relay():
        found = consortium.run(site=site)
    everybody = documents(in_one_process(consortium.path, sites))
    stayed = documents(in_one_process(consortium.path, sites[:3]))
    wanted = {**stayed, "mean(column='los')": everybody["mean(column='los')"]}
    for name in sites[:3]:
        assert documents(found[name]) == wanted
    assert found["server"] is None


@each_case("protocol", ["sharing", "masking"])
def test_training_is_bit_for_bit_that_of_one_process(protocol, tmp_path):
    folder = tmp_path / protocol
    folder.mkdir()
    consortium = Consortium(folder, ONE, protocol)
    seeds = {}

    def trained(study, **facts):
        model = FederatedLogisticRegression(rounds=4, local_epochs=2, batch_size=16, **facts)
        return model.fit(study, "died ~ age + ward")

    def site(name, frame, run):
        member = consortium.member(name, run)
        try:
            with member.telling():
                study = programs.study_at(member.study, member.carrier, {name: rows(name)})
                member.carrier.begin()
                seeds[name] = member.carrier.session_ids(32)
                model = trained(study)
                member.carrier.finish_part()
                member.carrier.finish()
            return model
        finally:
            member.close()

    with consortium.relay():
        found = consortium.run(site=site)
    study = study_file.read(consortium.path)
    together = Study(
        {site: rows(site) for site in SITES},
        columns=study.columns,
        protocol=study.sums(),
        rows=study.rows,
    )
    assert len(set(seeds.values())) == 1
    public = [seeds["north"][:16], seeds["north"]]  # the run's id, and the seed of the orders

    def entropy(size):
        return public.pop(0) if public else system(size)

    wanted = trained(together, entropy=entropy)
    for name in SITES:
        assert not isinstance(found[name], BaseException), found[name]
        assert found[name].coef_.tobytes() == wanted.coef_.tobytes()
        assert found[name].intercept_.tobytes() == wanted.intercept_.tobytes()
        assert found[name].history_ == wanted.history_


@pytest.mark.parametrize("blind", ["false", "true"])
def test_paillier_s_private_key_is_at_its_holder_alone(blind, tmp_path):
    key = PrivateKey.generate(2048)
    public = json.dumps(key.public.to_json())
    facts = f"blind = {blind}\npaillier_public = {public}\n"
    consortium = Consortium(tmp_path, TWO, "paillier", facts=facts)
    consortium.private = key
    with consortium.relay():
        found = consortium.run()
    study = study_file.read(consortium.path)
    together = Study(
        {site: rows(site) for site in SITES},
        columns=study.columns,
        protocol=study.sums(key),
        rows=study.rows,
    )
    wanted = {str(a): a.put_to(together).to_json() for a in study.analyses}
    for site in SITES:
        assert documents(found[site]) == wanted
    assert found["aggregator"] is found["key holder"] is None
    with pytest.raises(KeyMismatchError, match="the private key is elsewhere"):
        study.sums().key(None)
