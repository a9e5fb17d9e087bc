"""Masking behind the common interface: the same numbers as sharing, to the last digit."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from click.testing import CliRunner
from secagg.cohort import ANSWERS, KINDS, stream

from securecomp import Study
from securecomp.cli.main import main
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.protocol import wire
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.secure_sum import secure_sum
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import protocol
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

SECURITY = ["semi-honest", "active"]
SITES = ("north", "south", "east", "west")


def frames(sites=SITES, rows=40):
    """Rows with decimals, negatives, groups, and a site without any."""
    source = np.random.Generator(np.random.PCG64(5))
    made = {}
    for i, name in enumerate(sites):
        count = 0 if name == "west" else rows + i
        made[name] = pd.DataFrame(
            {
                "los": source.integers(0, 60, count),
                "cost": source.integers(-500_000, 500_000, count) / 100,
                "ward": source.choice(["a", "b", "c"], count),
                "died": source.choice(["no", "yes"], count),
            }
        )
    return made


def answers(study):
    asked = [
        study.count(),
        study.count(by="ward"),
        study.sum("los"),
        study.sum("cost", by="ward"),
        study.mean("cost"),
        study.mean("los", by="died"),
        study.variance("cost"),
        study.variance("los", by="ward"),
        study.histogram("los", [0, 7, 14, 60], by="died"),
        study.crosstab("ward", "died"),
    ]
    return [result.to_json() for result in asked]


@each_case("security", SECURITY)
def test_a_study_has_the_same_numbers(security):
    masking = Study(frames(), protocol=Masking(security))
    assert answers(masking) == answers(Study(frames(), protocol="sharing"))
    run = masking.count().run
    assert run.protocol == "masking"
    assert run.servers == 1
    assert set(run.learned) == {"hospital", "server"}
    assert "the result and nothing else" in run.learned["server"]


def test_a_study_finds_masking_by_name():
    assert answers(Study(frames(), protocol="masking")) == answers(Study(frames()))


@pytest.mark.parametrize("options", [[], ["--security", "active"]], ids=SECURITY)
def test_the_command_has_the_same_numbers(tmp_path, options):
    for name, frame in frames(SITES[:3]).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in SITES[:3]]
    asked = ["--count", "--sum", "cost", "--mean", "los", "--variance", "cost"]
    asked += ["--histogram", "los", "--edges", "0,7,60", "--crosstab", "ward", "died", "--json"]
    reports = []
    for how in (["--protocol", "masking", *options], []):
        done = CliRunner().invoke(main, ["stats", *files, *asked, *how])
        assert done.exit_code == 0, done.output
        reports.append(json.loads(done.stdout))
    one, other = reports
    assert one["results"] == other["results"]
    assert (one["protocol"], one["servers"], one["parties"]) == ("masking", 1, 3)
    assert one["rounds"] == (10 if options else 8)
    assert one["learned"]["server"] != other["learned"]["server"]
    lies = "even if it deviates" if options else "if it follows the protocol"
    assert lies in one["learned"]["server"]


def test_two_sites_are_too_few_for_masking(tmp_path):
    study = Study(frames(SITES[:2]), protocol="masking")
    with pytest.raises(ThresholdError, match="with two clients each sees the other's vector"):
        study.count()
    for name, frame in frames(SITES[:2]).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in SITES[:2]]
    done = CliRunner().invoke(main, ["stats", *files, "--count", "--protocol", "masking"])
    assert done.exit_code != 0
    assert "with two clients each sees the other's vector (2 of at least 3)" in done.stderr


class Recorder(LocalCarrier):
    """Notes what kind of message goes from whom to whom."""

    def __init__(self, seed="recorder"):
        super().__init__(stream(seed))
        self.record = []

    def send(self, sender, recipient, data):
        kind = KINDS[wire.split_header(data)[0].kind]
        self.record.append((kind.__name__, sender, recipient))
        return super().send(sender, recipient, data)


def run(values, bound, security="semi-honest", receivers=None):
    carrier = Recorder()
    inputs = {name: lambda v=v: np.asarray(v) for name, v in values.items()}
    length = len(next(iter(values.values())))
    total = Masking(security).run(carrier, Layout(length, bound), inputs, receivers)
    return total, carrier


@each_case("security", SECURITY)
def test_every_message_is_carried_once(security):
    values = {name: [i, -i] for i, name in enumerate(SITES)}
    total, carrier = run(values, 10, security)
    assert total.tolist() == [6, -6]
    assert set(Counter(carrier.record).values()) == {1}
    kinds = Counter(kind for kind, _, _ in carrier.record)
    steps = [k.__name__ for k in ANSWERS.values()] + ["Keys", "Boxes", "Survivors", "UnmaskedTotal"]
    steps += ["Consents"]
    absent = set() if security == "active" else {"Consent", "Consents"}
    assert kinds == {kind: 4 for kind in steps if kind not in absent}
    assert all("server" in (a, b) for _, a, b in carrier.record)
    assert carrier.transcript.messages == len(carrier.record)
    # A round is what does not wait for each other: every step there and back, then the total.
    assert carrier.transcript.rounds == (10 if security == "active" else 8)


def test_only_the_receivers_get_the_total():
    values = {name: [1, 2, 3] for name in SITES}
    total, carrier = run(values, 3, receivers=("registry", "south"))
    assert total.tolist() == [4, 8, 12]
    got = [to for kind, _, to in carrier.record if kind == "UnmaskedTotal"]
    assert sorted(got) == ["registry", "south"]


def test_nothing_leaves_before_every_input_is_there():
    values = {name: [1] for name in SITES}
    inputs = {name: lambda v=v: np.asarray(v) for name, v in values.items()}

    def broken():
        raise ValueError("no data")

    carrier = Recorder()
    with pytest.raises(ValueError, match="no data"):
        Masking().run(carrier, Layout(1, 1), inputs | {"east": broken})
    assert carrier.record == []


def test_a_value_beyond_the_bound_is_found_before_anything_leaves():
    carrier = Recorder()
    inputs = {name: lambda: np.array([7]) for name in SITES}
    with pytest.raises(RangeError, match="a value is beyond the bound"):
        Masking().run(carrier, Layout(1, 6), inputs)
    assert carrier.record == []


@each_case("length", [0, 1, 70_000])
def test_sums_of_every_length_in_threads_too(length):
    bound = 2**33
    ramp = np.arange(length) - length // 2
    values = {name: ramp * (i - 2) for i, name in enumerate(SITES)}
    total, _ = run(values, bound)
    assert total.dtype == np.int64
    assert np.array_equal(total, ramp * -2)


@each_case("numbers", [{"decimals": 2}, {"bits": 20}])
def test_secure_sums_are_the_same_as_by_sharing(numbers):
    source = np.random.Generator(np.random.PCG64(1))
    vectors = {n: np.round(source.uniform(-999, 999, (3, 5)), 2) for n in SITES}
    one = secure_sum(vectors, bound=1000, protocol="masking", entropy=stream("m"), **numbers)
    two = secure_sum(vectors, bound=1000, protocol="sharing", entropy=stream("s"), **numbers)
    assert one.integers == two.integers
    assert one.values.tolist() == two.values.tolist()
    assert one.values.shape == (3, 5)
    assert (one.protocol, one.scale) == ("masking", two.scale)


def test_totals_wider_than_the_modulus_travel_as_limbs():
    values = {name: np.array([2**70 + i, -(2**69)], object) for i, name in enumerate(SITES)}
    one = secure_sum(values, bound=2**71, protocol="masking", entropy=stream("limbs"))
    assert one.integers == [4 * 2**70 + 6, -4 * 2**69]


def test_the_limit_is_what_63_bits_hold():
    assert Masking().limit == 2**62 - 1
    for clients in (3, 4, 7):
        bound = Masking().limit // clients
        values = {f"s{i}": [bound, -bound] for i in range(clients)}
        total, _ = run(values, bound)
        assert total.tolist() == [clients * bound, -clients * bound]


def test_choices():
    assert isinstance(protocol("masking"), Masking)
    assert isinstance(protocol("sharing"), Sharing)
    assert protocol("masking").security == "semi-honest"
    assert protocol("masking", security="active").security == "active"
    with pytest.raises(ParameterError, match='security is "semi-honest" or "active", not'):
        Masking("paranoid")
    with pytest.raises(ParameterError, match="choose from: sharing, masking"):
        protocol("masks")


def test_a_site_called_like_the_server():
    values = {name: [1] for name in ("north", "server", "east")}
    with pytest.raises(ParameterError, match="a site is named 'server', as a computing server is"):
        run(values, 1)


def test_fifty_sites_use_a_sparse_graph_and_the_same_sum():
    values = {f"s{i:02}": np.arange(5) * i for i in range(60)}
    total, carrier = run(values, 4 * 59)
    assert total.tolist() == [59 * 60 // 2 * k for k in range(5)]
    shares = [size for name, size in carrier.transcript.sent.items() if name != "server"]
    assert max(shares) < 60 * 200
