"""The command line: run cases, list them, or print the table of a run."""

import argparse
import sys
from pathlib import Path

from benchmarks import prices, runner, summary, targets
from benchmarks.peers.software import PEERS
from benchmarks.table import markdown
from securecomp.errors import ParameterError
from securecomp.overhead import runs
from securecomp.overhead.job import chosen
from securecomp.overhead.runner import failures

_EPILOG = """\
`python -m benchmarks table FILE` prints the Markdown table of a run;
`python -m benchmarks readme` writes tables, plots and the README's part from results/*.json;
`python -m benchmarks prices` counts rounds and bytes of each operation on shares;
`python -m benchmarks promises` computes what answers cost together, and the error of a noised mean;
`python -m benchmarks strength` attacks models that were trained with more and more noise;
`python -m benchmarks consortium` runs a regression of 54 hospitals over a relay on this machine;
`python -m benchmarks plot FILE SERIES SVG` draws how a series grows (clients, rows, compared).
A peer runs in an environment of its own, outside this repository:
"""


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if a case gave a wrong result or broke, else 0."""
    if arguments[:1] == ["table"]:
        return _table(arguments[1:])
    if arguments[:1] == ["readme"]:
        return _readme(arguments[1:])
    if arguments[:1] == ["prices"]:
        prices.PAGE.write_text(prices.page())
        return 0
    if arguments[:1] == ["promises"]:
        return _promises()
    if arguments[:1] == ["strength"]:
        from benchmarks import strength

        strength.write()
        return 0
    if arguments[:1] == ["consortium"]:
        from benchmarks import consortium

        return consortium.main(arguments[1:])
    if arguments[:1] == ["plot"]:
        return _plot(arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        found = chosen(targets.listed(), options.case)
    except ParameterError as error:
        parser.error(str(error))
    if options.list:
        print("\n".join(f"{case.name:24} {case.title}" for case in found))
        return 0
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    report = runner.run(
        found,
        quick=options.quick,
        with_peers=options.peers or bool(options.peer_python),
        interpreters=dict(options.peer_python),
    )
    if options.json:
        runs.write(report, options.json)
        options.json.with_suffix(".md").write_text(markdown(report))
    else:
        print(markdown(report))
    return 1 if failures(report) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Secure against plaintext, side by side. Run it from the repository's root.",
        epilog=_EPILOG + "\n".join(f"  {peer.name}: {peer.advice}" for peer in PEERS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "case", nargs="*", help='a name, or its first part, such as "sum"; all by default'
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the run to FILE and its table beside it"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, few rounds, no judgement"
    )
    parser.add_argument("--peers", action="store_true", help="run the peers too")
    parser.add_argument(
        "--peer-python",
        action="append",
        default=[],
        type=_interpreter,
        metavar="NAME=PATH",
        help="the Python of a peer's environment; or set "
        + ", ".join(peer.variable for peer in PEERS),
    )
    parser.add_argument("--list", action="store_true", help="list the cases")
    return parser


def _interpreter(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not path or name not in {peer.name for peer in PEERS}:
        raise argparse.ArgumentTypeError(f"expected NAME=PATH with a known peer, not {text!r}")
    return name, path


def _table(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks table")
    parser.add_argument("file", type=Path, help="the JSON of a run")
    print(markdown(runs.read(parser.parse_args(arguments).file)), end="")
    return 0


def _readme(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks readme")
    parser.parse_args(arguments)
    summary.write()
    return 0


def _promises() -> int:
    from benchmarks import promises  # matplotlib and dp-accounting are needed here alone

    promises.PAGE.write_text(promises.page())
    promises.draw()
    return 0


def _plot(arguments: list[str]) -> int:
    from benchmarks.plot import draw  # matplotlib is needed here alone

    parser = argparse.ArgumentParser(prog="python -m benchmarks plot")
    parser.add_argument("file", type=Path, help="the JSON of a run")
    parser.add_argument("series", choices=sorted({case.series for case in targets.listed()} - {""}))
    parser.add_argument("picture", type=Path, help="where the picture goes, such as growth.svg")
    options = parser.parse_args(arguments)
    draw(runs.read(options.file), options.series, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
