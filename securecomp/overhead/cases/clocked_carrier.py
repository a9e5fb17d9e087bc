"""A carrier that tells the roles' computing times apart."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from securecomp.overhead.job import DECODE, role
from securecomp.protocol.carrier import K, T
from securecomp.protocol.local_carrier import LocalCarrier


class ClockedCarrier(LocalCarrier):
    """A local carrier that also clocks each party's work, in CPU seconds of its thread.

    Args:
        names: The parties, for a protocol that numbers them.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        super().__init__()
        self._names = names
        self.start()

    def start(self) -> None:
        """Begin a new computation: count from zero."""
        super().start()
        self._calls: list[dict[str, float]] = []
        self._between: defaultdict[int, float] = defaultdict(float)
        self._mark = time.thread_time()

    def next_round(self) -> None:
        """Count a round."""
        self._outside()
        super().next_round()

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of several parties, and clock each."""
        self._outside()
        call: dict[str, float] = {}
        self._calls.append(call)

        def clocked(name: K) -> T:
            start = time.thread_time()
            result = work(name)
            party = self._names[name] if isinstance(name, int) else str(name)
            call[party] = time.thread_time() - start
            return result

        done = super().each(clocked, names, elements)
        self._mark = time.thread_time()
        return done

    def parts(self, by_round: Callable[[int], str] = lambda _: "") -> dict[str, float]:
        """Return the seconds of the median party of each role, and of a receiver's last step.

        Args:
            by_round: Takes a round and returns the role that works between the parties' steps of
                that round; "" if no role does.
        """
        *steps, last = self._calls
        parties: defaultdict[str, float] = defaultdict(float)
        for step in steps:
            for name, seconds in step.items():
                parties[name] += seconds
        found: dict[str, list[float]] = {}
        for name, seconds in parties.items():
            found.setdefault(role(name), []).append(seconds)
        result = {name: median(seconds) for name, seconds in found.items()}
        for rounds, seconds in self._between.items():
            if by_round(rounds):
                result[by_round(rounds)] = result.get(by_round(rounds), 0.0) + seconds
        return {**result, DECODE: median(last.values())}

    def _outside(self) -> None:
        now = time.thread_time()
        self._between[self.transcript.rounds] += now - self._mark
        self._mark = now
