"""Sites for the tests of statistics: frames of three libraries, exact references, a spy."""

import statistics
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa

from securecomp import Study

NAMES = ("north", "south", "east", "west", "centre")


class Compared(Study):
    """A study whose results also say what the pooled rows give."""

    def run(self, statistics):
        return [ComparedResult(self, result) for result in super().run(statistics)]


class ComparedResult:
    """A result, and its comparison with the pooled rows when somebody asks for it."""

    def __init__(self, study, result):
        self._study, self.result = study, result

    def __getattr__(self, name):
        return getattr(self.result, name)

    def __str__(self):
        return str(self.result)

    @property
    def comparison(self):
        (found,) = self._study.compare([self.result])
        return found

    @property
    def equal(self):
        return self.comparison.equal

    @property
    def plaintext(self):
        return self.comparison.plaintext


def study(*frames, **options):
    """A study of frames, at sites called north, south, east, ..., that shows small cells too."""
    options = {"minimum_count": 0, **options}
    return Compared(dict(zip(NAMES, frames, strict=False)), **options)


def cut(rows, parts=3):
    """A frame's rows dealt to some sites."""
    return [rows.iloc[i::parts] for i in range(parts)]


def by_site(rows, column):
    """A study of the sites that a column names."""
    return Compared({str(name): part for name, part in rows.groupby(column)})


def frame(library, **columns):
    """A frame of a library from plain lists; None is a missing cell."""
    if library == "pandas":
        # convert_dtypes gives nullable integers, so that a missing cell makes no float of them.
        return pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()}).astype(
            {k: _pandas_type(v) for k, v in columns.items()}
        )
    if library == "polars":
        return pl.DataFrame(columns, strict=True)
    return pa.table({k: pa.array(v) for k, v in columns.items()})


def _pandas_type(cells):
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int}:
        return "Int64"
    if kinds == {float}:
        return "Float64"
    return "string" if kinds == {str} else "object"


def exact(value):
    """A number as people mean it: a float is the shortest decimal that gives it."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def mean(values):
    """The exact mean, rounded once."""
    return float(statistics.mean([exact(v) for v in values])) if len(values) else None


def variance(values):
    """The exact sample variance, rounded once."""
    return float(statistics.variance([exact(v) for v in values])) if len(values) > 1 else None


def total(values):
    """The exact sum: an int if all values are integers, else rounded once to a float."""
    found = sum(map(exact, values), Fraction(0))
    return int(found) if all(exact(v).denominator == 1 for v in values) else float(found)


def decimals(*texts):
    """Decimals from their texts; None stays a missing cell."""
    return [None if text is None else Decimal(text) for text in texts]


class Spy:
    """Sees every message that any role makes, and every one that is carried."""

    def __init__(self, monkeypatch):
        from securecomp.protocol.local_carrier import LocalCarrier
        from securecomp.sharing import Contributor, Server

        self.made = []
        self.carried = []
        for role, name in ((Contributor, "contribute"), (Server, "publish")):
            monkeypatch.setattr(role, name, self._making(getattr(role, name)))
        send = LocalCarrier.send

        def spied(carrier, sender, recipient, data):
            self.carried.append((sender, recipient))
            return send(carrier, sender, recipient, data)

        monkeypatch.setattr(LocalCarrier, "send", spied)

    def _making(self, make):
        def spied(role, *args):
            messages = make(role, *args)
            self.made.append(role.name)
            return messages

        return spied
