"""Two runs side by side: the changes of times, and whether each is more than noise.

The intervals cover the spread of samples within the two runs. They do not cover differences between
two starts of a process, such as the place of its memory or other work on the machine. Those hit
plaintext too, which takes turns with the secure side. So the change of their ratio stands beside
the change of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from securecomp.errors import ParameterError
from securecomp.overhead.intervals import ratio_of_medians
from securecomp.overhead.measurement import Row
from securecomp.overhead.views import sizes

_MACHINE = ("cpu", "cores", "memory_bytes")
_SOFTWARE = ("os", "python", "blas")


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case in two runs.

    Attributes:
        case: Its name.
        title: One line.
        secure: New seconds over old, with its interval.
        plain: The same of plaintext.
        ratio: New ratio of both over the old one.
        sent: New bytes over old; None if neither counted them.
        memory: New peak memory over old; None if one does not know.
    """

    case: str
    title: str
    secure: dict[str, Any]
    plain: dict[str, Any]
    ratio: dict[str, Any]
    sent: float | None
    memory: float | None

    @property
    def mark(self) -> str:
        """The verdict of the interval: "slower", "faster", "" if it contains 1, "?" without one."""
        return _mark(self.secure)

    @property
    def doubtful(self) -> bool:
        """Whether the ratio to plaintext changed otherwise, perhaps by the machine."""
        return self.mark in ("slower", "faster") and _mark(self.ratio) != self.mark

    def facts(self) -> dict[str, Any]:
        """Return the change as plain values."""
        return {
            "case": self.case,
            "title": self.title,
            "secure": self.secure,
            "plain": self.plain,
            "ratio": self.ratio,
            "bytes": self.sent,
            "memory": self.memory,
            "mark": self.mark,
            "doubtful": self.doubtful,
        }


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of two runs.

    Attributes:
        changes: One for each case that both runs measured in the same sizes.
        remarks: Other changes, and cases that cannot be compared, with the reason.
    """

    changes: tuple[CaseChange, ...]
    remarks: tuple[str, ...]


def _mark(ratio: dict[str, Any]) -> str:
    if ratio["low"] is None:
        return "?"
    if ratio["low"] > 1:
        return "slower"
    return "faster" if ratio["high"] < 1 else ""


def machines(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the differences of the machines of two runs, across which times say nothing."""
    return _differences(old, new, _MACHINE)


def check_machines(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuse to compare runs of different machines.

    Raises:
        ParameterError: The machines differ; the message names the difference.
    """
    different = machines(old, new)
    if different:
        raise ParameterError(
            f"the old run was made on another machine ({'; '.join(different)}), and ratios of "
            "times say nothing; measure again here, or compare with --anyway"
        )


def software(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the differences of the software, which may explain a change."""
    found = _differences(old, new, _SOFTWARE)
    for name in sorted(old["versions"].keys() | new["versions"].keys()):
        before, now = (run["versions"].get(name, "absent") for run in (old, new))
        if before != now:
            found.append(f"{name}: {before}, now {now}")
    return found


def _differences(old: dict[str, Any], new: dict[str, Any], names: Sequence[str]) -> list[str]:
    pairs = ((name, old["machine"].get(name), new["machine"].get(name)) for name in names)
    return [f"{name}: {before}, now {now}" for name, before, now in pairs if before != now]


def compare(old: dict[str, Any], new: dict[str, Any]) -> RunComparison:
    """Compare the cases that both runs have."""
    before = {row["case"]: row for row in old["rows"]}
    changes = []
    remarks = [f"also changed: {difference}" for difference in software(old, new)]
    if old["quick"] != new["quick"]:
        remarks.append("one of the runs is quick, and has few samples")
    for row in new["rows"]:
        other = before.pop(row["case"], None)
        if other is None:
            remarks.append(f"{row['case']}: not in the old run")
        elif "failure" in row or "failure" in other:
            run, found = ("new", row) if "failure" in row else ("old", other)
            remarks.append(f"{row['case']}: failed in the {run} run: {found['failure']}")
        elif row["sizes"] != other["sizes"]:
            remarks.append(
                f"{row['case']}: other sizes: {sizes(other)} in the old run, now {sizes(row)}"
            )
        else:
            changes.append(_change(other, row))
    remarks += [f"{name}: not in the new run" for name in before]
    return RunComparison(tuple(changes), tuple(remarks))


def _change(old: Row, new: Row) -> CaseChange:
    changes = {
        side: _ratio(_samples(new)[side], _samples(old)[side], side, new, old)
        for side in ("secure", "plain", "ratio")
    }
    return CaseChange(
        new["case"],
        new["title"],
        **changes,
        sent=_quotient(new.get("bytes_total"), old.get("bytes_total")),
        memory=_quotient(new.get("peak_memory"), old.get("peak_memory")),
    )


def _samples(row: Row) -> dict[str, list[float]]:
    """Return a row's samples, which are empty for a run that kept none."""
    kept = row.get("samples", {"plain": [], "setup": [], "online": []})
    secure = [a + b for a, b in zip(kept["setup"], kept["online"], strict=True)]
    pairs = zip(secure, kept["plain"], strict=True)
    return {
        "secure": secure,
        "plain": kept["plain"],
        "ratio": [a / b for a, b in pairs if b > 0],
    }


def _ratio(now: list[float], before: list[float], side: str, new: Row, old: Row) -> dict[str, Any]:
    if now and before and min(*now, *before) > 0:
        return ratio_of_medians(now, before)
    return {"median": new[side]["median"] / old[side]["median"], "low": None, "high": None}


def _quotient(now: int | None, before: int | None) -> float | None:
    return now / before if now and before else None
