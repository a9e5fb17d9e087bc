"""The sites' rows as a training wants them: numbers, agreed columns, agreed classes.

Of a study the columns are a formula's design, equal at every site; `matrices` reads what has no
formula. Rows are read, and refused if they must be, before anything is sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.federated.losses import Floats, one_hot
from securecomp.models import Label
from securecomp.privacy.policy import Privacy
from securecomp.statistics.regression import formulas
from securecomp.statistics.regression.designs import INTERCEPT, Design
from securecomp.statistics.regression.expressions import ExpressionRows as Read
from securecomp.statistics.regression.families import check_events
from securecomp.statistics.regression.formulas import Category
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Level, Table
from securecomp.statistics.study import Study
from securecomp.statistics.summaries.clipped_values import Clipping

Ints = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Rows of one site.

    Attributes:
        features: In the columns' own units, shape (n, d), without an intercept.
        targets: Shape (n, K).
        labels: Of each row its class's place; empty for a linear model.
        units: Of each row its patient's number, None where rows are units.
    """

    features: Floats
    targets: Floats
    labels: Ints
    units: Ints | None


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Rows of all sites, and what the sites agreed on.

    Attributes:
        sites: The sites that are here, by name.
        everybody: Names of all sites.
        names: The columns'.
        low: No value of a column is less, shape (d,).
        high: No value is more.
        intercept: Whether there is one.
        classes: Of a logistic model; None for a linear one.
        from_data: Facts that were taken from the data, not declared.
        formula: Of a study's rows; None for matrices.
        levels: The agreed levels of a formula's categories.
        named: Whether the columns' names were given.
    """

    sites: dict[str, Site]
    names: tuple[str, ...]
    low: Floats
    high: Floats
    intercept: bool
    classes: tuple[Label, ...] | None
    from_data: dict[str, str]
    formula: str | None
    levels: dict[str, tuple[Level, ...]]
    named: bool
    everybody: tuple[str, ...]

    @property
    def outputs(self) -> int:
        """Rows of weights."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)


def of_study(
    study: Study,
    formula: str,
    privacy: Privacy | None,
    bounds: Mapping[str, float] | None,
    *,
    classify: bool,
) -> TrainingData:
    """Read a study's rows through a formula.

    Args:
        study: The sites.
        formula: As `Study.glm` takes it.
        privacy: With it, values are moved into its bounds, a patient has so many records, and
            nothing is taken from the data.
        bounds: Factors of the formula to their largest absolute value.
        classify: Whether the response is classes.

    Raises:
        ParameterError: A formula that cannot be read, a response that is no class, something that
            must be declared.
        RangeError: A site's value is missing, beyond a bound or outside its levels; it is named.
    """
    study.agree()
    schema = study.schema()
    parsed = formulas.parse(formula, schema, bounds)
    tables = list(study.tables)
    if privacy is not None:
        clipping = Clipping(privacy, study.columns, study.missing)
        tables = [clipping.table(table, parsed.numeric) for table in tables]
        schema = study.schema(tables)
        parsed = formulas.parse(formula, schema, bounds)
    response = parsed.response
    several = classify and isinstance(response, Category) and len(response.levels) > 2
    if several and isinstance(response, Category):  # a design has one number for a response
        parsed = replace(parsed, response=response.levels[0])
    design = Design.of(parsed, schema, None, None)
    columns = [i for i, name in enumerate(design.names) if name != INTERCEPT]
    if not columns:
        raise ParameterError(f"formula {formula!r}: there is no column to train on")
    classes = _classes_of(response, schema) if classify else None
    sites = {}
    for table in tables:
        rows = design.rows(table, schema, study.missing)
        features = design.matrix(rows)[:, columns]
        units = _units_of(table, rows, privacy)
        if several and isinstance(response, Category):
            labels = rows.codes(response.column).astype(np.intp)
        else:
            given = rows.floats(design.response)
            if classify:
                name = design.response_name
                needs = f"a classifier reads numbers; correct it, write C({name}) for classes"
                check_events(rows, name, given, needs)
            labels = given.astype(np.intp) if classify else np.zeros(0, np.intp)
        targets = one_hot(labels, len(classes)) if classes is not None else given[:, None]
        sites[table.site] = Site(features, targets, labels, units)
    if privacy is not None and schema.from_data:
        raise ParameterError(
            "with privacy nothing is taken from the data; declare, with columns or a codebook: "
            + ", ".join(schema.from_data)
        )
    names = tuple(design.names[i] for i in columns)
    ends = [_ends(design, i, privacy) for i in columns]
    low, high = (np.array(end, np.float64) for end in zip(*ends, strict=True))
    levels = {name: schema.levels(name) for name in design.categorical}
    return TrainingData(
        sites, names, low, high, INTERCEPT in design.names, classes, dict(schema.from_data),
        formula, levels, True, study.sites,
    )  # fmt: skip


def _classes_of(response: Any, schema: Schema) -> tuple[Label, ...]:
    if not isinstance(response, Category):
        return (0, 1)
    levels = schema.levels(response.column)
    if len(levels) != 2:
        return levels
    return levels[response.reference], levels[1 - response.reference]


def _ends(design: Design, place: int, privacy: Privacy | None) -> tuple[float, float]:
    column, name = design.columns[place], design.names[place]
    limits = privacy.limits(name) if privacy is not None else None
    if limits is not None:
        return float(limits[0]), float(limits[1])
    return float(column.low), float(column.high)


def _units_of(table: Table, rows: Read, privacy: Privacy | None) -> Ints | None:
    if privacy is None or privacy.identifier is None:
        return None
    keys = table.keys([privacy.identifier])
    kept = [key for key, used in zip(keys, rows.kept.tolist(), strict=True) if used]
    return numbered(kept)


def numbered(keys: Sequence[Any]) -> Ints:
    """Return each key's number, counted from 0 as they occur."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], np.intp)
