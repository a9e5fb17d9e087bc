"""Choice of backend, circuit and ring for a model and a precision.

The error bounds are proven in `native.linear_plan` and `seal.slot_plan`.
"""

import warnings
from fractions import Fraction
from typing import Literal

from securecomp.ckks.native import linear_plan
from securecomp.ckks.native.ring_parameters import LinearParameters, Sigmoid
from securecomp.ckks.plan import MAX_FEATURES, Backend, InferencePlan
from securecomp.ckks.scaled_model import Scaled, power_above
from securecomp.ckks.seal import sigmoid_plan, slot_plan
from securecomp.ckks.seal.seal_context import installed
from securecomp.ckks.seal.slot_circuit import SlotCircuit
from securecomp.core import minimax
from securecomp.errors import ParameterError
from securecomp.models import LogisticModel

Activation = Literal["client", "server"]
_LARGE = 1e-2
_DEGREES = (2048, 4096, 8192, 16384, 32768)


class PrecisionWarning(UserWarning):
    """A plan whose probabilities may be off by more than 0.01."""


def plan(
    model: LogisticModel,
    *,
    precision: float | None = None,
    protect_model: bool = False,
    encrypted: bool = False,
    max_rows: int | None = None,
    shareable_rows: int = 0,
    backend: Backend | None = None,
    activation: Activation = "client",
    degree: int | None = None,
    domain: float | None = None,
) -> InferencePlan:
    """Choose a circuit whose error is at most `precision`, and the smallest ring for it.

    If the server computes probabilities, the precision is that of a probability, and the degree
    follows from it. With a degree given, the precision is that of the server's arithmetic; the
    error of the polynomial comes on top, and the plan's precision includes both.

    Args:
        model: The model. Its bounds are rounded up to powers of 2.
        precision: Largest error of a logit after rounding. Rounding takes half of it. By default
            1e-4, and 0.01 of a probability if the server computes these.
        protect_model: Hide everything of the model but the logits from the client, and answer
            fewer rows than determine the model.
        encrypted: Whether the model is encrypted for the server.
        max_rows: Total number of rows that one client may ask for. By default there is no limit;
            with `protect_model` it is the number of features, which is also the largest limit.
        shareable_rows: Number of rows whose results may be given to anybody (`InferenceClient`).
        backend: "seal" for Microsoft SEAL through TenSEAL, "native" for this project's own kernels.
            By default SEAL wherever it can do it: TenSEAL is installed, the model is neither
            protected nor encrypted, no results are shared, and a ring reaches the precision.
        activation: The side that computes probabilities from logits.
        degree: Degree of the server's polynomial, odd. By default the smallest that is precise.
        domain: Largest absolute logit for which the polynomial is made: 8 by default, or the
            largest that the bounds allow if this is less. Rows with a logit beyond it are finished
            by the client, and flagged.

    Warns:
        PrecisionWarning: The server's probabilities may be off by more than 0.01.

    Raises:
        ParameterError: No 128-bit secure ring reaches this precision; more rows than keep a
            protected model hidden; a model that is both encrypted and protected; a backend that
            cannot do it.
    """
    features = len(model.features)
    if precision is None:
        precision = 1e-2 if activation == "server" else 1e-4
    _check_wishes(features, precision, protect_model, encrypted, max_rows, shareable_rows)
    limit = max_rows or (features if protect_model else 0)
    bounds = tuple(2.0 ** power_above(bound) for bound in model.bounds)
    scaled = Scaled(model, bounds)
    hiding = bool(protect_model or encrypted or shareable_rows)
    if activation == "server":
        if hiding or model.link not in ("sigmoid", "ovr"):
            raise ParameterError(
                "a server computes probabilities only with a plain, unprotected model of two "
                "classes or one against the rest, and for the client alone; otherwise use "
                'activation="client"'
            )
        if backend == "native":
            raise ParameterError(
                'activation="server" runs on SEAL alone; leave out backend="native", or have the '
                "client compute probabilities"
            )
        return _sigmoid_plan(model, bounds, scaled, precision, degree, domain, limit)
    if backend == "seal" and hiding:
        raise ParameterError(
            "a protected or encrypted model, and results that may be shared, need noise that SEAL "
            'does not add; use backend="native"'
        )
    logit_bits = power_above(max(scaled.logit, Fraction(1, 1 << 10)))
    hidden = (limit if protect_model else 0, shareable_rows)
    circuit, error = _logits(scaled, precision, logit_bits, backend, hidden, encrypted)
    return InferencePlan(
        features=model.features,
        bounds=bounds,
        classes=model.classes,
        link=model.link,
        precision=precision,
        error=error,
        logit_bound=2.0**logit_bits,
        circuit=circuit,
        model="encrypted" if encrypted else "plain",
        protect_model=protect_model,
        max_rows=limit,
        shareable_rows=shareable_rows,
    )


def _logits(
    scaled: Scaled,
    precision: float,
    logit_bits: int,
    backend: Backend | None,
    hidden: tuple[int, int],
    encrypted: bool,
) -> tuple[LinearParameters | SlotCircuit, float]:
    """Return a circuit for logits, and its error.

    Raises:
        ParameterError: No ring reaches the precision.
    """
    found: tuple[LinearParameters | SlotCircuit, float] | None = None
    usual = backend is None and not any(hidden) and not encrypted and installed()
    if backend == "seal" or usual:
        found = _slots(scaled, precision, logit_bits)
    if found is None and backend != "seal":
        found = _native(scaled, precision, logit_bits, hidden, encrypted)
    if found is None:
        more = '; backend="native" can do more' if backend == "seal" else ""
        raise ParameterError(
            f"no ring up to degree {_DEGREES[-1]:,} gives {scaled.weights.shape[1]:,} features and "
            f"logits up to {2.0**logit_bits:g} to {precision:g}; ask for less precision, or give "
            f"smaller bounds{more}"
        )
    return found


def _slots(scaled: Scaled, precision: float, logit_bits: int) -> tuple[SlotCircuit, float] | None:
    """Return the smallest circuit over SEAL, and its error. Rounding takes the other half."""
    circuit = slot_plan.choose(scaled, precision / 2, logit_bits)
    return None if circuit is None else (circuit, slot_plan.error(scaled, circuit))


def _native(
    scaled: Scaled, precision: float, logit_bits: int, hidden: tuple[int, int], encrypted: bool
) -> tuple[LinearParameters, float] | None:
    """Return the native circuit in the smallest ring, and its error."""
    for degree in _DEGREES:
        circuit = linear_plan.choose(scaled, degree, precision / 2, logit_bits, hidden, encrypted)
        if circuit is not None:
            return circuit, float(scaled.error(circuit, encrypted)) * (1 + 1e-9)
    return None


def _check_wishes(
    features: int,
    precision: float,
    protect_model: bool,
    encrypted: bool,
    max_rows: int | None,
    shareable_rows: int,
) -> None:
    if not 1e-12 <= precision < 1:
        raise ParameterError(f"the precision must be at least 1e-12 and below 1, not {precision}")
    if features > MAX_FEATURES:
        raise ParameterError(
            f"the model has {features:,} features, and at most {MAX_FEATURES:,} are supported"
        )
    if shareable_rows and encrypted:
        raise ParameterError(
            "the results of an encrypted model are for the client only; leave out shareable_rows"
        )
    if protect_model and encrypted:
        raise ParameterError(
            "protect_model needs a model that the server knows; the replies of an encrypted model "
            "have a third part, which no flood noise hides"
        )
    if protect_model and max_rows is not None and not 1 <= max_rows <= features:
        raise ParameterError(
            f"{features + 1} rows determine a model of {features} features; with protect_model a "
            f"client gets 1 to {features}"
        )
    if shareable_rows < 0 or (max_rows is not None and max_rows < 1):
        raise ParameterError("a number of rows must be positive")


def _sigmoid_plan(
    model: LogisticModel,
    bounds: tuple[float, ...],
    scaled: Scaled,
    precision: float,
    degree: int | None,
    domain: float | None,
    limit: int,
) -> InferencePlan:
    logit_bound = 2.0 ** power_above(max(scaled.logit, Fraction(1, 1 << 10)))
    if domain is None:
        reach = float(scaled.logit) * (1 + 1e-9)
        domain = max(minimax.LEAST_DOMAIN, min(reach, sigmoid_plan.USUAL_DOMAIN))
    weight_bound = 2.0 ** power_above(max(*scaled.totals, Fraction(1, 1 << 10)))
    scaled.check_domain(domain)
    stated = degree is None
    found = sigmoid_plan.plan(
        len(bounds),
        domain,
        # Rounding takes half of the precision, the polynomial and its arithmetic a quarter each.
        sigmoid_plan.least_degree(domain, precision / 4) if degree is None else degree,
        feature_bound=1.0,
        weight_bound=weight_bound,
        precision=precision / (4 if stated else 2),
    )
    if found.error > _LARGE:
        warnings.warn(
            f"probabilities may be off by {found.error:.2g}: the polynomial of degree "
            f"{found.degree} is that far from the logistic function for logits up to {domain:g}; "
            "leave out the degree, or plan a smaller domain",
            PrecisionWarning,
            stacklevel=3,
        )
    return InferencePlan(
        features=model.features,
        bounds=bounds,
        classes=model.classes,
        link=model.link,
        precision=precision if stated else found.error + precision / 2,
        error=found.error,
        logit_bound=logit_bound,
        circuit=Sigmoid(
            ring=found.chain.ring,
            moduli=found.chain.moduli,
            special=found.chain.special,
            scale_bits=found.scale_bits,
            degree=found.degree,
            domain=found.domain,
            weight_bound=weight_bound,
            numeric_error=found.numeric_error,
            polynomial_error=found.polynomial_error,
        ),
        max_rows=limit,
    )
