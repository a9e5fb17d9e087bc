"""`Study.join` and `Study.connect`: a study over a network, for a site and for an analyst."""

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
    connection = _connection(relay, state, run, proxy, authority, ledger)
    programs = _net("programs")
    with programs.joined(Path(study), site, data, Path(identity), connection) as found:
        yield found


@contextlib.contextmanager
def connect(
    study: str | os.PathLike[str],
    *,
    analyst: str,
    identity: str | os.PathLike[str],
    relay: str,
    run: str = "1",
    state: str | os.PathLike[str] | None = None,
    proxy: str | None = None,
    authority: str | None = None,
) -> Iterator[Any]:
    """Ask a consortium as an analyst without rows: the methods of a study that need sums alone.

    Each question goes to every site's agent (`securecomp join --serve`). The agents answer by the
    study's rules, or ask a person. The analyst learns the totals that are opened to it, and which
    site refuses by which rule.

    Args:
        study: The study file, signed by all sites.
        analyst: This analyst's name in it.
        identity: The file of its key.
        relay: URL of the relay.
        run: Name of the run.
        state: File of the state; by default beside the study file.
        proxy: URL of an HTTP proxy.
        authority: File of a private certificate authority.

    Raises:
        ParameterError: A question does not fit the study; nothing was sent.
        RemoteProtocolError: A site refuses a question, or caused a failure; it is named.
        BackendUnavailableError: The extra `net` is not installed.
    """
    connection = _connection(relay, state, run, proxy, authority)
    asking = _net("questions.asking")
    with asking.connected(Path(study), analyst, Path(identity), connection) as found:
        yield found


def _net(module: str) -> Any:
    # By name: the network stands on statistics, and not the other way round.
    return importlib.import_module(f"securecomp.net.{module}")


def _connection(
    relay: str,
    state: str | os.PathLike[str] | None,
    run: str,
    proxy: str | None,
    authority: str | None,
    ledger: str | os.PathLike[str] | None = None,
) -> Any:
    where, budget = (None if path is None else Path(path) for path in (state, ledger))
    return _net("programs").Connection(relay, where, run, proxy, authority, budget)
