"""The cases of `securecomp bench`: each scheme and job, in sizes that the user gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from securecomp.errors import ParameterError
from securecomp.overhead import hospitals, inference, peers, shares, totals
from securecomp.overhead.job import Case, Job

MODULE = __name__
PARTIES = 3
FEATURES = inference.FEATURES
TENSEAL = "pip install 'securecomp[ckks]'"
FORMULAIC = "pip install 'securecomp[models]'"
OTHER_PEERS = {"case": "peer", "title": "Other peers", "reason": peers.OTHERS}
_LARGEST = 10**8
_SUMS = {  # protocol: its title, elements of a whole run and of a quick one, and the claim
    "sharing": ("Sum, shares", 1_000_000, 100_000, "mpc"),
    "masking": ("Sum, masks", 1_000_000, 100_000, "mpc"),
    "paillier": ("Sum, Paillier", 10_000, 1_000, ""),
}
_SHARES = {  # operation: its title, elements of a whole run and of a quick one
    "products": ("Shares, products", 1_000_000, 50_000),
    "compare": ("Shares, comparisons", 100_000, 5_000),
    "matmul": ("Shares, matrices", 500**2, 100**2),
    "sigmoid": ("Shares, sigmoid", 100_000, 2_000),
}
_ROWS = (4096, 1024)  # of inference, and of each hospital's table
_GROWTH = {  # scheme: elements, parties
    "sharing": ((1_000, 10_000, 100_000, 1_000_000), (3, 10, 30, 100)),
    "masking": ((1_000, 10_000, 100_000, 1_000_000), (3, 10, 30, 100)),
    "paillier": ((100, 300, 1_000, 10_000), (3, 10, 30)),
}
_FEW = 100  # elements, where parties vary
_COMPARED = (1_000, 10_000, 100_000)
_PREDICTED = (10, 100, 1_000, 10_000)
_WIDTHS = (10, 100, 1_000)
_QUICK = 3  # sizes of a quick run's series, the smallest


def listed(
    elements: int | None = None,
    parties: int = PARTIES,
    features: int = FEATURES,
    with_peers: int = 0,
    quick: int = 0,
) -> tuple[Case, ...]:
    """Return the cases.

    Args:
        elements: Values a hospital, rows of a table or of a request; by default each case's own.
        parties: Hospitals of a sum or a study, at least 3.
        features: Of a model.
        with_peers: 1 with other software.
        quick: 1 leaves the large sizes of a series out, and gives each scheme one process.

    Raises:
        ParameterError: A size that no case can have.
    """
    for name, size, least, most in (
        ("elements", elements, 4, _LARGEST),
        ("parties", parties, 3, 1_000),
        ("features", features, 1, 10_000),
    ):
        if size is not None and not least <= size <= most:
            raise ParameterError(f"--{name} is from {least} to {most:,}, not {size}")
    given = (elements, elements)
    cases = (
        *_sums(given, parties),
        *_studies(given, parties),
        *_computing(given),
        *_inference(given, features),
        *(case for series in _growth(parties, features) for case in series.cases(quick)),
        *(peers.listed(elements, parties, features) if with_peers else ()),
    )
    # Starting a process for each case would take half of a quick run.
    batches = ({"batch": case.scheme} if quick else {} for case in cases)
    return tuple(
        replace(case, blas_threads=1, **batch) for case, batch in zip(cases, batches, strict=True)
    )


Given = tuple[int | None, int | None]


def _sums(given: Given, parties: int) -> Iterator[Case]:
    for name, (title, size, quick, family) in _SUMS.items():
        yield Case(
            f"sum/{name}",
            title,
            partial(totals.job, name, parties),
            size=given[0] or size,
            quick=given[1] or quick,
            tiny=10,
            scheme=name,
            family=family,
        )


def _studies(given: Given, parties: int) -> Iterator[Case]:
    size, quick = _ROWS
    for name, title, build, needs in (
        ("moments", "Mean and variance", hospitals.moments, ()),
        ("regression", "Logistic regression", hospitals.regression, ("formulaic",)),
    ):
        yield Case(
            f"statistics/{name}",
            title,
            partial(build, parties),
            size=given[0] or size,
            quick=given[1] or quick,
            tiny=100,
            scheme="sharing",
            family="mpc",
            needs=needs,
            install=FORMULAIC if needs else "",
        )


def _computing(given: Given) -> Iterator[Case]:
    for name, (title, size, quick) in _SHARES.items():
        yield Case(
            f"shares/{name}",
            title,
            partial(shares.whole, shares.OPERATIONS[name]),
            size=given[0] or size,
            quick=given[1] or quick,
            tiny=4,
            scheme="shares",
            family="mpc",
        )


def _inference(given: Given, features: int) -> Iterator[Case]:
    size, quick = _ROWS
    scoring: dict[str, Any] = {"activation": "server", "domain": 8.0}
    for name, title, options in (
        ("logits", "Inference", {}),
        ("sigmoid", "Inference, sigmoid", scoring),
    ):
        yield Case(
            f"inference/{name}",
            title,
            partial(inference.with_keys, features=features, **options),
            size=given[0] or size,
            quick=given[1] or quick,
            tiny=1,
            scheme="ckks",
            family="fhe",
            needs=("tenseal",) if options else (),
            install=TENSEAL if options else "",
        )


@dataclass(frozen=True, slots=True)
class _Series:
    """Sizes of one kind, for one scheme."""

    scheme: str
    series: str
    title: str
    sizes: tuple[int, ...]
    build: Callable[[int], Job]
    family: str

    def cases(self, quick: int) -> Iterator[Case]:
        """Yield a case for each size; one process measures them all, smallest first."""
        for size in self.sizes[:_QUICK] if quick else self.sizes:
            yield Case(
                f"growth/{self.scheme}/{self.series}/{size}",
                f"{self.title}, {size:,} {self.series}",
                self.build,
                size=size,
                quick=size,
                tiny=self.sizes[0],
                series=self.series,
                scheme=self.scheme,
                family=self.family,
                batch=f"{self.scheme}/{self.series}",
            )


def _growth(parties: int, features: int) -> Iterator[_Series]:
    for scheme, (elements, many) in _GROWTH.items():
        title, _, _, family = _SUMS[scheme]
        by_elements = partial(totals.job, scheme, parties, keys=False)
        by_parties = partial(_of_few, scheme)
        yield _Series(scheme, "elements", title, elements, by_elements, family)
        yield _Series(scheme, "parties", title, many, by_parties, family)
    compared = partial(shares.whole, shares.OPERATIONS["compare"])
    predicted = partial(inference.whole, features=features)
    by_features = partial(inference.whole, _ROWS[1])
    yield _Series("shares", "elements", "Comparisons", _COMPARED, compared, "mpc")
    yield _Series("ckks", "elements", "Inference", _PREDICTED, predicted, "fhe")
    yield _Series("ckks", "features", "Inference", _WIDTHS, by_features, "fhe")


def _of_few(scheme: str, parties: int) -> Job:
    return totals.job(scheme, parties, _FEW, keys=False)
