"""What groups give away: published tables, and the definitions written out."""

import math
from collections import Counter, defaultdict
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from securecomp.audit.reidentification.uniqueness import uniqueness

# Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity",
# TKDD 1(1), 2007: the conditions of figure 1 under the groups of figures 2 and 3.
CONDITION = [
    *("heart", "heart", "viral", "viral", "cancer", "heart"),
    *("viral", "viral", "cancer", "cancer", "cancer", "cancer"),
]
FOUR_ANONYMOUS = [*["130** <30"] * 4, *["1485* >=40"] * 4, *["130** 3*"] * 4]
ROWS = dict(zip(range(1, 13), CONDITION, strict=True))
THREE_DIVERSE = {
    "1305* <=40": (1, 4, 9, 10),
    "1485* >40": (5, 6, 7, 8),
    "1306* <=40": (2, 3, 11, 12),
}


def measured(groups, values):
    frame = pd.DataFrame({"group": groups, "secret": values})
    return uniqueness(frame, "group", sensitive="secret")


def test_a_four_anonymous_table_that_gives_a_group_away():
    found = measured(FOUR_ANONYMOUS, CONDITION)
    assert found.k == 4
    (d,) = found.diversity
    # "Bob is a 31 year old American male ...": he has cancer, as all four of his group.
    assert (d.distinct, d.entropy, d.recursive, d.given_away) == (1, 1, (), 4)
    assert "4 rows are in groups of several in which all have the same value" in str(found)


def test_a_three_diverse_table():
    groups = [name for name, rows in THREE_DIVERSE.items() for _ in rows]
    values = [ROWS[n] for rows in THREE_DIVERSE.values() for n in rows]
    (d,) = measured(groups, values).diversity
    assert d.distinct == 3
    assert d.entropy == pytest.approx(math.exp(1.5 * math.log(2)))  # shares 1/2, 1/4, 1/4
    assert dict(d.recursive) == {2: 1.0, 3: 2.0}
    assert d.given_away == 0


# Li, Li, Venkatasubramanian, "t-closeness", ICDE 2007, tables 3 and 5: salaries.
@each_case(
    "salaries, closeness",
    [([3, 4, 5, 6, 11, 8, 7, 9, 10], 0.375), ([3, 5, 9, 6, 11, 8, 4, 7, 10], 0.167)],
)
def test_published_closeness(salaries, closeness):
    (d,) = measured([1, 1, 1, 2, 2, 2, 3, 3, 3], salaries).diversity
    assert d.ordered
    assert d.closeness == pytest.approx(closeness, abs=5e-4)


@each_case("kind", [int, Decimal])
def test_closeness_knows_the_order_of_large_integers_and_of_decimals(kind):
    """Floats take these all for one, and decimals are no machine's numbers."""
    values = [kind(2**60 + n) for n in (3, 1, 2, 0)]
    (d,) = measured(["a", "b", "a", "b"], values).diversity
    assert d.ordered
    # Shares of the ranks 0 to 3: group a has (0, 0, 1/2, 1/2), all have 1/4 each.
    assert d.closeness == pytest.approx((1 / 4 + 1 / 2 + 1 / 4) / 3)


def test_codes_in_numbers_are_pointed_out():
    codes = [401, 250, 402, 250]
    assert "if they are codes, give them as text" in str(measured([1, 1, 2, 2], codes))
    assert "codes" not in str(measured([1, 1, 2, 2], list(map(str, codes))))


def test_a_value_that_all_of_a_group_have_beside_others():
    frame = pd.DataFrame(
        {"group": [1] * 4, "who": [1, 1, 2, 2], "secret": ["flu", "hiv", "flu", "hiv"]}
    )
    (d,) = uniqueness(frame, "group", sensitive="secret", identifier="who").diversity
    assert (d.distinct, d.given_away) == (2, 2)


rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 6)), st.integers(0, 6)),
    min_size=1,
    max_size=30,
)


@given(rows, st.booleans(), st.booleans())
def test_the_same_as_by_definition(rows, identified, numbers):
    secrets = [v if numbers or v is None else f"v{v}" for _, v, _ in rows]
    frame = pd.DataFrame(
        {
            "group": [g for g, _, _ in rows],
            "secret": pd.Series(secrets, dtype="Int64" if numbers else object),
            "who": [w for _, _, w in rows],
        }
    )
    found = uniqueness(frame, "group", sensitive="secret", identifier="who" if identified else None)
    (d,) = found.diversity
    triples = {
        (group, who if identified else place, value)
        for place, ((group, _, who), value) in enumerate(zip(rows, secrets, strict=True))
    }
    people = defaultdict(set)
    groups = defaultdict(Counter)
    for group, who, value in triples:
        people[group].add(who)
        if value is not None:
            groups[group][value] += 1
    assert d.missing == sum(value is None for value in secrets)
    if not groups:
        assert (d.distinct, d.given_away) == (0, 0)
        return
    assert d.distinct == min(map(len, groups.values()))
    shares = [np.array([*g.values()]) / g.total() for g in groups.values()]
    assert d.entropy == pytest.approx(min(np.exp(-(p * np.log(p)).sum()) for p in shares))
    for l, c in d.recursive:  # noqa: E741
        ratios = []
        for g in groups.values():
            counts = sorted(g.values(), reverse=True)
            ratios.append(counts[0] / sum(counts[l - 1 :]))
        assert c == pytest.approx(max(ratios))
    assert [l for l, _ in d.recursive] == [*range(2, min(5, d.distinct) + 1)]  # noqa: E741
    holders = defaultdict(set)
    for group, who, value in triples:
        if value is not None:
            holders[group].add(who)
    shared = {g for g, counts in groups.items() if max(counts.values()) == len(holders[g])}
    given_away = {
        who
        for group, who, value in triples
        if value is not None and len(people[group]) > 1 and group in shared
    }
    assert d.given_away == len(given_away)
    every = sum(groups.values(), Counter())
    distances = []
    for g in groups.values():
        if numbers:
            ranks = {v: i for i, v in enumerate(sorted(every))}
            far = wasserstein_distance(
                [ranks[v] for v in g], [ranks[v] for v in every], [*g.values()], [*every.values()]
            )
            distances.append(far / max(1, len(every) - 1))
        else:
            distances.append(
                sum(abs(g[v] / g.total() - n / every.total()) for v, n in every.items()) / 2
            )
    assert d.closeness == pytest.approx(max(distances), abs=1e-12)
