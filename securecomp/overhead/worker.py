"""Worker: measure cases in this process and print each row as a line of JSON.

A separate process keeps the memory and warm caches of one case from the next.
"""

import argparse
import json
from collections.abc import Sequence
from importlib import import_module

from securecomp.overhead.job import Case
from securecomp.overhead.measurement import measure_case


def cases(module: str, sizes: dict[str, int]) -> tuple[Case, ...]:
    """Return the cases that a module's `listed` makes for some sizes."""
    found: tuple[Case, ...] = import_module(module).listed(**sizes)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the cases that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m securecomp.overhead.worker")
    parser.add_argument("module", help="a module whose function `listed` returns cases")
    parser.add_argument("case", nargs="+")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", type=json.loads, default={}, help="arguments of `listed`")
    options = parser.parse_args(arguments)
    known = {case.name: case for case in cases(options.module, options.sizes)}
    for name in options.case:
        print(json.dumps(measure_case(known[name], options.quick)), flush=True)


if __name__ == "__main__":
    main()
