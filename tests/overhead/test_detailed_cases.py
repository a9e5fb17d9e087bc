"""The developer's cases: each gives plaintext's result, and its check notices a wrong one."""

import numpy as np
import pytest
from cases import named

from benchmarks import targets
from benchmarks.peers.software import PEERS
from benchmarks.table import assumptions
from securecomp.errors import RangeError, WrongResultError
from securecomp.overhead import catalogue
from securecomp.overhead.cases import exact_noise, masking_steps
from securecomp.privacy import samplers
from securecomp.secagg import masking

CASES = catalogue.detailed()


def one_of_a_kind():
    """The first case of each kind: the first two parts of the name."""
    kinds = {}
    for case in CASES:
        kinds.setdefault(tuple(case.name.split("/")[:2]), case)
    return kinds.values()


def test_each_kind_gives_plaintext_s_result():
    for case in one_of_a_kind():
        with named(case.name):
            job = case.build(case.tiny)
            state = job.prepare()
            result = job.secure(state)
            assert job.check(job.plain(), result) >= 0
            assert case.series == "" or case.series in job.sizes
            if job.cost is not None:
                assert job.cost(state, result).bytes_total >= 0
            if job.seconds is not None:
                assert job.seconds(result) > 0


def test_names_are_unique_and_targets_are_of_cases():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) > 80
    assert set(targets.TARGETS) <= set(names)
    kept = {case.name: case.targets for case in targets.listed() if case.targets}
    assert kept == targets.TARGETS
    compared = [comparison.case for peer in PEERS for comparison in peer.comparisons]
    assert set(compared) <= set(names)


def first_only(wrong, right):
    """A function that is wrong at its first call."""
    calls = iter([wrong])
    return lambda *given: next(calls, right)(*given)


def test_a_masked_vector_that_is_wrong_is_noticed(monkeypatch):
    """Its masks come off only if they are on, and only then is the total that of the vectors."""
    right = masking.masked_body
    for fault, wrong in {
        "another vector": lambda vector, *rest: right(np.roll(vector, 1), *rest),
        "no masks": lambda vector, plus, minus, bits: right(vector, [], [], bits),
        "a mask left out": lambda vector, plus, minus, bits: right(vector, plus[1:], minus, bits),
    }.items():
        with monkeypatch.context() as patch, named(fault):
            patch.setattr(masking, "masked_body", first_only(wrong, right))
            job = masking_steps.one_mask(10, 50)
            result = job.secure(None)
            with pytest.raises((WrongResultError, RangeError), match=r"survivors|beyond"):
                job.check(job.plain(), result)


def test_noise_that_is_missing_or_too_wide_is_noticed(monkeypatch):
    drawn = samplers.skellam
    for factor in (0, 3):
        with monkeypatch.context() as patch, named(factor):
            patch.setattr(samplers, "skellam", lambda *given, f=factor: f * drawn(*given))
            for job in (exact_noise.apart(4, 1), exact_noise.apart(4, 1000)):
                found = job.secure(None)
                with pytest.raises(WrongResultError, match="deviation"):
                    job.check(job.plain(), found)
            job = exact_noise.kept("skellam", 1000)
            found = job.secure(None)
            with pytest.raises(WrongResultError, match=r"deviation|within the error"):
                job.check(job.plain(), found)


def test_phe_is_compared_with_both_exponents_and_the_short_one_s_assumption_is_named():
    for bits in (2048, 3072):
        (peer,) = (peer for peer in PEERS if peer.name == f"phe{bits}")
        compared = {comparison.case: comparison.title for comparison in peer.comparisons}
        assert "full exponent against our short one" in compared[f"paillier/encrypt/{bits}"]
        assert "full exponents" in compared[f"paillier/encrypt-full/{bits}"]
        assert "assumes more than Paillier's" in peer.how
    (text,) = assumptions([{"compared_with": "paillier/encrypt/2048"}])
    assert "assumes more than Paillier's" in text
    assert assumptions([{"compared_with": "paillier/add/2048"}, {}]) == []
