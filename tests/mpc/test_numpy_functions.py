"""numpy's functions on shared arrays: they work, or are refused by their name."""

import numpy as np
import pytest
from mpc.computers import NAMES, Listener, computation, same, sent
from replaying import Replay

from securecomp.errors import ParameterError
from securecomp.mpc import Computation, SharedArray

A, B = np.array([3, -1, 2, 7]), np.array([1, 2, -3, 4])
M = np.array([[1, -2], [3, 4]])


@pytest.fixture(scope="module")
def run():
    return computation(2)


@pytest.fixture(scope="module")
def x(run):
    return run.share("north", A, bound=9)


@pytest.fixture(scope="module")
def y(run):
    return run.share("south", B, bound=9)


@pytest.fixture(scope="module")
def m(run):
    return run.share("south", M, bound=9)


def test_universal_functions(x, y, m):
    """Of two shared arrays, and of one and a numpy array or a number on either side."""
    for name in (
        "add", "subtract", "multiply", "floor_divide", "remainder", "matmul", "less", "less_equal",
        "greater", "greater_equal", "equal", "not_equal", "maximum", "minimum",
    ):  # fmt: skip
        function = getattr(np, name)
        same(function(x, y), function(A, B).astype(int))
        same(function(x, B), function(A, B).astype(int))
        same(function(A, y), function(A, B).astype(int))
        if name != "matmul":
            same(function(x, np.int64(2)), function(A, 2).astype(int))
            same(function(2, y), function(2, B).astype(int))
    same(np.divide(y, 4), [0.25, 0.5, -0.75, 1])
    same(np.divide(8, y[[0, 1, 3]]), [8, 4, 2])
    for name in ("negative", "positive", "absolute", "square"):
        function = getattr(np, name)
        same(function(x), function(A))
    same(np.power(x, 3), A**3)
    same(abs(x), np.abs(A))
    assert np.sqrt(x).reveal()[0] == pytest.approx(3**0.5)
    assert np.reciprocal(y).reveal().tolist() == pytest.approx([1, 0.5, -1 / 3, 0.25])


def test_other_functions(x, y, m):
    same(np.sum(x), 11)
    same(np.sum(m, axis=0), [4, 2])
    same(np.mean(x), 2.75)
    same(np.sort(x), np.sort(A))
    same(np.median(x), 2.5)
    same(np.quantile(x, 0.5), 2)
    same(np.max(x), 7)
    same(np.min(x), -1)
    same(np.argmax(x), 3)
    same(np.where(x > y, x, y), np.maximum(A, B))
    same(np.where(x > y, x, 0), np.where(A > B, A, 0))
    same(np.concatenate([x, y]), np.concatenate([A, B]))
    same(np.reshape(m, (4,)), M.reshape(-1))
    same(np.ravel(m), M.reshape(-1))
    same(np.transpose(m), M.T)
    same(np.dot(x, y), A @ B)
    same(np.dot(A, y), A @ B)
    same(np.broadcast_to(x, (2, 4)), [A.tolist(), A.tolist()])
    assert (np.shape(m), np.ndim(m), np.size(m)) == ((2, 2), 2, 4)


def test_powers(x):
    for exponent in (1, 2, 3, 5, np.int64(4)):
        same(x**exponent, A**exponent)
    for exponent in (0, -1, 65, 1.5, True, None, "2"):
        with pytest.raises(ParameterError, match="a power "):
            x**exponent


def test_the_others_are_refused_by_their_name(run, x, y):
    before = sent(run)
    a = np.ones(4)
    for name, call in {
        "sin": lambda: np.sin(x),
        "exp": lambda: np.exp(x),
        "hypot": lambda: np.hypot(x, y),
        "power": lambda: np.power(2, x),
        "logical_and": lambda: np.logical_and(a, x),
        "isnan": lambda: np.isnan(x),
        "divmod": lambda: np.divmod(x, y),
        "add.reduce": lambda: np.add.reduce(x),
        "multiply.outer": lambda: np.multiply.outer(a, x),
        "maximum.accumulate": lambda: np.maximum.accumulate(x),
        "add.at": lambda: np.add.at(a, [0], x[:1]),
        "stack": lambda: np.stack([x, y]),
        "vstack": lambda: np.vstack([a, x]),
        "cumsum": lambda: np.cumsum(x),
        "prod": lambda: np.prod(x),
        "std": lambda: np.std(x),
        "unique": lambda: np.unique(x),
        "allclose": lambda: np.allclose(a, x),
        "array_equal": lambda: np.array_equal(x, a),
        "searchsorted": lambda: np.searchsorted(a, x),
        "einsum": lambda: np.einsum("i,i", x, a),
        "zeros_like": lambda: np.zeros_like(x),
        "copyto": lambda: np.copyto(a, x),
        "linalg.norm": lambda: np.linalg.norm(x),
        "fft.fft": lambda: np.fft.fft(x),
    }.items():
        with pytest.raises(ParameterError, match=rf"^numpy\.{name} does not work on shares"):
            call()
    for options, call in {
        r"add of a shared array takes no out": lambda: np.add(x, y, out=a),
        r"add of a shared array takes no where": lambda: np.add(x, y, where=a > 0),
        r"less of a shared array takes no dtype": lambda: np.less(x, y, dtype=bool),
        r"sum of a shared array: .*dtype": lambda: np.sum(x, dtype=float),
        r"sort of a shared array: .*axis": lambda: np.sort(x, axis=0),
        r"where of a shared array: missing": lambda: np.where(x),
    }.items():
        with pytest.raises(ParameterError, match=rf"^numpy\.{options}"):
            call()
    assert sent(run) == before


def test_no_numpy_array_is_made_of_shares(run, x, y):
    """Neither an array of objects, nor an error of numpy's own."""
    before = sent(run)
    for call in (
        lambda: np.array(x),
        lambda: np.asarray(x),
        lambda: np.asarray(x[0]),
        lambda: np.array([x, y]),
        lambda: np.array([x, y], object),
        lambda: np.array([x[0], 1]),
        lambda: np.float64(x[0]),
        lambda: np.nditer(x),
        lambda: np.testing.assert_array_equal(x, A),
        lambda: np.add(np.ones(2), [1, x]),
        lambda: np.ones(2) * [1, x[0]],
    ):
        with pytest.raises(ParameterError, match=r"reveal\(\) it"):
            call()
    assert sent(run) == before


def test_no_function_of_numpys_makes_an_array_of_objects_or_breaks(replay):
    """Every function of numpy's main module, called with one and with two shared arrays."""
    together = Computation(NAMES[:2], Listener(Replay("all of numpy")))
    x = together.share("north", [3, 1, 2], bound=3)
    files = {"save", "savez", "savez_compressed", "savetxt", "test", "set_printoptions"}
    ours, refused = set(), set()
    for name in sorted(set(dir(np)) - files):
        function = getattr(np, name)
        if name.startswith("_") or not callable(function) or isinstance(function, type):
            continue
        for arguments in ((x,), (x, x)):
            try:
                found = function(*arguments)
            except ParameterError:
                refused.add(name)
            except (TypeError, ValueError, AttributeError, OSError, Warning):
                pass  # not with these arguments: a number of parties, a text, a function
            else:
                assert not isinstance(found, np.ndarray), name
                if isinstance(found, SharedArray):
                    ours.add(name)
    assert len(refused) > 150
    assert {"add", "sum", "sort", "median", "matmul", "maximum"} <= ours
