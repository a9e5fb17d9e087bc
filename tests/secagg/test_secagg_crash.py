"""Clients that are stopped and started again from what they saved: nothing is done twice."""

import os
import signal
import subprocess
import sys
import textwrap

import msgspec
import pytest
from cases import each_case
from secagg.cohort import Cohort, identity, stream
from secagg.lying import again, finishes

from securecomp.errors import LocalProtocolError, ParameterError
from securecomp.protocol.journal import FileJournal, MemoryJournal
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import Client

SECURITY = ["semi-honest", "active"]
BOB = "c1"
DONE_BEFORE = "was done before, perhaps by a process that was killed; start a new session"
STEPS = [(s, step) for s in SECURITY for step in ("advertise", "share", "mask", "consent", "unmask")
         if (s, step) != ("semi-honest", "consent")]  # fmt: skip


def cohort_with(tmp_path, security="semi-honest", clients=4, **facts):
    return Cohort(
        clients, security=security, journals={BOB: FileJournal(tmp_path / "marks")}, **facts
    )


def restarted(cohort, tmp_path, saved, name=BOB, session=None):
    """A new process, as it were: the saved state and the journal are all that is left."""
    client = Client(
        session or cohort.now,
        name,
        identity(name),
        journal=FileJournal(tmp_path / "marks"),
        entropy=stream("after the crash"),
    )
    client.restore(saved)
    return client


@pytest.mark.parametrize("security", SECURITY)
def test_a_client_that_is_saved_and_restored_before_every_step_comes_to_the_sum(tmp_path, security):
    cohort = cohort_with(tmp_path, security)
    for step in (*cohort.steps, "next round", *cohort.steps[2:], "end"):
        old = cohort.clients[BOB]
        state, session = old.state, old._session
        saved = old.save()
        assert old.state is State.ABORTED
        assert old._ring.held == {}
        assert old._ring.mask_key == b""
        cohort.clients[BOB] = restarted(cohort, tmp_path, saved, session=session)
        assert cohort.clients[BOB].state is state
        if step == "next round":
            assert cohort.server.result().values.tolist() == cohort.total(cohort.names)
            again(cohort)
        elif step != "end":
            cohort.step(step)
    assert cohort.server.result().values.tolist() == cohort.total(cohort.names)
    assert cohort.now.round == 1


@pytest.mark.parametrize(("security", "step"), STEPS)
def test_no_step_is_done_twice_from_one_saved_state(tmp_path, security, step):
    cohort = cohort_with(tmp_path, security)
    cohort.reach(step)
    saved = cohort.clients[BOB].save()
    cohort.clients[BOB] = first = restarted(cohort, tmp_path, saved)
    data = cohort.do(step, BOB)
    cohort.clients[BOB] = second = restarted(cohort, tmp_path, saved)
    before = second.state
    with pytest.raises(LocalProtocolError, match=f"{BOB} {step}: {DONE_BEFORE}"):
        cohort.do(step, BOB)
    assert second.state is before
    # The first message is still good.
    cohort.clients[BOB] = first
    cohort.server.receive(data)
    cohort.step(step, {BOB})
    if step != "unmask":
        finishes(cohort)


@pytest.mark.parametrize("survivors", [["c0", "c1", "c2"], ["c0", "c1", "c2", "c3"]])
def test_two_answers_from_one_saved_state(tmp_path, survivors):
    """What it is all for: not a share of the seed and another of the mask key of one peer."""
    cohort = cohort_with(tmp_path)
    cohort.reach("unmask")
    saved = cohort.clients[BOB].save()
    restarted(cohort, tmp_path, saved).unmask(cohort.survivors(cohort.names, BOB))
    again_ = restarted(cohort, tmp_path, saved)
    with pytest.raises(LocalProtocolError, match=f"unmask: {DONE_BEFORE}"):
        again_.unmask(cohort.survivors(survivors, BOB))
    assert again_.state is State.MASKED


def test_two_vectors_from_one_saved_state(tmp_path):
    """The difference of two vectors under the same masks would be that of the inputs."""
    cohort = cohort_with(tmp_path)
    cohort.reach("mask")
    saved = cohort.clients[BOB].save()
    restarted(cohort, tmp_path, saved).mask(cohort.inbox[BOB], [1, 2, 3, 4])
    with pytest.raises(LocalProtocolError, match=f"mask: {DONE_BEFORE}"):
        restarted(cohort, tmp_path, saved).mask(cohort.inbox[BOB], [5, 6, 7, 8])


def test_two_next_rounds_from_one_saved_state(tmp_path):
    cohort = cohort_with(tmp_path)
    finishes(cohort)
    saved = cohort.clients[BOB].save()
    layout = cohort.session.layout
    restarted(cohort, tmp_path, saved).next_round(layout)
    with pytest.raises(LocalProtocolError, match=f"share: {DONE_BEFORE}"):
        restarted(cohort, tmp_path, saved).next_round(layout)


def test_a_refused_step_spends_nothing(tmp_path):
    cohort = cohort_with(tmp_path)
    cohort.reach("mask")
    for values in ([0.5] * 4, [2000] * 4, [1]):
        with pytest.raises(ValueError, match=BOB):
            cohort.clients[BOB].mask(cohort.inbox[BOB], values)
    saved = cohort.clients[BOB].save()
    cohort.clients[BOB] = restarted(cohort, tmp_path, saved)
    finishes(cohort)


def test_a_client_that_comes_back_without_its_state_has_to_wait_for_a_new_session(tmp_path):
    cohort = cohort_with(tmp_path)
    cohort.reach("share")
    client = Client(cohort.session, BOB, identity(BOB), journal=FileJournal(tmp_path / "marks"))
    with pytest.raises(LocalProtocolError, match=f"{BOB} advertise: {DONE_BEFORE}"):
        client.advertise()
    other = Cohort(4, seed="other", journals={BOB: FileJournal(tmp_path / "marks")})
    finishes(other)


def test_marks_are_of_one_client(tmp_path):
    """Several clients of one machine may share a folder."""
    marks = FileJournal(tmp_path / "marks")
    finishes(Cohort(4, journals=dict.fromkeys(("c0", "c1", "c2", "c3"), marks)))


# What cannot be saved or restored.


@each_case("journals", [{}, {BOB: MemoryJournal()}])
def test_saving_needs_a_journal_on_disk(journals):
    cohort = Cohort(4, journals=journals)
    cohort.reach("mask")
    with pytest.raises(LocalProtocolError, match=r"save\(\) needs a journal on disk"):
        cohort.clients[BOB].save()
    finishes(cohort)


def test_restoring_needs_a_journal_on_disk(tmp_path):
    """Two such clients would give one answer each, and so both shares of a peer."""
    cohort = cohort_with(tmp_path)
    cohort.reach("unmask")
    saved = cohort.clients[BOB].save()
    with pytest.raises(LocalProtocolError, match="journal on disk"):
        Client(cohort.session, BOB, identity(BOB)).restore(saved)


def test_a_state_is_of_one_client(tmp_path):
    cohort = cohort_with(tmp_path)
    cohort.reach("unmask")
    saved = cohort.clients[BOB].save()
    with pytest.raises(ParameterError, match="the saved state is of another"):
        restarted(cohort, tmp_path, saved, "c2")


def test_a_state_of_another_session_round_or_layout(tmp_path):
    cohort = cohort_with(tmp_path)
    cohort.reach("unmask")
    saved = cohort.clients[BOB].save()
    session = cohort.session
    for other in (
        Cohort(4, seed="other").session,
        session.next(session.layout),
        cohort.agree(Layout(5, 1000)),
        cohort.agree(session.layout, receivers=("c1",)),
    ):
        client = Client(other, BOB, identity(BOB), journal=FileJournal(tmp_path / "marks"))
        reason = "the saved state is of another session, round or layout"
        with pytest.raises(ParameterError, match=reason):
            client.restore(saved)
        assert client.state is State.READY
        assert client._ring.held == {}


def test_a_client_that_has_begun_takes_no_state(tmp_path):
    cohort = cohort_with(tmp_path)
    cohort.reach("unmask")
    saved = cohort.clients[BOB].save()
    for name in ("c0", BOB):  # one that is at work, and one that has stopped
        with pytest.raises(LocalProtocolError, match=r"restore\(\) is for a client that has not"):
            cohort.clients[name].restore(saved)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"garbage",
        msgspec.msgpack.encode(1),
        msgspec.msgpack.encode((b"agreement", "no state", {})),
        msgspec.msgpack.encode((b"agreement", "vector sent", {"held": 7})),
    ],
)
def test_bytes_that_are_no_state(tmp_path, garbage):
    cohort = cohort_with(tmp_path)
    with pytest.raises(ParameterError, match="these bytes are not a client's saved state"):
        restarted(cohort, tmp_path, garbage)
    assert cohort.clients[BOB].state is State.READY
    finishes(cohort)


def test_a_stopped_client_saves_nothing_secret(tmp_path):
    cohort = cohort_with(tmp_path)
    cohort.reach("unmask")
    ring = cohort.clients[BOB]._ring
    secrets = [ring.cipher_key, ring.mask_key, *ring.held.values(), *ring.shared.values()]
    cohort.clients[BOB].abort()
    saved = cohort.clients[BOB].save()
    assert not any(secret in saved for secret in secrets)
    assert restarted(cohort, tmp_path, saved).state is State.ABORTED


class Empty(MemoryJournal):
    """A journal that is false while it is empty, as a list of marks is."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def __len__(self):
        return len(self.asked)

    def spend(self, mark):
        self.asked.append(mark)
        super().spend(mark)


def test_a_journal_that_is_empty_is_one():
    journal = Empty()
    cohort = Cohort(4, journals={BOB: journal})
    finishes(cohort)
    assert [mark.split()[-1] for mark in journal.asked] == ["advertise", "share", "mask", "unmask"]


def test_what_is_marked():
    class Noting(MemoryJournal):
        marks = ()

        def spend(self, mark):
            super().spend(mark)
            self.marks = (*self.marks, mark)

    journal = Noting()
    journal.spend("anything")  # else it might be taken for none
    cohort = Cohort(4, security="active", journals={BOB: journal})
    finishes(cohort)
    again(cohort)
    one, two = cohort.session.agreement.hex(), cohort.now.agreement.hex()
    steps = ("advertise", "share", "mask", "consent", "unmask")
    assert journal.marks[1:] == (
        *(f"secagg {one} {BOB} {step}" for step in steps),
        f"secagg {two} {BOB} share",
    )


# A real process that is killed.

SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    import msgspec
    from securecomp.protocol.identity import Identity
    from securecomp.protocol.journal import FileJournal
    from securecomp.secagg import Client
    from securecomp.protocol.session import Session

    folder, step = Path(sys.argv[1]), sys.argv[2]

    class Killer(FileJournal):
        def spend(self, mark):
            super().spend(mark)
            os.kill(os.getpid(), signal.SIGKILL)

    session = msgspec.msgpack.decode((folder / "session").read_bytes(), type=Session)
    identity = Identity((folder / "identity").read_bytes())
    client = Client(session, "c1", identity, journal=Killer(folder / "marks"))
    client.restore((folder / "state").read_bytes())
    message = (folder / "message").read_bytes()
    values = ([0] * session.layout.length,) if step == "mask" else ()
    (folder / "answer").write_bytes(getattr(client, step)(message, *values))
"""


@pytest.mark.parametrize("step", ["mask", "unmask"])
def test_a_process_killed_between_the_mark_and_the_message(tmp_path, step):
    cohort = cohort_with(tmp_path)
    cohort.reach(step)
    (tmp_path / "session").write_bytes(msgspec.msgpack.encode(cohort.session))
    (tmp_path / "identity").write_bytes(stream(f"identity of {BOB}")(32))
    (tmp_path / "message").write_bytes(cohort.inbox[BOB])
    (tmp_path / "state").write_bytes(cohort.clients[BOB].save())
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path), step],
        check=False,
        capture_output=True,
        env={**os.environ},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not (tmp_path / "answer").exists()
    saved = (tmp_path / "state").read_bytes()
    cohort.clients[BOB] = restarted(cohort, tmp_path, saved)
    with pytest.raises(LocalProtocolError, match=f"{BOB} {step}: {DONE_BEFORE}"):
        cohort.do(step, BOB)
    # For the others it has dropped out.
    cohort.step(step, {BOB})
    if step == "mask":
        cohort.step("unmask")
    result = cohort.server.result()
    assert result.values.tolist() == cohort.total(result.survivors)
    assert (BOB in result.survivors) == (step == "unmask")


def test_a_session_outlives_its_process(tmp_path):
    session = Cohort(4).session
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(session), type=Session)
    assert back == session
    assert back.agreement == session.agreement
