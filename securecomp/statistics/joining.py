"""`Study.join`: the same study over a network, as one site sees it."""

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from securecomp.statistics.study import Study


@contextlib.contextmanager
def join(
    study: str | os.PathLike[str],
    *,
    site: str,
    data: Any,
    identity: str | os.PathLike[str],
    relay: str,
    run: str = "1",
    state: str | os.PathLike[str] | None = None,
    proxy: str | None = None,
    authority: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> Iterator["Study"]:
    """Take part in a study over a network: the same methods, on this site's own rows.

    Every site asks the same questions in the same order. At the end of the block all totals
    are compared among the sites.

    Args:
        study: The study file, signed by all sites.
        site: This site's name in it.
        data: This site's rows, a data frame.
        identity: The file of this site's key.
        relay: URL of the relay.
        run: Name of the run.
        state: File of the state; by default beside the study file.
        proxy: URL of an HTTP proxy.
        authority: File of a private certificate authority.
        ledger: File of this site's privacy budget, if the study answers with noise; by default
            beside the state.

    Raises:
        BudgetError: The budget does not cover what is asked; nothing was sent.
        AuthenticationError: A site has not signed the study.
        RemoteProtocolError: A party caused a failure; it is named.
        BackendUnavailableError: The extra `net` is not installed.
    """
    # By name: the network stands on statistics, and not the other way round.
    programs = importlib.import_module("securecomp.net.programs")
    connection = programs.Connection(
        relay, None if state is None else Path(state), run, proxy, authority,
        None if ledger is None else Path(ledger),
    )  # fmt: skip
    with programs.joined(Path(study), site, data, Path(identity), connection) as found:
        yield found
