"""The check of MACs, party by party: its order, its completeness, and its coefficients."""

import functools

import numpy as np
import pytest
from cases import each_case
from deviations import NAMES, Network

from securecomp.core import field
from securecomp.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from securecomp.mpc.computation import Computation
from securecomp.mpc.mac_checks import Commitment, MacParty
from securecomp.protocol import wire
from securecomp.protocol.role import State

STEPS = ("open_seed", "commit_sigma", "open_sigma", "verdict")
STEP = 1000  # of the first message, beyond all that was said before


class Check:
    """Parties that opened what a square takes, and a check of it whose steps a test calls.

    Args:
        replay: Makes entropy of a seed.
        seeds: For a party's name, another seed of the check than it would draw.
        values: What is squared.
    """

    def __init__(self, replay, seeds=(), values=(31, 47), parties=3):
        names = NAMES[:parties]
        computation = Computation(names, Network(replay(0)), integrity="mac")
        self.driver = computation.engine.run
        self.parties = dict(zip(names, self.driver.members, strict=True))
        x = computation.share("ada", list(values), bound=100)
        self.product = x.square()
        for name, member in self.parties.items():
            draws = replay(f"{name} {dict(seeds).get(name, 'as ever')}")
            member._entropy = draws
        self.post = {}

    def __getitem__(self, name):
        return self.parties[name]

    def begin(self, step=STEP):
        sent = {name: party.commit_seed(step) for name, party in self.parties.items()}
        return self.carry(sent)

    def carry(self, sent):
        self.post = {
            name: {sender: sent[sender][name] for sender in sent if sender != name}
            for name in self.parties
        }
        return self

    def go(self, until):
        """Take the honest steps before this one, and return what its parties have received."""
        if not self.post:
            self.begin()
        for step in STEPS[: STEPS.index(until)]:
            sent = {n: getattr(p, step)(self.post[n]) for n, p in self.parties.items()}
            self.carry(sent)
        return self.post


@pytest.fixture
def check(replay):
    return functools.partial(Check, replay)


def dropped(party):
    assert party.state is State.ABORTED
    assert not party.unchecked
    with pytest.raises(LocalProtocolError, match="aborted; begin another"):
        _ = party.key


def test_the_honest_steps_pass_and_begin_anew(check):
    c = check()
    for turn in range(2):
        c.begin(STEP + 10 * turn)
        post = c.go("verdict")
        for name, party in c.parties.items():
            assert party.verdict(post[name]) is None, turn
            assert (party.state, party.unchecked, party.fresh) == (State.READY, 0, False)
        for party in c.parties.values():
            party.remember(np.zeros(2, np.uint64), None)


@each_case("step", STEPS)
def test_no_step_passes_without_hearing_everybody(check, step):
    for change in (
        lambda post: {},
        lambda post: dict(list(post.items())[:1]),
        lambda post: dict(list(post.items())[1:]),
        lambda post: {**post, "ada": next(iter(post.values()))},
        lambda post: {**post, "eve": next(iter(post.values()))},
        lambda post: {"eve": post["ben"], "cyd": post["cyd"]},
    ):
        c = check()
        post = c.go(step)["ada"]
        with pytest.raises(LocalProtocolError, match="ada: the check needs one message of each"):
            getattr(c["ada"], step)(change(post))
        dropped(c["ada"])


@each_case("step", STEPS)
def test_one_message_does_not_stand_for_two(check, step):
    c = check()
    post = c.go(step)["ada"]
    with pytest.raises(RemoteProtocolError, match=r"^(ben|cyd): said something"):
        getattr(c["ada"], step)({"ben": post["cyd"], "cyd": post["ben"]})
    dropped(c["ada"])


@each_case("step", STEPS)
def test_a_message_of_another_step_is_refused(check, step):
    """The first commitment instead of the second, a seed instead of a sigma, and the like."""
    for other in STEPS:
        if other != step:
            # The same run, so that its later messages are known here already.
            message = check().go(other)["ada"]["ben"]
            c = check()
            post = c.go(step)["ada"]
            with pytest.raises(RemoteProtocolError, match=r"^ben: the message is of round"):
                getattr(c["ada"], step)({**post, "ben": message})
            dropped(c["ada"])


def test_steps_have_one_order(check):
    """In no state does the party do another step of the check than the one that is due."""
    events = ("commit_seed", *STEPS)
    for due in range(len(events)):
        for event in events:
            if event == events[due]:
                continue
            c = check()
            if due:
                c.go(events[due])
            argument = STEP if event == "commit_seed" else c.post.get("ada", {})
            with pytest.raises(LocalProtocolError, match=rf"{event}\(\) is not allowed when"):
                getattr(c["ada"], event)(argument)


def test_nothing_is_said_heard_or_opened_in_the_middle(check):
    for step in STEPS:
        c = check()
        c.go(step)
        for event, call in (
            ("remember", lambda c=c: c["ada"].remember(np.zeros(1, np.uint64), None)),
            ("report", lambda c=c: c["ada"].report("ben", STEP, np.zeros(1, np.uint64))),
            ("say", lambda c=c: c["ada"].say(["ben"], STEP, b"", 5)),
            ("hear", lambda c=c: c["ada"].hear(b"", "ben", STEP, Commitment)),
        ):
            with pytest.raises(LocalProtocolError, match=rf"{event}\(\) is not allowed"):
                call()


def test_no_result_is_reported_before_it_is_checked(check):
    c = check()
    with pytest.raises(LocalProtocolError, match="not checked yet"):
        c["ada"].report("ben", STEP, np.zeros(1, np.uint64))
    post = c.go("verdict")
    c["ada"].verdict(post["ada"])
    c["ada"].report("ben", STEP + 9, np.zeros(1, np.uint64))
    c["ada"].remember(np.zeros(1, np.uint64), None)
    with pytest.raises(LocalProtocolError, match="not checked yet"):
        c["ada"].report("ben", STEP + 10, np.zeros(1, np.uint64))


def test_after_an_abort_nothing_is_done(check):
    events = {event for _, event in MacParty.TRANSITIONS}
    calls = {
        "say": lambda p: p.say(["ben"], 1, wire.encode_body(Commitment(b"")), 5),
        "hear": lambda p: p.hear(b"", "ben", 1, Commitment),
        "remember": lambda p: p.remember(np.zeros(1, np.uint64), None),
        "report": lambda p: p.report("ben", 1, np.zeros(1, np.uint64)),
        "commit_seed": lambda p: p.commit_seed(1),
        **{step: lambda p, step=step: getattr(p, step)({}) for step in STEPS},
    }
    assert set(calls) == events
    party = check()["ada"]
    party.abort()
    for event, call in calls.items():
        with pytest.raises(LocalProtocolError, match=rf"{event}\(\) is not allowed when aborted"):
            call(party)
    with pytest.raises(LocalProtocolError, match="aborted; begin another"):
        party.own(1, 1)


def test_one_time_masks_are_used_once(check):
    """Correlations and masks are numbered: a number is refused when it comes again."""
    c = check()
    party, dealer = c["ada"], c.driver.dealer
    dealer.corrections(50, "triple", (2,))
    party.vectors(50, "triple", (2,), [])
    party.own(50, 2)
    for serial in (50, 49):
        for call in (
            lambda s=serial: dealer.corrections(s, "square", (2,)),
            lambda s=serial: party.vectors(s, "triple", (2,), []),
            lambda s=serial: party.own(s, 2),
        ):
            with pytest.raises(LocalProtocolError, match=f" {serial} was used before"):
                call()


# Coefficients


def coefficients(check, **facts):
    c = check(**facts)
    c.go("open_sigma")
    found = [tuple(party.coefficients().tolist()) for party in c.parties.values()]
    assert len(set(found)) == 1, "the parties have different coefficients"
    return found[0]


def test_coefficients_follow_from_every_seed_and_the_transcript(check):
    """Whoever knows all seeds but one, or all seeds but not what was opened, knows none of them.

    The same run again gives the same: there is no other source. One party's other seed, or another
    opened value, changes every one of them.
    """
    for parties in (2, 3):
        usual = coefficients(check, parties=parties)
        assert usual == coefficients(check, parties=parties)
        assert len(set(usual)) == len(usual) == 2
        runs = [usual]
        for name in NAMES[:parties]:
            for seed in range(3):
                runs.append(coefficients(check, parties=parties, seeds=[(name, seed)]))
        for values in ((32, 47), (31, 48), (47, 31)):
            runs.append(coefficients(check, parties=parties, values=values))
        for place, column in enumerate(zip(*runs, strict=True)):
            assert len(set(column)) == len(runs), (parties, place)


def test_commitments_do_not_give_the_coefficients_away(check, monkeypatch):
    """Who commits last has heard all commitments, and could try seeds until coefficients suit it.

    So they follow from every seed itself: here commitments say nothing of what they hide.
    """
    monkeypatch.setattr(MacParty, "_digest", lambda *facts: facts[1].encode().ljust(32))
    usual = coefficients(check)
    for name in NAMES[:3]:
        assert not set(usual) & set(coefficients(check, seeds=[(name, 0)])), name


def test_coefficients_are_spread_over_the_field(check):
    """Not small, not one, not a constant: of 40 each of the 61 bits is 1 in some and 0 in some."""
    found = coefficients(check, values=range(40))
    assert len(set(found)) == len(found) == 40
    assert all(0 <= v < field.MODULUS for v in found)
    for bit in range(field.BITS):
        assert 4 <= sum(v >> bit & 1 for v in found) <= 36, bit


def test_coefficients_are_not_known_before_the_seeds(check):
    for step in STEPS[:2]:
        c = check()
        c.go(step)
        with pytest.raises(LocalProtocolError, match="seeds of the check are not here yet"):
            c["ada"].coefficients()


def test_errors_that_known_coefficients_would_cancel_are_found(check):
    """The attack: errors e and f with rho_1 e + rho_2 f = 0, for coefficients seen before.

    With those of another check, which a fixed string or one's own seed would give again, it passes.
    With fresh seeds of the others it does not.
    """
    first, second = map(int, coefficients(check, seeds=[("cyd", "mine")]))
    e = 5
    f = -first * e * pow(second, -1, field.MODULUS) % field.MODULUS
    for others, found_out in (("as ever", False), ("fresh", True)):
        c = check(seeds=[("cyd", "mine"), ("ada", others), ("ben", others)])
        for party in c.parties.values():
            # All parties believe the wrong value; its MACs are those of the right one.
            opened, macs = party._opened[0]
            wrong = field.add(opened, np.array([e, f], np.uint64))
            party._opened = [(wrong, macs)]
        post = c.go("verdict")
        verdicts = [functools.partial(p.verdict, post[n]) for n, p in c.parties.items()]
        for verdict in verdicts:
            if found_out:
                with pytest.raises(ProtocolError, match="MACs do not fit"):
                    verdict()
            else:
                verdict()
