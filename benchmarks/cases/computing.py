"""Computing on shares: products, exact truncation, matrix products, comparisons."""

from securecomp.overhead.job import Case, Target
from securecomp.overhead.shares import OPERATIONS, OTHERS, TWO, ComputingParties, job

PRODUCTS = 1_000_000
SIDE = 500
COMPARISONS = 100_000
GROWTH = (1_000, 10_000, 100_000)

_SIZES = {  # reported, and of a quick run
    "products": (PRODUCTS, 100_000),
    "truncated": (PRODUCTS, 50_000),
    "matmul": (SIDE**2, 100**2),
    "matmul-truncated": (SIDE**2, 100**2),
    "sigmoid": (COMPARISONS, 10_000),
    "equal": (COMPARISONS, 10_000),
    "sort": (1_000, 100),
    "compare": (COMPARISONS, 10_000),
}
_MATMUL = Target("at most 80x of numpy's product", 80)


def case(name: str, setting: ComputingParties) -> Case:
    operation = OPERATIONS[name]
    size, quick = _SIZES[name]
    return Case(
        f"computing/{name}/{setting.name}",
        f"On shares, {operation.title}, {setting.title}",
        lambda elements: job(operation, setting, elements),
        size=size,
        quick=quick,
        tiny=4,
        target=_MATMUL if name == "matmul" else None,
    )


CASES = (
    *(case(name, TWO) for name in OPERATIONS),
    *(case(name, setting) for setting in OTHERS for name in ("products", "compare")),
    *(
        Case(
            f"growth/compared/{n}",
            f"On shares, {n:,} comparisons, 2 parties and a dealer",
            lambda elements: job(OPERATIONS["compare"], TWO, elements, "compared"),
            size=n,
            quick=n,
            tiny=4,
            series="compared",
        )
        for n in GROWTH
    ),
)
