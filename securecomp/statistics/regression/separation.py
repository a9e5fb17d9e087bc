"""Data that determine no model, found from the first sum."""

from typing import Any

from securecomp.errors import ParameterError, brief
from securecomp.statistics.regression.gathered_rows import GatheredRows


def check(work: GatheredRows) -> None:
    """Refuse data that determine no model.

    Raises:
        ParameterError: Weights of 0, one response only, or a level that has one response only.
    """
    m = work.moments
    if m.weight <= 0:
        raise ParameterError("all weights are 0; a row counts as often as its weight says")
    if work.intercept:
        check_response(work)
    if work.family.name == "linear":
        return
    response, logistic = brief(work.design.response_name), work.family.name == "logistic"
    for name, rows, sum_ in _levels(work):
        if rows > 0 and (sum_ == 0 or (logistic and sum_ == rows)):
            value = 0 if sum_ == 0 else 1
            raise ParameterError(
                f"separation: {response} is {value} in every row with {brief(name)}, so that its "
                "coefficient has no finite value; leave it out, or join levels"
            )


def check_response(work: GatheredRows) -> None:
    """Refuse a response that a constant explains, for a model that has one.

    Raises:
        ParameterError: It is the same in every row, or so nearly that rounding has left nothing.
    """
    m, response = work.moments, brief(work.design.response_name)
    if work.family.name == "linear":
        if m.response_squared * m.weight == m.response**2:
            if m.response_rounded:
                raise ParameterError(
                    f"{response} varies so little beside its bound that none of its digits are "
                    "left, or not at all; agree on fewer decimals, or subtract an agreed number "
                    "from it, as in I(y - 1000)"
                )
            raise ParameterError(
                f"{response} is the same in every row: there is nothing to explain"
            )
    elif work.extreme:
        value = 0 if m.response == 0 else 1
        raise ParameterError(f"{response} is {value} in every row: there is nothing to explain")


def _levels(work: GatheredRows) -> list[tuple[str, Any, Any]]:
    """Return groups of rows that coefficients set apart: their name, weight and response."""
    m, found = work.moments, []
    columns = [work.design.columns[i] for i in work.order[int(work.intercept) :]]
    for i, (name, column) in enumerate(zip(work.names, columns, strict=True)):
        # Integers whose squares add up to as much as they do are 0 and 1.
        whole = column.unit is not None and column.unit.denominator == 1 and m.exact
        if not (whole and m.squares[i, i] == m.sums[i]):
            continue
        found.append((name, m.sums[i], m.with_response[i]))
        if work.intercept and name not in work.design.coded:
            rest = m.weight - m.sums[i], m.response - m.with_response[i]
            found.append((f"{name} = 0", *rest))
    for text, levels in work.design.references.items() if work.intercept else ():
        at = [work.names.index(name) for name in levels]
        rest = m.weight - sum(m.sums[at]), m.response - sum(m.with_response[at])
        found.append((text, *rest))
    return found
