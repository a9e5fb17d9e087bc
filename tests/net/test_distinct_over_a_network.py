"""Distinct patients over a network: totals for analysts alone, and a key for sites alone."""

import pandas as pd
import pytest
from consortium import Consortium
from test_over_a_network import ONE
from test_questions import staying

from securecomp.errors import ParameterError, SecureCompError
from securecomp.net import programs, study_file
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.statistics import Study

RULES = '[questions]\nanswer = ["distinct", "mean"]\n'
OWN = '[[analyses]]\nask = "distinct"\ncolumns = "patient"\nexpected = 600\nerror = 0.05\n'
LOS = "[columns.los]\nbound = 60\ndecimals = 0\n"
ASK = {"expected": 600, "error": 0.05}


def registry(first, last, kind=str):
    size = last - first
    return pd.DataFrame({"patient": list(map(kind, range(first, last))), "los": [5] * size})


FRAMES = {"north": registry(0, 200), "south": registry(100, 300), "west": registry(250, 400)}


def test_an_analyst_counts_what_one_process_counts_and_no_site_hears_it(tmp_path):
    consortium = Consortium(
        tmp_path, RULES + OWN, facts='receivers = "analysts"\n', analysts=("alice",), columns=LOS
    )
    with staying(consortium, FRAMES) as found, consortium.asked("alice") as study:
        (_, own), *_ = study.own()
        asked = study.distinct("patient", **ASK)
        mean = study.mean("los")
        study.no_more()
    assert mean.value == 5
    for site in FRAMES:
        assert [None if r is None else r.value for _, r in found[site]][:2] == [None, None]
    for result in (own, asked):
        assert result.per_site == 550
        assert result.low <= 400 <= result.high
    with consortium.relay():
        member = consortium.member("north")
        keys = [v for (v,) in member.state._db.execute(
            "SELECT value FROM facts WHERE name LIKE '1/key/%' ORDER BY name")]  # fmt: skip
        member.close()
    assert len(set(keys)) == 2  # another one for every question

    class Keyed(LocalCarrier):
        def sites_key(self):
            return keys[1]

    one = Study(FRAMES, carrier=Keyed()).distinct("patient", **ASK)
    assert (one.cells, one.per_site) == (asked.cells, asked.per_site)
    # Cells that masks made look empty by chance differ; those that are, do not.
    assert abs(one.empty - asked.empty) <= 3


def test_the_analyst_has_no_key_of_the_sites(tmp_path):
    consortium = Consortium(tmp_path, RULES, analysts=("alice",), columns=LOS)
    with staying(consortium, FRAMES), consortium.asked("alice") as study:
        study.distinct("patient", **ASK)
        study.no_more()
    key = None
    with consortium.relay():
        for name in ("north", "alice", "server 1"):
            member = consortium.member(name)
            stored = [bytes(v) for (v,) in member.state._db.execute("SELECT value FROM facts")]
            stored += [bytes(v) for (v,) in member.state._db.execute("SELECT body FROM inbox")]
            if name == "north":
                key = next(
                    bytes(v)
                    for (v,) in member.state._db.execute(
                        "SELECT value FROM facts WHERE name LIKE '1/key/%'"
                    )
                )
            else:
                assert not any(key in each for each in stored)
            member.close()


def test_sites_whose_identifiers_differ_in_kind_are_told(tmp_path):
    consortium = Consortium(tmp_path, RULES, analysts=("alice",), columns=LOS)
    frames = {**FRAMES, "west": registry(250, 400, int)}
    with staying(consortium, frames), consortium.asked("alice") as study:
        with pytest.raises(ParameterError, match="different kinds of values at different sites"):
            study.distinct("patient", **ASK)
        study.no_more()


def test_without_an_analyst_it_is_refused_before_anything_is_sent(tmp_path):
    with pytest.raises(ParameterError, match=r"an analyst hears the totals.*\[analysts\]"):
        Consortium(tmp_path, OWN, columns=LOS)
    other = tmp_path / "other"
    other.mkdir()
    consortium = Consortium(other, ONE, columns=LOS)
    study = study_file.read(consortium.path)
    with consortium.relay():
        member = consortium.member("south")
        try:
            joined = programs.study_at(study, member.carrier, {"south": FRAMES["south"]})
            with pytest.raises(SecureCompError, match="over a network an analyst hears"):
                joined.distinct("patient", **ASK)
        finally:
            member.close()
