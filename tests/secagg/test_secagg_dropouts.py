"""Every set of clients drops out at every step: the exact sum of the survivors, or nothing."""

import itertools
from math import comb

import pytest
from cases import each_case
from secagg.cohort import STEPS, Cohort, needed

from securecomp.errors import ThresholdError
from securecomp.protocol.role import State


def schedules(clients, active):
    """Each client drops out before one of the steps, or never."""
    steps = [step for step in STEPS if active or step != "consent"]
    return itertools.product([*steps, None], repeat=clients)


def expected(names, schedule, active):
    """Who survives, and who is there at the last step; None if too few are left anywhere."""
    threshold = needed(len(names), active)
    cohort = max(3, threshold)
    steps = [step for step in STEPS if active or step != "consent"]
    there, survivors = list(names), []
    for step in steps:
        there = [n for n in there if schedule[n] != step]
        if step == "mask":
            survivors = there
        if len(there) < (threshold if step in ("consent", "unmask") else cohort):
            return None, step
    return survivors, there


def holders(cohort):
    """How many different clients' shares of each secret the server has: (seed, mask key)."""
    survivors = {cohort.names[i] for i in cohort.server._survivors}
    held = {}
    for (holder, owner), rows in cohort.revealed.items():
        assert len(rows) == 1, f"{holder} answered twice for {owner}"
        kind = "seed" if owner in survivors else "mask key"
        held.setdefault((owner, kind), set()).add(holder)
    return held


def check(clients, active, combination):
    cohort = Cohort(clients, security="active" if active else "semi-honest")
    assert cohort.parameters.threshold == needed(clients, active)
    schedule = dict(zip(cohort.names, combination, strict=True))
    drops = {step: {n for n in cohort if schedule[n] == step} for step in STEPS}
    survivors, last = expected(cohort.names, schedule, active)
    if survivors is None:
        with pytest.raises(ThresholdError) as error:
            cohort.finish(drops)
        assert error.value.got < error.value.needed
        assert cohort.server.state is State.ABORTED
        assert cohort.server._aggregate is None
        # The server has fewer shares of every secret than bring it back.
        assert all(len(who) < needed(clients, active) for who in holders(cohort).values())
        assert (last == "unmask") or not cohort.revealed
        return 0
    result = cohort.finish(drops)
    assert list(result.survivors) == survivors
    assert result.values.tolist() == cohort.total(survivors)
    held = holders(cohort)
    shared = [n for n in cohort if schedule[n] not in ("advertise", "share")]
    assert held == {
        (owner, "seed" if owner in survivors else "mask key"): set(last) for owner in shared
    }
    # Who dropped at the last step has masked, and is in the sum.
    assert all(n in survivors for n in cohort if schedule[n] in ("consent", "unmask"))
    return 1


def every(clients, active, possible):
    worked = sum(check(clients, active, c) for c in schedules(clients, active))
    assert worked == possible


def count(clients, active):
    """How many schedules leave enough clients: some drop in the first three steps, some later."""
    threshold, cohort = needed(clients, active), max(3, needed(clients, active))
    late = 2 if active else 1
    return sum(
        comb(clients, alive) * 3 ** (clients - alive) * comb(alive, there) * late ** (alive - there)
        for alive in range(cohort, clients + 1)
        for there in range(threshold, alive + 1)
    )


@each_case("active", [False, True])
def test_every_dropout_of_three(active):
    every(3, active, count(3, active))


@pytest.mark.slow
@each_case("active", [False, True])
def test_every_dropout_of_four(active):
    every(4, active, count(4, active))


def test_some_dropouts_of_four_under_an_active_server():
    """Every seventh schedule, of those that leave enough and of those that do not."""
    worked = [check(4, True, c) for c in list(schedules(4, True))[::7]]
    assert 0 < sum(worked) < len(worked)


@pytest.mark.slow
@each_case("active", [False, True])
def test_every_dropout_of_five(active):
    every(5, active, count(5, active))


def test_the_counts():
    # 3 clients, semi-honest: all mask, and none or any one drops at the end.
    assert count(3, False) == 1 + 3
    # Active: a threshold of three.
    assert count(3, True) == 1
    assert count(4, False) == 4 * 3 + 1 + 4
    assert count(4, True) == 4 * 3 + 1 + 4 * 2


def test_who_did_not_sign_is_not_waited_for():
    cohort = Cohort(5, security="active")
    cohort.reach("consent")
    cohort.step("consent", {"c2"})
    assert set(cohort.inbox) == {"c0", "c1", "c3", "c4"}
    assert cohort.server.missing == ["c0", "c1", "c3", "c4"]
