"""Batches in other processes: the same results, all of them or none."""

import pickle
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context

import pytest
from cases import each_case
from paillier.workers import Dying, Here

from securecomp.errors import LocalProtocolError, ParameterError
from securecomp.paillier import PublicKey, decrypt, encrypt

VALUES = [(-1) ** i * (10**6 - i) for i in range(900)]
SPAWN = get_context("spawn")  # a fork would copy locks that other threads hold


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        yield pool


@pytest.fixture
def batch(public):
    """`batch(executor, ...)` encrypts a vector of several tasks."""

    def batch(executor, key=public, **options):
        return encrypt(key, VALUES, bound=10**6, executor=executor, **options)

    return batch


def check(private, vector):
    assert decrypt(private, vector).tolist() == VALUES
    assert len(set(vector.ciphertexts)) == len(vector.ciphertexts) > 32


def test_processes(private, batch, processes):
    seen = []
    vector = batch(processes, progress=lambda *at: seen.append(at))
    check(private, vector)
    count = len(vector.ciphertexts)
    assert seen == [(min(k, count), count) for k in range(32, count + 32, 32)]
    # In the right order although tasks end in any.
    assert decrypt(private, vector + batch(None)).tolist() == [2 * v for v in VALUES]


def test_processes_of_the_owner(private, batch, processes):
    check(private, batch(processes, owner=private, exponent="full"))


def test_what_is_wrong_in_a_worker_is_said_as_it_is_here(public, batch, processes):
    bare = PublicKey(public.n, insecure_for_tests=True)
    with pytest.raises(ParameterError, match=r"^this key has no h_s; ask the key holder"):
        batch(processes, key=bare)
    with pytest.raises(ParameterError, match=r"^a table for exponents of 256 bits needs"):
        batch(processes, memory=99)


@each_case("options", [{}, {"exponent": "full"}])
@each_case("owned", [False, True])
def test_threads(private, batch, options, owned):
    with ThreadPoolExecutor(3) as pool:
        check(private, batch(pool, owner=private if owned else None, **options))


def test_any_executor(private, public, batch):
    here = Here()
    check(private, batch(here))
    assert len(here.tasks) == -(-public_count(public) // 32)
    # What goes to a worker is bytes; nothing in it but integers, text and lists.
    for (task,) in here.tasks:
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - our own
        assert {type(part) for part in task} <= {int, str, list, type(None)}


def public_count(public):
    return len(encrypt(public, VALUES, bound=10**6).ciphertexts)


def test_the_private_key_goes_to_workers_of_the_owner_only(private, batch):
    secret = private.to_json()
    for owner, there in ((None, False), (private, True)):
        here = Here()
        batch(here, owner=owner)
        assert all((secret in task) is there for (task,) in here.tasks)


def test_an_empty_vector_needs_no_worker(private, public):
    here = Here()
    vector = encrypt(public, [], bound=1, executor=here)
    assert here.tasks == []
    assert decrypt(private, vector).tolist() == []


REASON = r"^a worker process died while encrypting \(.*\); nothing was returned$"


def test_a_worker_that_dies_half_way(batch):
    seen = []
    with Dying(1, max_workers=1, mp_context=SPAWN) as pool:
        with pytest.raises(LocalProtocolError, match=REASON) as caught:
            batch(pool, progress=lambda *at: seen.append(at))
        assert isinstance(caught.value.__cause__, BrokenExecutor)
        # And so it is with a pool that is dead already.
        with pytest.raises(LocalProtocolError, match=REASON):
            batch(pool)
    assert all(done < total for done, total in seen)


def test_a_pool_that_was_shut_down(batch):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(LocalProtocolError, match=REASON):
        batch(pool)


@each_case("at", [0, 1])
def test_a_pool_that_breaks(batch, at):
    with pytest.raises(LocalProtocolError, match=REASON):
        batch(Here(BrokenExecutor("gone"), at))


def test_a_pool_that_is_shut_down_meanwhile(batch):
    with pytest.raises(LocalProtocolError, match=r"nothing was returned$"):
        batch(Here(CancelledError(), 1))


@each_case("fault", [MemoryError(), KeyError("x")])
def test_another_fault_is_not_hidden(batch, fault):
    with pytest.raises(type(fault)):
        batch(Here(fault, 1))
