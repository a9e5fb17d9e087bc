"""How much one party may ask of a relay: token buckets of requests and of bytes.

A party that sends more is told when to try again, and slows nobody else down. The limits are far
above what a study of 200 sites needs: a site makes some ten requests for a sum. Strangers come to
no bucket, since the signature is checked first.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

REQUESTS = 50.0
"""Requests a second that a party may go on making, and 20 seconds of them at once."""
BYTES = float(32 << 20)
"""Bytes of bodies a second, and 20 seconds of them at once."""
BURST = 20.0
MOST_AT_ONCE = 32
"""Requests of one party that wait for messages, in all its runs together."""
MOST_BODIES = 2
"""Bodies of one party that are being read; so memory is bounded, whatever it sends."""
_NOTE = 60.0  # seconds between two lines of the log about one party

_log = logging.getLogger("securecomp.relay")


@dataclass(slots=True)
class _Bucket:
    requests: float
    bytes: float
    at: float
    waiting: int = 0
    bodies: int = 0
    refused: int = 0
    noted: float = -_NOTE


class RequestLimits:
    """The buckets of all parties that a relay serves."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def _bucket(self, party: tuple[str, str]) -> _Bucket:
        now = self._clock()
        found = self._buckets.get(party)
        if found is None:
            found = self._buckets[party] = _Bucket(REQUESTS * BURST, BYTES * BURST, now)
        past, found.at = now - found.at, now
        found.requests = min(found.requests + REQUESTS * past, REQUESTS * BURST)
        found.bytes = min(found.bytes + BYTES * past, BYTES * BURST)
        return found

    def request(self, party: tuple[str, str]) -> float:
        """Take a request of a party (study and name), whose signature was checked.

        Returns:
            Seconds after which to try again; 0 if it is served now.
        """
        found = self._bucket(party)
        if found.requests >= 1 and found.bytes > 0:
            found.requests -= 1
            return 0.0
        return self._refused(
            party, max((1 - found.requests) / REQUESTS, (1 - found.bytes) / BYTES, 0.1)
        )

    def read(self, party: tuple[str, str], size: int) -> None:
        """Note the bytes of a body."""
        self._bucket(party).bytes -= size

    def begin(self, party: tuple[str, str], *, body: bool) -> float:
        """Take a request that stays for a while: a body to be read, or one that waits.

        Returns:
            Seconds after which to try again; 0 if there are not too many. Then call `end`.
        """
        found = self._bucket(party)
        if (found.bodies if body else found.waiting) >= (MOST_BODIES if body else MOST_AT_ONCE):
            return self._refused(party, 1.0)
        if body:
            found.bodies += 1
        else:
            found.waiting += 1
        return 0.0

    def end(self, party: tuple[str, str], *, body: bool) -> None:
        """Note that such a request is over."""
        found = self._bucket(party)
        if body:
            found.bodies -= 1
        else:
            found.waiting -= 1

    def refused(self) -> int:
        """Return how many requests were put off."""
        return sum(bucket.refused for bucket in self._buckets.values())

    def _refused(self, party: tuple[str, str], seconds: float) -> float:
        found = self._buckets[party]
        found.refused += 1
        if found.at - found.noted >= _NOTE:
            found.noted = found.at
            _log.warning(
                "party %r of the study %s asks too much: %d requests put off so far",
                party[1], party[0], found.refused,
            )  # fmt: skip
        return seconds
