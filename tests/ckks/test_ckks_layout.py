"""Where rows go and where logits come out, with Python's integers for polynomials."""

import itertools

import numpy as np
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks.native.layout import RowRun, blocks, sections

DEGREES = [4, 16, 64]


def times(a, b, degree):
    """a b modulo X^N + 1, exactly."""
    out = [0] * degree
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                if i + j < degree:
                    out[i + j] += x * y
                else:
                    out[i + j - degree] -= x * y
    return out


@st.composite
def shapes(draw):
    """(degree, features, rows): on both sides of every border."""
    degree = draw(st.sampled_from(DEGREES))
    near = [1, 2, degree - 1, degree, degree + 1, 2 * degree, 2 * degree + 3]
    features = draw(st.sampled_from(near) | st.integers(1, 3 * degree))
    rows = draw(st.sampled_from(near) | st.integers(1, 2 * degree + 5))
    return degree, features, rows


def computed(found, integers, weights):
    """What a server gets out: each row's integer, from packing, products and positions."""
    degree = found[0].degree
    out = np.full((len(integers), len(weights)), None, object)
    for section in found:
        for group in range(section.groups):
            packed = np.full((section.terms, degree), 99, np.int64)
            section.pack(integers, group, slice(0, section.terms), packed)
            for k, row in enumerate(weights):
                laid = section.weights(row)
                total = [0] * degree
                for term in range(section.terms):
                    if section.by_columns:
                        product = [laid[term] * int(x) for x in packed[term]]
                    else:
                        product = times(packed[term].tolist(), laid[term].tolist(), degree)
                    total = [a + b for a, b in zip(total, product, strict=True)]
                place, where = section.place(group), section.positions(group)
                assert len(where) == place.stop - place.start == section.count(group)
                for r, position in zip(range(place.start, place.stop), where, strict=True):
                    assert out[r, k] is None  # no row twice
                    out[r, k] = total[position]
    return out


@each_case("by_columns", [True, False])
@given(shape=shapes(), outputs=st.integers(1, 3), seed=st.integers(0, 2**32))
def test_dot_products_are_exact(by_columns, shape, outputs, seed):
    degree, features, rows = shape
    if degree == 64 and features * rows > 4000:
        rows = max(1, 4000 // features)
    source = np.random.default_rng(seed)
    integers = source.integers(-(2**50), 2**50, (rows, features))
    weights = [
        [int(w) * 2**40 for w in source.integers(-(2**60), 2**60, features)] for _ in range(outputs)
    ]
    found = [RowRun(degree, features, by_columns, 0, rows)]
    want = [
        [sum(x * w for x, w in zip(row, k, strict=True)) for k in weights]
        for row in integers.tolist()
    ]
    assert computed(found, integers, weights).tolist() == want


@given(shape=shapes(), outputs=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_the_chosen_sections_too(shape, outputs, seed):
    degree, features, rows = shape
    rows = min(rows, max(1, 3000 // features))
    source = np.random.default_rng(seed)
    integers = source.integers(-100, 101, (rows, features))
    weights = source.integers(-100, 101, (2, features)).tolist()
    found = sections(degree, features, outputs, rows)
    assert computed(found, integers, weights).tolist() == (integers @ np.array(weights).T).tolist()


@given(shape=shapes(), outputs=st.integers(1, 12))
def test_sections_are_all_rows_in_order(shape, outputs):
    degree, features, rows = shape
    found = sections(degree, features, outputs, rows)
    covered = [r for s in found for r in range(s.start, s.start + s.rows)]
    assert covered == list(range(rows))
    places = [r for s in found for g in range(s.groups) for r in range(len(covered))[s.place(g)]]
    assert places == covered
    for section in found[:-1]:
        assert section.by_columns
        assert section.rows % degree == 0


@given(shape=shapes(), outputs=st.integers(1, 12))
def test_the_rest_takes_the_fewer_bytes(shape, outputs):
    degree, features, rows = shape
    last = sections(degree, features, outputs, rows)[-1]
    if last.rows % degree:
        other = RowRun(degree, features, not last.by_columns, last.start, last.rows)
        sizes = [s.polynomials + outputs * s.groups for s in (last, other)]
        assert sizes[0] <= sizes[1]


@given(shape=shapes(), by_columns=st.booleans())
def test_positions_are_each_rows_own(shape, by_columns):
    degree, features, rows = shape
    section = RowRun(degree, features, by_columns, 0, rows)
    for group in range(section.groups):
        where = section.positions(group).tolist()
        assert len(set(where)) == len(where)
        assert min(where) >= 0
        # by rows, nothing of the next row is in a row's own coefficients
        width = 1 if by_columns else min(features, degree)
        assert max(where) + width <= degree
        assert all(b - a >= width for a, b in itertools.pairwise(where))


@given(shape=shapes(), by_columns=st.booleans(), cut=st.integers(1, 7))
def test_packing_in_parts_is_packing(shape, by_columns, cut):
    degree, features, rows = shape
    section = RowRun(degree, features, by_columns, 0, rows)
    integers = np.arange(rows * features, dtype=np.int64).reshape(rows, features) + 1
    group = section.groups - 1
    whole = np.full((section.terms, degree), -1, np.int64)
    section.pack(integers, group, slice(0, section.terms), whole)
    for start in range(0, section.terms, cut):
        part = slice(start, min(start + cut, section.terms))
        out = np.full((part.stop - part.start, degree), -1, np.int64)
        section.pack(integers, group, part, out)
        assert np.array_equal(out, whole[part])
    # all numbers of the group are there, once; the rest is zero
    mine = integers[section.place(group)]
    assert sorted(whole[whole != 0].tolist()) == mine.reshape(-1).tolist()


@given(shape=shapes(), outputs=st.integers(1, 4), step=st.integers(1, 9))
def test_blocks_cover_every_polynomial_once(shape, outputs, step):
    degree, features, rows = shape
    found = sections(degree, features, outputs, rows)
    made = blocks(found, step)
    expected = sum(s.polynomials for s in found)
    covered = [i for b in made for i in range(b.first, b.first + b.terms.stop - b.terms.start)]
    assert covered == list(range(expected))
    # every block has its own part of the masks' and the noise's stream
    assert [b.index for b in made] == list(range(len(made)))
    assert all(1 <= b.terms.stop - b.terms.start <= step for b in made)
    outputs_ = [(b.section, b.group) for b in made]
    order = list(dict.fromkeys(outputs_))
    assert [b.output for b in made] == [order.index(o) for o in outputs_]
    for section, group in order:
        terms = [
            t
            for b in made
            if (b.section, b.group) == (section, group)
            for t in range(b.terms.start, b.terms.stop)
        ]
        assert terms == list(range(section.terms))


@each_case(
    "features, rows, outputs, expected",
    [
        (1, 1, 1, [(True, 1)]),
        (30, 1, 1, [(False, 1)]),
        (30, 64, 1, [(True, 64)]),
        (30, 65, 1, [(True, 64), (False, 1)]),
        (30, 64 + 63, 1, [(True, 64), (True, 63)]),
        (100, 1, 1, [(False, 1)]),
        (64, 63, 1, [(True, 63)]),
    ],
)
def test_examples(features, rows, outputs, expected):
    found = sections(64, features, outputs, rows)
    assert [(s.by_columns, s.rows) for s in found] == expected


def test_weights_by_rows_are_the_powers_below_zero():
    """w_0 + w_1 X^-1 + w_2 X^-2, where X^-j = -X^(N-j)."""
    assert RowRun(4, 3, False, 0, 1).weights([5, 6, 7]).tolist() == [[5, 0, -7, -6]]
    assert RowRun(4, 6, False, 0, 1).weights([1, 2, 3, 4, 5, 6]).tolist() == [
        [1, -4, -3, -2],
        [5, 0, 0, -6],
    ]
