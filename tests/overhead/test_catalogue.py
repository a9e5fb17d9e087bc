"""The cases of `securecomp bench`: each gives plaintext's result, and says what it spends."""

import pytest
from cases import named

from securecomp.errors import ParameterError, WrongResultError
from securecomp.overhead import catalogue
from securecomp.overhead.cases import encrypted_inference, inference_parties, private_sums
from securecomp.overhead.job import DECODE, chosen
from securecomp.overhead.published_claims import CLAIMS

CASES = catalogue.listed(with_peers=1)
ONCE = [case for case in CASES if not case.series]
SMALLEST = {case.batch: case for case in reversed(CASES) if case.series}


def test_names_and_claims():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {case.family for case in CASES} == {"", *(claim.family for claim in CLAIMS)}
    assert {case.scheme for case in CASES} >= {"sharing", "masking", "paillier", "shares", "ckks"}


def test_the_secure_side_gives_plaintext_s_result():
    for case in [*ONCE, *SMALLEST.values()]:
        with named(case):
            for module in case.needs:
                pytest.importorskip(module)
            job = case.build(max(case.tiny, 4))
            state = job.prepare()
            result = job.secure(state)
            assert 0 <= job.check(job.plain(), result) < 0.05
            assert (not case.series) or job.sizes[case.series] >= case.tiny
            cost = job.cost(state, result)
            assert 0 < cost.bytes_per_party <= cost.bytes_total
            assert cost.rounds >= 2
            assert (
                max(cost.bytes_by_role.values(), default=cost.bytes_per_party)
                == cost.bytes_per_party
            )
            if job.parts:
                parts = job.parts(state, result)
                assert parts.keys() > {DECODE}
                assert all(seconds >= 0 for seconds in parts.values())


def test_every_role_s_time_and_bytes():
    for protocol, roles in [
        ("sharing", {"hospital", "server"}),
        ("masking", {"hospital", "server"}),
        ("paillier", {"hospital", "aggregator", "key holder"}),
    ]:
        with named(protocol, roles):
            job = private_sums.job(protocol, 4, 50, keys=False)
            state = job.prepare()
            result = job.secure(state)
            assert job.parts(state, result).keys() == roles | {DECODE}
            assert job.cost(state, result).bytes_by_role.keys() == roles
            transcript = state.transcript
            assert job.cost(state, result).bytes_total == sum(transcript.sent.values())
            assert sum(transcript.received.values()) == transcript.bytes_sent


def test_a_total_that_is_wrong_is_refused():
    job = private_sums.job("sharing", 3, 10)
    total = job.secure(job.prepare()).copy()
    total[3] += 1
    with pytest.raises(WrongResultError):
        job.check(job.plain(), total)


def test_predictions_that_are_off_are_refused():
    job = encrypted_inference.with_keys(4, 3)
    answer = job.secure(job.prepare())
    with pytest.raises(WrongResultError, match="more than the plan's"):
        inference_parties.InferenceParties.make(4, 3).error(answer.values + 0.01)


def test_sizes_that_the_user_gives():
    cases = {c.name: c for c in catalogue.listed(elements=16, parties=5, features=7, quick=1)}
    for name, sizes in {
        "sum/sharing": {"parties": 5, "elements": 16},
        "statistics/moments": {"parties": 5, "elements": 80, "rows": 16},
        "shares/matmul": {"parties": 2, "elements": 16, "side": 4},
        "inference/logits": {"elements": 16, "rows": 16, "features": 7, "cores": 1},
    }.items():
        case = cases[name]
        assert case.size == case.quick == 16
        assert dict(case.build(case.quick).sizes) == sizes


def test_sizes_that_cannot_be():
    for sizes, option in [
        ({"elements": 3}, "--elements"),
        ({"elements": 10**9}, "--elements"),
        ({"parties": 2}, "--parties"),
        ({"features": 0}, "--features"),
    ]:
        with named(sizes, option), pytest.raises(ParameterError, match=option):
            catalogue.listed(**sizes)


def test_a_quick_run_is_small():
    quick, whole = catalogue.listed(quick=1), catalogue.listed()
    assert len(quick) < len(whole)
    assert {case.name for case in quick} < {case.name for case in whole}
    assert all(case.quick <= case.size for case in whole)


def test_choosing():
    assert [c.name for c in chosen(CASES, ["sum/sharing"])] == ["sum/sharing"]
    assert len(chosen(CASES, ["sum"])) == 3
    assert chosen(CASES, []) == list(CASES)
    with pytest.raises(ParameterError, match="there is no case 'su'; --list"):
        chosen(CASES, ["sum", "su"])


def test_the_data_are_the_same_everywhere():
    from securecomp.overhead.cases import synthetic_data as data

    assert data.integers((2, 3), 10).tolist() == data.integers((2, 3), 10).tolist()
    assert abs(data.integers((1000,), 10)).max() == 10
    assert data.reals((1000,), 2.0).min() < -1.9
    assert data.integers((4,), 1 << 40).tolist() != data.integers((4,), 1 << 40, 1).tolist()


def test_the_plaintext_regression_is_statsmodels_s():
    import numpy as np
    import statsmodels.api as sm

    from securecomp.overhead.cases.logistic_regressions import newton

    draw = np.random.default_rng(1)
    design = np.column_stack([np.ones(300), draw.normal(size=(300, 2))])
    died = (draw.random(300) < 0.3).astype(float)
    expected = sm.GLM(died, design, family=sm.families.Binomial()).fit(tol=1e-12)
    assert newton(design, died) == pytest.approx([*expected.params, *expected.bse], rel=1e-8)
