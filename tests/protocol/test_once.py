"""What may happen once happens once, also when two threads call at the same moment."""

import contextlib
import threading

import numpy as np
from cases import each_case
from paillier.meeting import Meeting
from secagg.cohort import SERVER, Cohort, identity
from sharing.cast import Cast

from securecomp.errors import LocalProtocolError, RemoteProtocolError
from securecomp.paillier import PrivateKey
from securecomp.protocol.journal import MemoryJournal
from securecomp.protocol.role import Role
from securecomp.secagg import Client
from securecomp.secagg import Receiver as MaskingReceiver


def contributed():
    cast = Cast()
    role = cast.contributor("north")
    return lambda: role.contribute(cast.values()["north"])


def published():
    cast = Cast()
    role = cast.server("one")
    for messages in cast.deals().values():
        role.receive(messages["one"])
    return role.publish


def share_received():
    cast = Cast()
    role = cast.server("one")
    data = cast.deals()["north"]["one"]
    return lambda: role.receive(data)


def read():
    cast = Cast()
    return cast.received("south", cast.partials(cast.deals())).result


def client_step(step):
    def made():
        cohort = Cohort(4, seed=step, journals={"c1": Careless()})
        cohort.reach(step)
        return lambda: cohort.do(step, "c1")

    return made


def vector_received():
    cohort = Cohort(4)
    cohort.reach("mask")
    data = cohort.do("mask", "c1")
    return lambda: cohort.server.receive(data)


def step_closed():
    cohort = Cohort(4)
    cohort.reach("unmask")
    for name in cohort:
        cohort.server.receive(cohort.do("unmask", name))
    return cohort.server.close


def total_received():
    cohort = Cohort(4)
    cohort.reach("unmask")
    data = cohort.step("unmask")[SERVER]
    role = MaskingReceiver(cohort.session, SERVER, identity(SERVER))
    return lambda: role.receive(data)


def decrypted():
    meeting = Meeting(PrivateKey.generate(512, insecure_for_tests=True))
    data = meeting.aggregate()
    role = meeting.holder(journal=Careless())
    return lambda: role.decrypt(data)


def encrypted():
    meeting = Meeting(PrivateKey.generate(512, insecure_for_tests=True))
    role = meeting.contributor("north", journal=Careless())
    return lambda: role.contribute(meeting.values["north"])


class Careless(MemoryJournal):
    """A journal that lets everything pass: what counts here is the role's own state."""

    def spend(self, mark):
        pass


STEPS = (
    contributed,
    published,
    share_received,
    read,
    client_step("advertise"),
    client_step("share"),
    client_step("mask"),
    client_step("unmask"),
    vector_received,
    step_closed,
    total_received,
    decrypted,
    encrypted,
)


def test_of_two_threads_one_does_a_step(monkeypatch):
    """Both are held between the check of the state and the work, where that lets them meet."""
    real = Role._next
    for made in STEPS:
        call = made()
        meet = threading.Barrier(2)

        def following(role, event, meet=meet):
            state = real(role, event)
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(0.1)
            return state

        outcomes = []

        def attempt(call=call, outcomes=outcomes):
            try:
                outcomes.append(("done", call()))
            except (LocalProtocolError, RemoteProtocolError) as error:
                outcomes.append(("refused", error))

        with monkeypatch.context() as patch:
            patch.setattr(Role, "_next", following)
            threads = [threading.Thread(target=attempt) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(kind for kind, _ in outcomes) == ["done", "refused"], made


class Echo:
    """A vector that calls the role again when numpy reads it."""

    def __init__(self, values):
        self.values = values
        self.role = None
        self.caught = []

    def __array__(self, dtype=None, copy=None):
        if self.role is not None:
            role, self.role = self.role, None
            try:
                role(self)
            except LocalProtocolError as error:
                self.caught.append(str(error))
        return np.array(self.values, dtype)


def test_a_step_that_is_called_from_within_itself_is_refused():
    cast = Cast()
    values = Echo(cast.values()["north"])
    values.role = cast.contributor("north").contribute
    values.role(values)
    assert values.caught == ["Contributor 'north': contribute() was called while it is running"]


def test_abort_waits_for_the_step_that_is_running():
    cast = Cast()
    role = cast.contributor("north")
    aborted = threading.Thread(target=role.abort)
    seen = []

    class Slow:
        def __array__(self, dtype=None, copy=None):
            aborted.start()
            aborted.join(0.1)
            seen.append(role.state.value)
            return np.array(cast.values()["north"], dtype)

    role.contribute(Slow())
    aborted.join()
    assert seen == ["ready"]
    assert role.state.value == "aborted"


def test_every_event_of_a_role_is_a_method_that_claims_it():
    waiting, roles = [Role], []
    while waiting:
        roles += waiting[-1].__subclasses__()
        waiting += waiting.pop().__subclasses__()
    assert Client in roles
    for kind in roles:
        for _, event in getattr(kind, "TRANSITIONS", {}):
            method = getattr(kind, event, None)
            if method is None and kind.__subclasses__():
                continue  # a base class leaves it to them
            assert getattr(method, "is_step", False), f"{kind.__module__}.{kind.__name__}.{event}"


@each_case("method", ["save", "restore"])
def test_saving_and_restoring_claim_the_client_too(method):
    assert getattr(Client, method).is_step
