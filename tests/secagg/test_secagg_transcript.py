"""Known answers: what every byte of an honest run is, given its randomness."""

import json

import numpy as np
from cases import each_case
from secagg import reference
from secagg.cohort import SERVER, Cohort

from securecomp.secagg import Parameters

CASES = {case["name"]: case for case in json.loads(reference.VECTORS.read_text())["cases"]}
runs = {}


def want(name):
    """The reference's run; the slow one is made once."""
    if name not in runs:
        runs[name] = reference.Run(CASES[name])
    return runs[name]


def library(case, seed=None):
    """The library's run: the cohort, and the messages in the order of the reference."""
    terms = case["terms"]
    cohort = Cohort(
        case["clients"],
        length=case["length"],
        bound=case["bound"],
        seed=seed or case["seed"],
        receivers=tuple(case["receivers"]),
        parameters=Parameters(**terms | {"active": bool(terms["active"])}),
    )
    span = 2 * case["bound"] + 1
    for i, name in enumerate(cohort):
        values = [((i + 1) * 7919 * (k + 1) ** 3) % span for k in range(case["length"])]
        cohort.values[name] = np.array(values, np.int64) - case["bound"]
    sent = []
    for step in cohort.steps:
        for name in cohort.names if step == "advertise" else list(cohort.inbox):
            if name not in case["drops"].get(step, ()):
                sent.append((step, bytes(cohort.do(step, name))))
                cohort.take(sent[-1][1])
        cohort.inbox = cohort.server.close()
        sent += [("answer", bytes(data)) for data in cohort.inbox.values()]
    return cohort, sent


@each_case("name", CASES)
def test_the_library_sends_what_the_reference_says(name):
    run = want(name)
    cohort, sent = library(CASES[name])
    assert cohort.session.agreement == run.agreement
    assert len(sent) == len(run.messages)
    for number, ((step, got), (kind, data)) in enumerate(zip(sent, run.messages, strict=True)):
        assert got == data, f"message {number}, {step} / {kind}"
    result = cohort.server.result()
    weight = [result.weight] if result.weight is not None else []
    assert result.values.tolist() + weight == run.total
    assert list(result.survivors) == run.survivors
    for receiver in CASES[name]["receivers"]:
        got = cohort.receiver(receiver).receive(cohort.inbox[receiver])
        assert got.values.tolist() == result.values.tolist()
        assert got.weight == result.weight


@each_case("name", CASES)
def test_the_transcript_is_the_recorded_one(name):
    run, case = want(name), CASES[name]
    assert run.agreement.hex() == case["agreement"]
    assert run.survivors == case["survivors"]
    assert len(run.messages) == case["messages"]
    assert run.digest() == case["sha256"]
    assert min((data for _, data in run.messages), key=len).hex() == case["shortest_message"]


def test_the_file_has_the_cases_of_the_reference():
    kept = [{key: case[key] for key in reference.CASES[0]} for case in CASES.values()]
    assert kept == reference.CASES


def test_other_randomness_gives_other_bytes():
    case = CASES["three clients"]
    one, two = (library(case, seed)[1] for seed in ("one", "two"))
    assert len(one) == len(two)
    assert all(a != b for a, b in zip(one, two, strict=True))


def test_every_message_once_and_nothing_else():
    steps = [step for step, _ in want("active and weighted").messages]
    # Seven advertise; one drops before sharing, one before masking.
    counts = {step: steps.count(step) for step in reference.KINDS}
    assert counts == {
        "advertise": 7,
        "keys": 7,
        "share": 6,
        "boxes": 6,
        "mask": 5,
        "survivors": 5,
        "consent": 5,
        "consents": 5,
        "unmask": 5,
        "total": 1,
    }
    assert CASES["active and weighted"]["receivers"] == [SERVER]
