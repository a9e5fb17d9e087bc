"""Sites that bring matrices and labels instead of data frames."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.federated.losses import Floats, one_hot
from securecomp.federated.training_data import Ints, Site, TrainingData, numbered
from securecomp.models import Label, check_classes
from securecomp.privacy.policy import Privacy
from securecomp.protocol import wire
from securecomp.statistics.cell_values import is_missing

Arrays = Mapping[str, Sequence[Any]]
"""Site name to (X, y), or (X, y, whose each row is)."""
Ranges = float | Sequence[float | tuple[float, float]] | Mapping[str, Any] | None
"""Largest absolute values, or lowest and highest: one for all columns, one each, or by name."""
_Read = dict[str, tuple[Floats, list[Any], list[Any] | None]]


def of_arrays(
    data: Arrays,
    privacy: Privacy | None,
    bounds: Ranges,
    classes: Sequence[Label] | None,
    intercept: bool,
    *,
    classify: bool,
) -> TrainingData:
    """Read each site's matrix and labels.

    Args:
        data: Site name to (X, y), or (X, y, whose each row is) where patients are units.
        privacy: With it nothing is taken from the data.
        bounds: Largest absolute value of the columns, or lowest and highest: one for all, one each,
            or by name.
        classes: The labels, in order; by default those that occur at some site.
        intercept: Whether the model has one.
        classify: Whether y is classes.

    Raises:
        ParameterError: Sites whose columns differ; shapes that do not fit; labels of one class.
        RangeError: A number that is missing, infinite or beyond its bound, or a label that was not
            declared; site and row are named.
        ThresholdError: Fewer than two sites.
    """
    if not isinstance(data, Mapping):
        raise ParameterError("fit takes a Study and a formula, or a mapping from site to (X, y)")
    if len(data) < 2:
        raise ThresholdError(2, len(data), "a training over sites needs others to hide among")
    if privacy is not None and privacy.bounds:
        raise ParameterError(
            "bounds of privacy are for a Study's columns; give bounds to the model, and values "
            "within them"
        )
    read = {wire.check_name(str(site)): _arrays_of(str(site), own) for site, own in data.items()}
    if len(read) < len(data):
        raise ParameterError("two sites have the same name, as 1 and '1' do; rename one")
    names, named = _same_columns(data)
    from_data: dict[str, str] = {}
    low, high = _ends(read, bounds, names, privacy, from_data)
    for site, (features, _, _) in read.items():
        _refuse(site, ~np.isfinite(features), names, "is missing or infinite; fill it in")
        beyond = (features < low) | (features > high)
        _refuse(site, beyond, names, "is beyond its bound; correct it")
    if not classify and classes is not None:
        raise ParameterError("classes are for a classifier")
    agreed = _classes(read, classes, privacy, from_data) if classify else None
    sites = {}
    for site, (features, given, keys) in read.items():
        units = None
        if privacy is not None and privacy.unit == "patient":
            if keys is None:
                raise ParameterError(
                    f"{site}: the unit is a patient; give (X, y, whose each row is)"
                )
            kept = _first(keys, privacy.records)
            features, given = features[kept], [given[i] for i in kept]
            units = numbered([keys[i] for i in kept])
        if agreed is None:
            sites[site] = Site(features, _numbers(site, given), np.zeros(0, np.intp), units)
        else:
            labels = _places(site, given, agreed)
            sites[site] = Site(features, one_hot(labels, len(agreed)), labels, units)
    return TrainingData(
        sites, names, low, high, intercept, agreed, from_data, None, {}, named, tuple(sites),
    )  # fmt: skip


def _arrays_of(site: str, own: Any) -> tuple[Floats, list[Any], list[Any] | None]:
    if not isinstance(own, Sequence) or len(own) not in (2, 3):
        raise ParameterError(f"{site}: give (X, y), or (X, y, whose each row is)")
    features = matrix(own[0], site)
    given = np.asarray(own[1])
    if given.shape != (len(features),):
        raise ParameterError(f"{site}: X has {len(features)} rows and y the shape {given.shape}")
    labels = [label.item() if isinstance(label, np.generic) else label for label in given.tolist()]
    if len(own) == 2:
        return features, labels, None
    keys = np.asarray(own[2]).tolist()
    if not isinstance(keys, list) or len(keys) != len(features):
        raise ParameterError(f"{site}: X has {len(features)} rows, and each has one patient")
    for row, key in enumerate(keys):
        if is_missing(key):  # each would count as a patient of its own
            raise RangeError(f"{site}: of row {row + 1} it is missing whose it is; fill it in")
    return features, labels, keys


def matrix(features: Any, where: str) -> Floats:
    """Return features as numbers, shape (n, d).

    Raises:
        ParameterError: They are not numbers, or no matrix.
    """
    try:
        given = np.asarray(features)
        if given.dtype.kind not in "biufO":
            raise TypeError
        found = given.astype(np.float64)
    except (ValueError, TypeError):
        raise ParameterError(f"{where}: X is not numbers; encode categories first") from None
    if found.ndim != 2 or not found.shape[1]:
        raise ParameterError(f"{where}: X has rows and columns, not the shape {found.shape}")
    return found


def names_of(features: Any) -> tuple[str, ...] | None:
    """Return the columns' names, if they have some."""
    columns = getattr(features, "columns", getattr(features, "column_names", None))
    return None if columns is None else tuple(map(str, columns))


def _same_columns(data: Arrays) -> tuple[tuple[str, ...], bool]:
    """Return the columns' names, and whether they were given."""
    found = {site: (names_of(own[0]), np.shape(own[0])[1]) for site, own in data.items()}
    first, (names, width) = next(iter(found.items()))
    for site, (other, columns) in found.items():
        if columns != width:
            raise ParameterError(
                f"{site}: X has {columns} columns, and that of {first} has {width}; all sites "
                "have the same"
            )
        if other != names:
            raise ParameterError(
                f"{site}: the columns of X are not named as those of {first}; all sites have the "
                "same, in the same order"
            )
    return names or tuple(f"x{i}" for i in range(width)), names is not None


def _ends(
    read: _Read,
    bounds: Ranges,
    names: tuple[str, ...],
    privacy: Privacy | None,
    from_data: dict[str, str],
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of each column."""
    if bounds is None:
        if privacy is not None:
            raise ParameterError(
                "with privacy nothing is taken from the data; declare bounds, the largest absolute "
                "value of each column, or its lowest and highest"
            )
        parts = [np.where(np.isfinite(features), features, 0) for features, *_ in read.values()]
        found = np.max([np.abs(part).max(axis=0, initial=0.0) for part in parts], axis=0)
        from_data["bounds of columns"] = f"the largest absolute value of each of {len(names)}"
        return -found, found
    given: list[Any]
    if isinstance(bounds, Mapping):
        if set(bounds) != set(names):
            raise ParameterError(f"bounds: one each of {', '.join(names)} is needed, by name")
        given = [bounds[name] for name in names]
    else:
        several = list(bounds) if isinstance(bounds, Iterable) else []
        given = [bounds] * len(names) if is_number(bounds) else several
    if len(given) != len(names):
        raise ParameterError(
            f"bounds are the largest absolute values of {len(names)} columns: one for all, or one "
            "each, or a lowest and a highest value each"
        )
    ends = [_pair(name, own) for name, own in zip(names, given, strict=True)]
    low, high = np.array(ends, np.float64).T
    return low, high


def _pair(name: str, given: Any) -> tuple[float, float]:
    """Return a column's lowest and highest value."""
    pair = (-given, given) if is_number(given) else tuple(given) if np.ndim(given) == 1 else ()
    fine = len(pair) == 2 and all(is_number(end) and np.isfinite(float(end)) for end in pair)
    if not fine or pair[0] > pair[1]:
        raise ParameterError(
            f"bounds of column {name!r} are its largest absolute value, or its lowest and highest, "
            f"not {given!r}"
        )
    return float(pair[0]), float(pair[1])


def _refuse(site: str, wrong: npt.NDArray[np.bool_], names: tuple[str, ...], why: str) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise RangeError(f"{site}: row {row + 1}, column {names[column]!r} {why}")


def _classes(
    read: _Read,
    classes: Sequence[Label] | None,
    privacy: Privacy | None,
    from_data: dict[str, str],
) -> tuple[Label, ...]:
    """Return the agreed labels, in order."""
    if classes is None:
        if privacy is not None:
            raise ParameterError(
                "with privacy nothing is taken from the data; declare the labels, as classes"
            )
        for site, (_, given, _) in read.items():
            for row, label in enumerate(given):
                if is_missing(label) or not isinstance(label, str | int | float):
                    raise RangeError(
                        f"{site}: row {row + 1} of y is missing, or no label: neither text nor "
                        "number; correct it"
                    )
        found = {label for _, given, _ in read.values() for label in given}
        texts = {isinstance(label, str) for label in found}
        if len(texts) > 1:
            raise ParameterError("labels are all text or all numbers; some sites have other ones")
        agreed = tuple(sorted(found))
        from_data["classes"] = "the labels that occur at some site"
    else:
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            raise ParameterError(f"classes are labels, in order, not {classes!r}")
        agreed = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    check_classes(agreed)
    if classes is not None and len(agreed) < 2:
        raise ParameterError(f"classes: a classifier needs at least two labels, not {len(agreed)}")
    if not agreed:
        raise ParameterError("no site has a row; a classifier needs rows of at least two classes")
    if len(agreed) < 2:
        raise ParameterError(
            f"all labels of all sites are {agreed[0]!r}; a classifier needs rows of at least two "
            "classes"
        )
    return agreed


def _places(site: str, given: Sequence[Any], classes: tuple[Label, ...]) -> Ints:
    """Return each label's place."""
    known = {label: place for place, label in enumerate(classes)}
    for row, label in enumerate(given):
        if label not in known:
            raise RangeError(
                f"{site}: row {row + 1} has a label that is none of the agreed classes; declare it"
            )
    return np.array([known[label] for label in given], np.intp)


def _numbers(site: str, given: Sequence[Any]) -> Floats:
    try:
        found = np.asarray(given, np.float64)
    except (ValueError, TypeError):
        raise ParameterError(f"{site}: y is not numbers") from None
    if not np.isfinite(found).all():
        row = int(np.argmax(~np.isfinite(found)))
        raise RangeError(f"{site}: row {row + 1} of y is missing or infinite; fill it in")
    return found[:, None]


def _first(keys: Sequence[Any], records: int) -> list[int]:
    """Return the places of the first so many rows of each patient."""
    seen: dict[Any, int] = {}
    kept = []
    for place, key in enumerate(keys):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= records:
            kept.append(place)
    return kept
