"""What each role computes is told apart, by whose step it is or by the round."""

from types import SimpleNamespace

import pytest
from fakes import FakeClock

from securecomp.overhead.cases import clocked_carrier
from securecomp.overhead.cases.clocked_carrier import ClockedCarrier
from securecomp.overhead.job import Communication


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(clocked_carrier, "time", SimpleNamespace(thread_time=clock))
    return clock


def works(clock, **seconds):
    """Return the work of parties that take so many seconds, by the first letter of their names."""

    def work(name):
        clock.now += seconds[str(name).replace(" ", "_")]
        return name

    return work


def test_the_median_party_of_each_role(clock):
    carrier = ClockedCarrier()
    clock.now += 100  # what is done between the steps is nobody's
    first = works(clock, hospital_1=1.0, hospital_2=2.0, hospital_3=9.0)
    carrier.each(first, ["hospital 1", "hospital 2", "hospital 3"], 1)
    carrier.each(works(clock, server_1=4.0, server_2=6.0), ["server 1", "server 2"], 1)
    again = works(clock, hospital_1=0.5, hospital_2=0.5, hospital_3=0.5)
    carrier.each(again, ["hospital 1", "hospital 2", "hospital 3"], 1)
    clock.now += 100
    carrier.each(works(clock, analyst=0.25), ["analyst"], 1)
    assert carrier.parts() == {"hospital": 2.5, "server": 5.0, "decode": 0.25}


def test_a_round_may_be_somebody_s(clock):
    carrier = ClockedCarrier()
    carrier.each(works(clock, hospital_1=1.0), ["hospital 1"], 1)
    clock.now += 2.0
    carrier.next_round()
    clock.now += 3.0
    carrier.next_round()
    clock.now += 5.0
    carrier.each(works(clock, hospital_1=0.5), ["hospital 1"], 1)
    found = carrier.parts(lambda rounds: "aggregator" if rounds < 3 else "key holder")
    assert found == {"hospital": 1.0, "aggregator": 5.0, "key holder": 5.0, "decode": 0.5}


def test_parties_by_their_numbers(clock):
    carrier = ClockedCarrier(["hospital 1", "hospital 2"])

    def work(index):
        clock.now += 1.0 + index

    carrier.each(work, range(2), 1)
    carrier.each(work, [0], 1)
    assert carrier.parts() == {"hospital": 1.5, "decode": 1.0}


def test_a_new_computation_starts_from_zero(clock):
    carrier = ClockedCarrier()
    carrier.each(works(clock, server=7.0), ["server"], 1)
    carrier.start()
    carrier.each(works(clock, server=1.0), ["server"], 1)
    carrier.each(works(clock, server=2.0), ["server"], 1)
    assert carrier.parts() == {"server": 1.0, "decode": 2.0}


def test_bytes_by_the_party_of_a_role_that_sends_most():
    carrier = ClockedCarrier()
    carrier.send("hospital 2", "server", b"12345")
    carrier.send("hospital 1", "server", b"123")
    carrier.send("server", "analyst", b"1")
    carrier.send("server", "server", b"kept")
    cost = Communication.of(carrier.transcript)
    assert cost == Communication(5, 9, 1, 3, {"hospital": 5, "server": 1}, 8)
    assert Communication.of(carrier.transcript, ["hospital 1"]).bytes_by_role["site"] == 3
