"""Engines that compute on the sites' shares, where sums are not enough.

Sites share inputs as clients; servers compute, and open nothing but what the analysis says.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import Computation
from securecomp.protocol import wire
from securecomp.protocol.carrier import HOSPITAL_LEARNS, check_apart
from securecomp.statistics.inquiry import Inquiry

Engine = Literal["replicated", "dealer", "mac"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

_SHAPES = "shapes and bounds only"
_LEARNED: dict[Engine, dict[str, str]] = {
    "replicated": {
        "server": f"{_SHAPES}; one alone: nothing else; two of the 3 together: every site's rows"
    },
    "dealer": {
        "server": f"{_SHAPES}; both together: every site's rows",
        "dealer": f"{_SHAPES}; together with one server: every site's rows",
    },
    "mac": {
        "server": f"{_SHAPES}, also if it deviates, which is noticed; both together: every site's "
        "rows",
        "dealer": f"{_SHAPES}; it must be honest; together with one server: every site's rows",
    },
}


def check_engine(engine: Engine) -> None:
    """Refuse what is no engine."""
    if engine not in ENGINES:
        raise ParameterError(f"engine is one of {', '.join(ENGINES)}, not {engine!r}")


def padded_rows(ask: Inquiry, width: int) -> int:
    """Return how many rows every site shares, of so many numbers each.

    Raises:
        RangeError: All sites' together are more than a message holds.
    """
    most = ask.schema.most_rows()
    if most * width * len(ask.sites) > wire.MAX_ELEMENTS:
        raise RangeError(
            f"{len(ask.sites)} sites with {most:,} rows of {width} numbers are more than the "
            f"{wire.MAX_ELEMENTS:,} that a message holds; declare fewer rows, or ask by counts"
        )
    return most


def computation(ask: Inquiry, engine: Engine, owners: Sequence[str] = ()) -> Computation:
    """Begin to compute on shares: servers 1, 2 (and 3), for the sites and other owners of data.

    Args:
        ask: The inquiry; what parties learn is noted in it.
        engine: "replicated" for three servers of which no two collude, "dealer" for two and a
            dealer of random numbers, "mac" for the same where a server may deviate.
        owners: Who shares inputs beside the sites.

    Raises:
        ParameterError: No such engine, or a site or owner has a server's name.
    """
    check_engine(engine)
    servers = tuple(f"server {i + 1}" for i in range(3 if engine == "replicated" else 2))
    clients = (*ask.sites, *owners)
    roles = servers if engine == "replicated" else (*servers, "dealer")
    check_apart(ask.sites, roles)
    for owner in owners:
        if owner in roles:
            raise ParameterError(f"{owner!r} is the name of one who computes; choose another")
    learned = {"hospital": HOSPITAL_LEARNS, **_LEARNED[engine], **dict.fromkeys(owners, _SHAPES)}
    ask.computes(f"computing on shares ({engine})", len(servers), learned)
    facts: dict[str, Any] = {"dealer": False} if engine == "replicated" else {}
    if engine == "mac":
        facts["integrity"] = "mac"
    return Computation(servers, ask.carrier, clients=clients, **facts)
