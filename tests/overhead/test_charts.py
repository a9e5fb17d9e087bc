import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from cases import named

from securecomp.overhead.charts import Band, Dot, decision, growth, order, ratios
from securecomp.overhead.line_model import LINES, Line
from securecomp.overhead.scheme_choice import ProtocolCost

TEXT = "{http://www.w3.org/2000/svg}text"


def said(svg: str) -> list[str]:
    """Return the texts of a figure; it is well-formed, named, and has no number that is none."""
    tree = ElementTree.fromstring(svg)  # noqa: S314 - our own figure
    assert tree.get("role") == "img"
    assert tree.get("aria-label")
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r'aria-label="[^"]*"', "", svg), re.IGNORECASE)
    return ["".join(each.itertext()) for each in tree.iter(TEXT)]


def way(name: str, seconds: float, each: float = 0.0, *, dropouts: bool = False) -> ProtocolCost:
    return ProtocolCost(
        name, dropouts, 0, lambda n, d: 0.0, lambda n, d: seconds + each * n * d, {}
    )


def test_a_ratio_stands_at_its_job_and_the_claims_over_their_ranges():
    dots = [Dot("sum/a", 24, 24.9, 26), Dot("sum/$b$<", 3e3, 3.2e3, 3.3e3)]
    texts = said(ratios(dots, [Band("said of MPC", 100, 1000)], "Ratios & more"))
    assert {"sum/a", "sum/$b$<", "24.9x", "3,200x", "said of MPC", "1x", "100x"} <= set(texts)


def test_the_largest_numbers_of_the_axis_are_words_and_not_exponents():
    texts = said(ratios([Dot("x", 1, 2, 3)], [Band("said", 1e4, 1e6)], "r"))
    assert "1,000,000x" in texts
    assert not [text for text in texts if re.search(r"\de[+-]?\d", text)]


def test_the_order_is_the_exponent_of_a_power_law():
    for exponent in [0.0, 0.5, 1.0, 2.0]:
        with named(exponent):
            sizes = [10, 100, 1000, 5000]
            assert order(sizes, [3.0 * n**exponent for n in sizes]) == pytest.approx(
                exponent, abs=1e-9
            )


def test_orders_are_those_of_the_run(runs):
    for run in runs.values():
        for fit in run["fits"]:
            rows = [row for row in run["rows"] if row["series"] == fit["series"]]
            costs = {
                "seconds": [row["secure"]["median"] for row in rows],
                "bytes by all": [row["bytes_total"] for row in rows],
                "bytes by a party": [row["bytes_per_party"] for row in rows],
            }[fit["quantity"]]
            assert order(fit["sizes"], costs) == pytest.approx(fit["exponent"])


def test_each_curve_is_named_with_its_order_beside_it():
    sizes = [10, 100, 1000]
    curves = {"plaintext": [1e-6, 1e-5, 1e-4], "secure $": [1e-3, 1e-3, 1e-3]}
    texts = said(growth(sizes, curves, "elements", "t"))
    assert {"plaintext: order 1.00", "secure $: order 0.00", "elements", "1,000", "1 ms"} <= set(
        texts
    )


def test_names_of_curves_that_end_together_do_not_cover_each_other():
    curves = {f"curve {i}": [1.0, 100.0] for i in range(6)}
    svg = growth([1, 10], curves, "n", "t", of_bytes=True)
    tree = ElementTree.fromstring(svg)  # noqa: S314 - our own figure
    heights = sorted(
        float(re.search(r' y="([\d.]+)"', ElementTree.tostring(each).decode())[1])
        for each in tree.iter(TEXT)
        if "order" in "".join(each.itertext())
    )
    assert len(heights) == 6
    assert min(b - a for a, b in pairwise(heights)) > 8  # points; text is 8.5


def test_every_region_of_the_map_has_its_name_in_it():
    texts = said(decision([way("one", 1.0), way("other", 0.5, 1e-4)], LINES[1], "map"))
    assert {"one", "other", "sites", "values"} <= set(texts)


def test_a_way_that_is_never_fastest_is_not_on_the_map():
    texts = said(decision([way("quick", 1.0, 1e-3), way("slow", 2.0, 1e-2)], LINES[0], "map"))
    assert "quick" in texts
    assert "slow" not in texts


def test_one_way_alone_has_all_of_the_map():
    assert "only" in said(decision([way("only", 1.0, 1e-3)], LINES[2], "map"))


def test_times_stand_on_their_lines():
    texts = said(decision([way("a", 1e-3, 1e-6)], Line("x", 1e9, 0.0), "map"))
    assert {"1 s", "1 min"} <= set(texts)


def test_the_same_figure_is_the_same_text():
    def draw() -> str:
        return ratios([Dot("x", 1, 2, 3)], [Band("b", 1, 9)], "t")

    assert draw() == draw()
