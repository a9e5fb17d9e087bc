"""A server that lies about who survived and who signed for it; see `lying`."""

import types

import pytest
from cases import each_case
from secagg.cohort import Cohort, flipped
from secagg.lying import ALICE, SECURITY, again, finishes, refused

from securecomp.errors import (
    AuthenticationError,
    LocalProtocolError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.protocol.role import State
from securecomp.secagg.masking_messages import Consent, Consents, Survivors

# The survivors.


def first(security):
    """The step that takes the survivors."""
    return "consent" if security == "active" else "unmask"


LEFT_OUT = "server: its list of survivors is malformed or leaves this client out"
BACK = "server: it brings back a client that had dropped out"
SURVIVOR_LIES = [
    ("itself left out", LEFT_OUT, [0, 2, 3, 4]),
    ("nobody", LEFT_OUT, []),
    ("out of order", LEFT_OUT, [1, 0, 2, 3]),
    ("somebody twice", LEFT_OUT, [0, 1, 1, 2, 3]),
    ("a stranger", LEFT_OUT, [0, 1, 2, 3, 6]),
    ("a stranger of a huge number", LEFT_OUT, [0, 1, 2, 3, 2**63]),
    ("a stranger below zero", LEFT_OUT, [-1, 0, 1, 2, 3]),
    ("who never shared", BACK, [0, 1, 2, 3, 4]),
    ("who never advertised", BACK, [0, 1, 2, 3, 5]),
    ("both", BACK, [0, 1, 2, 3, 4, 5]),
]


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize(
    ("reason", "survivors"), [pytest.param(r, s, id=name) for name, r, s in SURVIVOR_LIES]
)
def test_lies_about_survivors(security, reason, survivors):
    cohort = Cohort(6, security=security, parameters=None)
    drops = {"advertise": {"c5"}, "share": {"c4"}}
    if security == "active":
        cohort = Cohort(7, security=security)  # a threshold of five among seven
        survivors = [s + 1 if s > 5 else s for s in survivors]
        drops = {"advertise": {"c5"}, "share": {"c4"}}
    cohort.reach(first(security), drops)
    data = cohort.say(Survivors(survivors), ALICE)
    refused(cohort, first(security), data, RemoteProtocolError, reason)
    result = finishes(cohort)
    assert not {"c4", "c5"} & set(result.survivors)


@each_case("security", SECURITY)
@each_case("clients", [3, 4, 5, 8])
def test_too_few_survivors(security, clients):
    cohort = Cohort(clients, security=security)
    step = first(security)
    cohort.reach(step)
    least = cohort.parameters.minimum
    for size in range(1, least):
        lie = cohort.survivors(["c1", *[n for n in cohort if n != ALICE][: size - 1]], ALICE)
        error = refused(cohort, step, lie, ThresholdError, "too few survivors to hide among")
        assert (error.needed, error.got) == (least, size)
    assert least >= 3
    finishes(cohort)


def test_too_few_neighbours_among_many_survivors():
    """In a sparse graph the number of survivors is not enough: the client's own side counts."""
    cohort = Cohort(60, corrupt=0.05, dropout=0.05)
    cohort.reach("unmask")
    client, threshold = cohort.clients[ALICE], cohort.parameters.threshold
    near = client._neighbours
    far = [i for i in range(60) if i not in near]
    few = sorted([*far, *near[: threshold - 2]])
    object.__setattr__(client.parameters, "minimum", len(few))  # to reach the second check
    with pytest.raises(ThresholdError, match="too few clients are left") as error:
        client.unmask(cohort.say(Survivors(few), ALICE))
    assert (error.value.needed, error.value.got) == (threshold, threshold - 1)
    finishes(cohort)


@each_case("alive_first", [True, False])
def test_both_shares_of_a_peer(alive_first):
    """Two requests, with the peer among the survivors and without: one answer."""
    cohort = Cohort(5)
    cohort.reach("unmask")
    sets = [cohort.names, [n for n in cohort if n != "c3"]]
    one, two = sets if alive_first else sets[::-1]
    cohort.note(cohort.clients[ALICE].unmask(cohort.survivors(one, ALICE)))
    for again_ in (two, one):
        with pytest.raises(LocalProtocolError, match=r"unmask\(\) is not allowed when done"):
            cohort.clients[ALICE].unmask(cohort.survivors(again_, ALICE))
    assert {key: len(rows) for key, rows in cohort.revealed.items()} == {
        (ALICE, owner): 1 for owner in cohort
    }


def test_one_kind_of_share_for_each_peer():
    """Of a survivor the share of its seed, the first half of its box; of the others the second."""
    cohort = Cohort(5)
    cohort.reach("unmask")
    held = dict(cohort.clients[ALICE]._ring.held)
    alive = ["c0", "c1", "c2"]
    _, message, payload = cohort.read(cohort.clients[ALICE].unmask(cohort.survivors(alive, ALICE)))
    assert message.owners == [0, 1, 2, 3, 4]
    for owner, row in zip(message.owners, cohort.shares(message, payload), strict=True):
        words = [int.from_bytes(held[owner][at : at + 8], "little") for at in range(0, 80, 8)]
        assert row == (words[:5] if f"c{owner}" in alive else words[5:])


def test_two_survivor_sets_under_active_security():
    """Each set gets the signatures of those who were told of it: neither has a threshold."""
    cohort = Cohort(7, security="active")
    assert cohort.parameters.threshold == 5
    cohort.reach("consent")
    one, two = cohort.names[:6], cohort.names[1:]
    told = {n: one if n in cohort.names[:4] else two for n in cohort}
    signatures = {}
    for name in cohort:
        cohort.inbox[name] = cohort.survivors(told[name], name)
        signatures[name] = cohort.read(cohort.do("consent", name))[1].signature
    for name in cohort:
        agreeing = [n for n in cohort if told[n] == told[name]]
        for signers in (agreeing, told[name], [n for n in told[name] if n != name]):
            data = consents(cohort, signatures, signers, name)
            if len(signers) < 5:
                with pytest.raises(ThresholdError, match="too few survivors signed") as error:
                    cohort.clients[name].unmask(data)
                assert (error.value.needed, error.value.got) == (5, len(signers))
            else:
                blamed = next(n for n in signers if told[n] != told[name])
                refused(
                    cohort,
                    "unmask",
                    data,
                    AuthenticationError,
                    f"{blamed}: the signature for 'secagg survivors' is not valid",
                    name,
                )
        with pytest.raises(LocalProtocolError, match=r"consent\(\) is not allowed when"):
            cohort.clients[name].consent(cohort.survivors(one if told[name] is two else two, name))
    assert not cohort.revealed


def consents(cohort, signatures, signers, recipient):
    indices = sorted(cohort.names.index(n) for n in signers)
    return cohort.say(Consents(indices, [signatures[cohort.names[i]] for i in indices]), recipient)


def test_two_survivor_sets_of_a_semi_honest_server_give_no_secret_away():
    """Nothing shows it there, and still no secret is given away of which nobody is corrupt.

    Every client gives one kind of share for each peer, and two thresholds are more than all.
    """
    cohort = Cohort(5)
    cohort.reach("unmask")
    without_c4 = cohort.names[:4]
    for name in cohort:
        told = cohort.names if name in ("c0", "c4") else without_c4
        cohort.note(cohort.clients[name].unmask(cohort.survivors(told, name)))
    kinds = {
        kind: sum(
            1
            for holder, owner in cohort.revealed
            if owner == "c4" and (holder in ("c0", "c4")) == (kind == "seed")
        )
        for kind in ("seed", "mask key")
    }
    assert kinds == {"seed": 2, "mask key": 3}
    assert sum(kinds.values()) < 2 * cohort.parameters.threshold


NOT_SIGNERS = "server: its list of signers is malformed or has a client that dropped"


def consent_lies(c):
    """(what is said, error, reason), from honest signatures of survivors 0 to 5 of 7."""
    s = c.signatures
    other = Cohort(7, security="active", seed="elsewhere")
    other.reach("unmask")
    foreign = dict(zip(other.said("c0").clients, other.said("c0").signatures, strict=True))
    valid = AuthenticationError, "c2: the signature for 'secagg survivors' is not valid"
    signers = [0, 1, 2, 3, 4]

    def replaced(signature):
        return Consents(signers, [s[0], s[1], signature, s[3], s[4]])

    keys = c.first_keys[2].signature
    return {
        "too few": (Consents([0, 1, 2, 3], [s[i] for i in range(4)]), ThresholdError, "signed"),
        "none": (Consents([], []), ThresholdError, "too few survivors signed"),
        "twice": (Consents([0, 1, 2, 2, 3], [s[0], s[1], s[2], s[2], s[3]]),
                  RemoteProtocolError, NOT_SIGNERS),
        "disorder": (Consents(signers[::-1], [s[i] for i in signers[::-1]]),
                     RemoteProtocolError, NOT_SIGNERS),
        "who dropped": (Consents([0, 1, 2, 3, 6], [s[0], s[1], s[2], s[3], foreign[6]]),
                        RemoteProtocolError, NOT_SIGNERS),
        "stranger": (Consents([0, 1, 2, 3, 7], [s[i] for i in signers]),
                     RemoteProtocolError, NOT_SIGNERS),
        "below zero": (Consents([-1, 1, 2, 3, 4], [s[i] for i in signers]),
                       RemoteProtocolError, NOT_SIGNERS),
        "a signature too few": (Consents(signers, [s[i] for i in signers[:-1]]),
                                RemoteProtocolError, NOT_SIGNERS),
        "a signature too many": (Consents(signers, [s[i] for i in (*signers, 0)]),
                                 RemoteProtocolError, NOT_SIGNERS),
        "forged": (replaced(bytes(64)), *valid),
        "empty": (replaced(b""), *valid),
        "changed": (replaced(flipped(s[2], 5)), *valid),
        "another's": (replaced(s[1]), *valid),
        "of another session": (replaced(foreign[2]), *valid),
        "of another statement": (replaced(keys), *valid),
        "swapped": (Consents(signers, [s[0], s[1], s[3], s[2], s[4]]), *valid),
    }  # fmt: skip


CONSENT_LIES = (
    "too few", "none", "twice", "disorder", "who dropped", "stranger", "below zero",
    "a signature too few", "a signature too many", "forged", "empty", "changed", "another's",
    "of another session", "of another statement", "swapped",
)  # fmt: skip


def consented():
    cohort = Cohort(7, security="active")
    cohort.reach("share")
    cohort.first_keys = cohort.said("c0").keys
    cohort.step("share")
    cohort.step("mask", {"c6"})
    cohort.step("consent")
    said = cohort.said("c0")
    cohort.signatures = dict(zip(said.clients, said.signatures, strict=True))
    assert sorted(cohort.signatures) == [0, 1, 2, 3, 4, 5]
    return cohort


@each_case("lie", CONSENT_LIES)
def test_lies_about_consents(lie):
    cohort = consented()
    message, error, reason = consent_lies(cohort)[lie]
    refused(cohort, "unmask", cohort.say(message, ALICE), error, reason)
    finishes(cohort)


@each_case("victim", range(5))
def test_every_consent_is_looked_at(victim):
    cohort = consented()
    signatures = [cohort.signatures[i] for i in range(5)]
    signatures[victim] = flipped(signatures[victim], 63)
    lie = cohort.say(Consents([0, 1, 2, 3, 4], signatures), ALICE)
    reason = f"c{victim}: the signature for 'secagg survivors' is not valid"
    refused(cohort, "unmask", lie, AuthenticationError, reason)
    finishes(cohort)


def test_every_lie_about_consents_is_tried():
    assert set(consent_lies(consented())) == set(CONSENT_LIES)


def test_a_threshold_of_consents_is_enough():
    cohort = consented()
    signers = [f"c{i}" for i in (1, 2, 3, 4, 5)]
    named = {f"c{i}": s for i, s in cohort.signatures.items()}
    cohort.inbox[ALICE] = consents(cohort, named, signers, ALICE)
    finishes(cohort)


def test_consents_of_an_earlier_round():
    cohort = Cohort(3, security="active")
    cohort.reach("unmask")
    old = cohort.said(ALICE)
    finishes(cohort)
    again(cohort)
    cohort.step("mask")
    cohort.step("consent")
    reason = "c0: the signature for 'secagg survivors' is not valid"
    refused(cohort, "unmask", cohort.say(old, ALICE), AuthenticationError, reason)
    finishes(cohort)


def take_unseen(server, data):
    index, _, message, _ = server._awaited(data, Consent)
    server._consents[index] = message.signature


def test_consents_are_over_the_application_too():
    """One client has another model: it does not answer, nor do the others on its signature."""
    application = {"c0": b"model 1", "c1": b"model 1", "c2": b"model 2"}
    cohort = Cohort(3, security="active", application=application)
    # An honest server that knows the application refuses the odd signature at once.
    cohort.server._application = b"model 1"
    cohort.reach("consent")
    odd = cohort.do("consent", "c2")
    with pytest.raises(AuthenticationError, match="c2: the signature for 'secagg survivors'"):
        cohort.server.receive(odd)

    # One that forwards it does not deceive the clients.
    cohort = Cohort(3, security="active", application=application)
    cohort.server._take_consent = types.MethodType(take_unseen, cohort.server)
    cohort.reach("unmask")
    for name, blamed in (("c0", "c2"), ("c1", "c2"), ("c2", "c0")):
        refused(
            cohort,
            "unmask",
            cohort.inbox[name],
            AuthenticationError,
            f"{blamed}: the signature for 'secagg survivors' is not valid",
            name,
        )
    same = Cohort(3, security="active", application=dict.fromkeys(application, b"model 1"))
    same.server._application = b"model 1"
    finishes(same)


def test_unmask_before_consent():
    cohort = Cohort(3, security="active")
    cohort.reach("consent")
    with pytest.raises(LocalProtocolError, match=r"call consent\(\) before unmask\(\)"):
        cohort.clients[ALICE].unmask(cohort.inbox[ALICE])
    assert cohort.clients[ALICE].state is State.MASKED
    finishes(cohort)


def test_consent_is_for_active_security():
    cohort = Cohort(3)
    cohort.reach("unmask")
    with pytest.raises(LocalProtocolError, match=r"consent\(\) is for active security"):
        cohort.clients[ALICE].consent(cohort.inbox[ALICE])
    assert cohort.clients[ALICE].state is State.MASKED
    finishes(cohort)
