"""A buffer in use is never handed out twice; a free one is; the pool stays below its cap."""

import gc
import threading

import numpy as np
import pytest

from securecomp.core import buffers

SIZE = buffers.SMALLEST


@pytest.fixture(autouse=True)
def pool(monkeypatch):
    """An empty pool."""
    empty = []
    monkeypatch.setattr(buffers, "_pool", empty)
    return empty


def pooled(pool, array):
    """Whether the array lies in a buffer of the pool."""
    return any(np.shares_memory(buffer, array) for buffer in pool)


@pytest.mark.parametrize("size", [0, 1, 17, SIZE - 1, SIZE, SIZE + 3, 2 * SIZE, 5 * SIZE + 1])
def test_what_comes_back(size, pool):
    buffer = buffers.take(size)
    assert buffer.shape == (size,)
    assert buffer.dtype == np.uint8
    assert buffer.flags.writeable
    assert buffer.flags.c_contiguous
    assert buffer.ctypes.data % 16 == 0
    assert len(pool) == (size >= SIZE)
    buffer[:] = 7
    del buffer
    assert buffers.take(size).shape == (size,)
    assert len(pool) == (size >= SIZE)


def test_a_free_buffer_is_used_again(pool):
    first = buffers.take(SIZE)
    first[:] = 123
    del first
    again = buffers.take(SIZE)
    assert len(pool) == 1
    assert pooled(pool, again)
    assert (again == 123).all()


@pytest.mark.parametrize("size", [SIZE, 3 * SIZE // 2, 2 * SIZE])
def test_a_smaller_request_uses_a_buffer_of_up_to_twice_its_size(pool, size):
    buffers.take(2 * SIZE)
    again = buffers.take(size)
    assert len(pool) == 1
    assert again.size == size
    assert pooled(pool, again)


def test_a_buffer_that_is_too_large_or_too_small_is_left_alone(pool):
    buffers.take(2 * SIZE + 2)
    small = buffers.take(SIZE)
    assert len(pool) == 2
    assert small.base is pool[1]
    large = buffers.take(2 * SIZE + 3)
    assert len(pool) == 3
    assert large.base is pool[2]


HOLDERS = {
    "the array": lambda a: a,
    "a slice": lambda a: a[5:9],
    "a slice of a slice": lambda a: a[5:900][::7][1:],
    "another type": lambda a: a.view(np.uint64),
    "another shape": lambda a: a.reshape(2, -1).T,
    "another type of a slice": lambda a: a[8:88].view(np.int64)[3:],
    "a broadcast": lambda a: np.broadcast_to(a[:1], (4, 1)),
    "a memoryview": lambda a: a.data,
    "a slice of a memoryview": lambda a: a.data[3:17],
    "a memoryview that was cast": lambda a: a.data.cast("B")[1:],
    "an array over a memoryview": lambda a: np.frombuffer(a.data[8:24], np.uint64),
    "an iterator": lambda a: a.flat,
    "a tuple in a list": lambda a: [(a[:1],)],
    "a closure": lambda a: lambda: a[0],
    "a dictionary": lambda a: {"row": a[3:4]},
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_a_buffer_in_use_is_not_handed_out(hold, pool):
    holder = hold(buffers.take(SIZE))
    others = [buffers.take(SIZE) for _ in range(3)]
    assert len(pool) == 4
    assert not any(np.shares_memory(pool[0], other) for other in others)
    assert not np.shares_memory(others[0], others[1])
    del holder
    gc.collect()
    again = buffers.take(SIZE)
    assert len(pool) == 4
    assert np.shares_memory(pool[0], again)


def test_the_last_of_several_views_frees_the_buffer(pool):
    buffer = buffers.take(SIZE)
    views = [buffer[1:], buffer.data, buffer.view(np.uint16)]
    del buffer
    while views:
        other = buffers.take(SIZE)
        assert not np.shares_memory(pool[0], other)
        del other
        views.pop()
    again = buffers.take(SIZE)
    assert np.shares_memory(pool[0], again)


class TestCap:
    @pytest.fixture(autouse=True)
    def low(self, monkeypatch):
        monkeypatch.setattr(buffers, "LARGEST_POOL", 4 * SIZE)

    def test_the_pool_grows_to_the_cap_and_no_further(self, pool):
        held = []
        for count in range(1, 9):
            held.append(buffers.take(SIZE))
            held[-1][:] = count
            assert len(pool) == min(count, 4)
            assert sum(b.size for b in pool) <= buffers.LARGEST_POOL
        assert [int(b[0]) for b in held] == list(range(1, 9))
        assert [pooled(pool, b) for b in held] == [True] * 4 + [False] * 4
        assert not any(np.shares_memory(a, b) for i, a in enumerate(held) for b in held[:i])

    def test_a_buffer_larger_than_the_cap(self, pool):
        buffer = buffers.take(4 * SIZE + 1)
        assert buffer.size == 4 * SIZE + 1
        assert pool == []
        assert buffers.take(4 * SIZE).size == 4 * SIZE
        assert len(pool) == 1

    def test_what_is_in_use_survives_a_full_pool(self, pool):
        held = [buffers.take(SIZE) for _ in range(4)]
        for i, buffer in enumerate(held):
            buffer[:] = i
        more = buffers.take(2 * SIZE)
        more[:] = 99
        assert [set(b.tolist()) for b in held] == [{0}, {1}, {2}, {3}]
        assert sum(b.size for b in pool) <= buffers.LARGEST_POOL

    def test_free_buffers_that_do_not_fit_make_room(self, pool):
        used = buffers.take(SIZE)
        free = [buffers.take(SIZE) for _ in range(3)]
        del free
        large = buffers.take(3 * SIZE)
        assert pooled(pool, used)
        assert sum(b.size for b in pool if not np.shares_memory(b, large)) == SIZE


def test_threads_never_share_a_buffer(pool):
    """Eight threads take, write, hold and check; a shared buffer would show another's mark."""
    faults = []
    start = threading.Barrier(8)

    def work(mark):
        start.wait()
        held = []
        for turn in range(60):
            buffer = buffers.residues(SIZE // 8)
            buffer.fill(mark * 1000 + turn)
            held.append((turn, buffer[turn:]))
            if len(held) > turn % 4:
                at, view = held.pop(turn % len(held))
                if not (view == mark * 1000 + at).all():
                    faults.append((mark, at))

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert 1 <= len(pool) <= 8 * 5


def test_a_search_and_what_it_finds_are_one_step(monkeypatch, pool):
    """Between the count of references and the new view, no other thread may count."""
    locked = []
    count = buffers._references

    def observed(index):
        locked.append(buffers._lock.locked())
        return count(index)

    monkeypatch.setattr(buffers, "_references", observed)
    first = buffers.take(SIZE)
    second = buffers.take(SIZE)
    assert not np.shares_memory(first, second)
    assert locked == [True]
    assert not buffers._lock.locked()


@pytest.mark.parametrize("length", [0, 1, 5, SIZE // 8 - 1, SIZE // 8, SIZE // 8 + 1, SIZE])
def test_residues_and_zeros(length, pool):
    words = buffers.residues(length)
    assert words.shape == (length,)
    assert words.dtype == np.uint64
    assert len(pool) == (8 * length >= SIZE)
    words.fill(2**64 - 1)
    del words
    zeros = buffers.zeros(length)
    assert zeros.shape == (length,)
    assert zeros.dtype == np.uint64
    assert not zeros.any()
    assert len(pool) == (8 * length >= SIZE)
