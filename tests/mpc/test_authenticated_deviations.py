"""Computing on shares with MACs: no result at all where a party deviates.

The same run without the deviation passes, so that each test can fail.
"""

import functools

import numpy as np
import pytest
from cases import each_case
from deviations import (
    AT_THE_OUTPUT,
    MACS,
    ONE,
    OTHERS,
    Run,
    correction,
    input_share,
    lie,
    lie_to_all,
)

from securecomp.core import field
from securecomp.errors import (
    AuthenticationError,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
)
from securecomp.mpc import mac_driver
from securecomp.mpc.roles import vector_body
from securecomp.protocol.role import State


@pytest.fixture
def run(replay):
    return functools.partial(Run, replay)


def multiply_and_reveal(r, cheat=None, to=None):
    x = r.share("ada", [31, 47])
    y = r.share("ben", [53, 59])
    if cheat is not None:
        cheat(r, x)
    return (x * y).reveal(to)


def check_aborted(r):
    assert [m.state for m in r.members] == [State.ABORTED] * len(r.members)
    assert r.driver.dealer.state == State.ABORTED
    assert not r.driver.dealer.seeds
    for member in r.members:
        assert member._part is None
        assert not member._opened
        with pytest.raises(LocalProtocolError, match="aborted"):
            _ = member.key


def check_nothing_works(r, x):
    for use in (
        lambda: r.share("ada", [1, 2]),
        lambda: x * x,
        lambda: x.square(),
        lambda: x + 1,
        lambda: x < 0,
        lambda: x == 0,
        lambda: x.reshape(1, 2) @ x.reshape(2, 1),
        lambda: x.reveal(),
        lambda: x.reveal("ben"),
        lambda: r.engine.shifted(x.value, 3),
    ):
        with pytest.raises((ProtocolError, IndexError)):
            use()


@each_case("to", [None, "cyd", ["ada", "ben"]])
@each_case("cheat, reason", [*((cheat, "MACs do not fit") for cheat in MACS), *OTHERS])
def test_who_cheats_ends_it_and_nothing_is_revealed(run, cheat, reason, to):
    honest = run(3)
    result = [31 * 53, 47 * 59]
    assert multiply_and_reveal(honest, None, to).tolist() == result
    assert honest.revealed(result) if to is None else not honest.revealed(result)

    r = run(3)
    kept = []

    def cheating(r, x):
        kept.append(x)
        cheat(r, x)

    with pytest.raises(ProtocolError, match=reason):
        multiply_and_reveal(r, cheating, to)
    assert r.driver.checks == (cheat in AT_THE_OUTPUT)
    if cheat not in AT_THE_OUTPUT or to is not None:
        assert not r.revealed(result)  # neither returned nor opened
    check_aborted(r)
    check_nothing_works(r, kept[0])


@each_case("parties", [2, 4])
@each_case("cheat", MACS)
def test_macs_are_checked_by_any_number_of_parties(run, parties, cheat):
    assert multiply_and_reveal(run(parties)).tolist() == [31 * 53, 47 * 59]
    r = run(parties)
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        multiply_and_reveal(r, cheat)
    check_aborted(r)


def test_who_knew_alpha_could_cheat(run):
    """What the checks rest on: a share and its MAC that are changed together are not found."""

    def cheat(r, x):
        alpha = ONE - ONE
        for member in r.members:
            alpha = field.add(alpha, member.key)
        input_share(r, x)
        x.value[1][1, 0] = field.add(x.value[1][1, 0], alpha)

    assert multiply_and_reveal(run(3), cheat).tolist() == [32 * 53, 47 * 59]


def test_a_message_that_is_changed_on_the_way(run):
    r = run(3)
    x = r.share("ada", [1, 2])
    send = r.network.send
    r.network.send = lambda a, b, data: send(a, b, bytes(data)[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(AuthenticationError, match="changed on the way"):
        x.square()
    r.network.send = send
    check_aborted(r)
    check_nothing_works(r, x)


def test_an_owner_tells_two_stories(run):
    r = run(3)
    r.members[0]._sealed = lie(r.members[0], to=["cyd"])
    x = r.share("ada", [1, 2])
    with pytest.raises(ProtocolError, match="did not hear the same"):
        x.reveal()
    assert not r.revealed([1, 2])
    check_aborted(r)


def test_an_owner_says_a_vector_of_another_length(run):
    r = run(3)
    change = functools.partial(vector_body, np.zeros(3, np.uint64))
    r.members[0]._sealed = lie(r.members[0], change=lambda body: change(field.BITS))
    with pytest.raises(RemoteProtocolError, match=r"^ada: the vector has 3 elements"):
        r.share("ada", [1, 2])
    check_aborted(r)


@each_case("said", [bytes(9), b"", field.MODULUS.to_bytes(8, "big"), b"\xff" * 8])
def test_a_sigma_is_a_residue(run, said):
    r = run(3)
    x = r.share("ada", [1, 2])
    commit = r.members[1]._commit
    r.members[1]._commit = lambda secret: commit(secret if len(secret) == 32 else said)
    with pytest.raises(RemoteProtocolError, match=r"^ben: its part of the check is not a residue"):
        x.square().reveal()
    check_aborted(r)


@each_case("row", [0, 1])
@each_case(
    "work",
    [
        lambda x: x < 40,
        lambda x: x == 40,
        lambda x: x.truncate(3),
        lambda x: x.square(),
        lambda x: x.reshape(1, 2) @ x.reshape(2, 1),
    ],
)
def test_material_that_the_last_party_changes(run, work, row):
    honest = run(3)
    work(honest.share("ada", [31, 47], bits=4)).reveal()
    r = run(3)
    x = r.share("ada", [31, 47], bits=4)
    correction(0, row)(r, x)
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        work(x).reveal()
    check_aborted(r)


@each_case("turn", range(7))
def test_every_opening_of_a_comparison_is_checked(run, turn):
    r = run(2)
    x = r.share("ada", [31, -47])
    lie_to_all(r, 1, turn=turn)
    below = x < 0
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        below.reveal()
    check_aborted(r)


def test_errors_that_would_cancel_without_coefficients_are_found(run):
    r = run(2)
    x = r.share("ada", [31, 47])
    lie_to_all(r, 1, errors=(1, -1))
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        x.square().reveal()


def test_much_is_checked_before_anything_is_revealed(run, monkeypatch):
    monkeypatch.setattr(mac_driver, "LARGEST_UNCHECKED", 10)
    honest = run(2)
    x = honest.share("ada", [1, 2, 3])
    assert (x * x * x).reveal().tolist() == [1, 8, 27]
    assert honest.driver.checks == 3
    r = run(2)
    x = r.share("ada", [1, 2, 3])
    lie_to_all(r, 0)
    y = x * x
    with pytest.raises(ProtocolError, match="MACs"):
        y * x
