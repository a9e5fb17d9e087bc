"""The targets of the developer's cases, and how a target of a row is read."""

from dataclasses import replace
from typing import Any

from securecomp.overhead import catalogue
from securecomp.overhead.cases import aes_floors
from securecomp.overhead.job import Case, Target

_PRODUCT = Target("at most 200x of numpy's product", 200)
_LOGIT = Target("a logit within 1e-4", 1e-4, unit="error")
_DRAWS = Target("at least 100,000 draws a second", 10, unit="us")
_PROMISE = Target("a standard deviation within 5 %", 0.05, unit="error")


def _expansions(number: int) -> Target:
    text = f"at most 1.4x of {number} AES-256-CTR expansions"
    return Target(text, 1.4, floor=aes_floors.CTR)


TARGETS: dict[str, tuple[Target, ...]] = {
    "field/add": (Target("at most 1.3x of numpy's float64 add", 1.3),),
    "field/multiply": (Target("at most 1.6x of numpy's float64 multiply", 1.6),),
    "field/matmul": (Target("at most 15x of float64 matmul", 15),),
    "sum/one-receiver": (Target("at most 30x of numpy's sum of the three vectors", 30),),
    "split": (Target("at most 1.5x of AES-256-CTR of the same bytes", 1.5, floor=aes_floors.CTR),),
    "masking/mask/10": (_expansions(11),),
    "masking/mask/52": (_expansions(53),),
    "ckks/encrypt/1": (
        Target("at most 8 us a row", 8, unit="us"),
        Target("at most 500 bytes a row", 500, unit="bytes there"),
    ),
    "ckks/predict/1": (
        _PRODUCT,
        Target("at most 0.8 us a prediction", 0.8, unit="us"),
        Target("at most 40 bytes a prediction", 40, unit="bytes back"),
        _LOGIT,
    ),
    "ckks/predict/2": (_PRODUCT,),
    "ckks/protect": (Target("a logit within the plan's 1e-4", 1e-4, unit="error"),),
    "ckks/encrypted-model": (_LOGIT,),
    "computing/matmul/2": (Target("at most 80x of numpy's product", 80),),
    "privacy/draws/laplace": (_DRAWS,),
    "privacy/draws/gaussian": (_DRAWS,),
    "privacy/draws/skellam": (_DRAWS,),
    "privacy/promise/skellam": (_PROMISE,),
    "privacy/promise/discrete-gaussian": (_PROMISE,),
    "privacy/promise/laplace": (_PROMISE,),
}
"""Each case's targets, by its name. A case without an entry has none."""


def listed() -> tuple[Case, ...]:
    """Return the developer's cases with their targets, for a process that measures some of them."""
    return tuple(replace(c, targets=TARGETS.get(c.name, ())) for c in catalogue.detailed())


def targets(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row's targets. Runs of earlier versions have at most one."""
    found: list[dict[str, Any]] = row.get("targets", [row["target"]] if "target" in row else [])
    return found


def measured(target: dict[str, Any]) -> str:
    """Return a target's number with its unit."""
    unit = target.get("unit", "x")
    number = f"{target['value']:.3g}"
    return f"{number}x" if unit == "x" else number if unit == "error" else f"{number} {unit}"
