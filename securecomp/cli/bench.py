"""`securecomp bench`: the cost of privacy on this machine."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import console, plain_errors

if TYPE_CHECKING:
    from securecomp.overhead.job import Case
    from securecomp.overhead.runner import Suite

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("case", nargs=-1)
@click.option("--quick", is_flag=True, help="Small sizes, few rounds: within a minute.")
@click.option("--elements", type=int, metavar="N", help="Values of each hospital, or rows.")
@click.option("--parties", type=int, metavar="N", help="Hospitals of a sum.  [default: 3]")
@click.option("--features", type=int, metavar="N", help="Features of a model.  [default: 30]")
@click.option("--peers", "with_peers", is_flag=True, help="Measure other software too.")
@click.option("--json", "output", type=_PATH, metavar="FILE", help="Write the run to FILE.")
@click.option("--html", "page", type=_PATH, metavar="FILE", help="Write the report to FILE.")
@click.option("--compare", type=_PATH, metavar="OLD", help="Compare with the run in OLD (JSON).")
@click.option("--anyway", is_flag=True, help="Compare even runs of different machines.")
@click.option("--from", "saved", type=_PATH, metavar="FILE", help="Show the run in FILE again.")
@click.option("--list", "only_list", is_flag=True, help="List the cases.")
def bench(
    case: tuple[str, ...],
    quick: bool,
    output: Path | None,
    page: Path | None,
    compare: Path | None,
    anyway: bool,
    saved: Path | None,
    only_list: bool,
    **sizes: int | None,
) -> None:
    """Measure the cost of privacy against plaintext, on this machine.

    CASE is a name that --list shows, or its first part, such as "sum". Without one, all cases run,
    in some minutes. Each case has a process of its own; with --quick, each scheme. A wrong result
    is an error and gets no time.

    \b
    securecomp bench --quick
    securecomp bench sum --elements 50000 --parties 10 --json today.json --html today.html
    securecomp bench sum --elements 50000 --parties 10 --compare today.json
    """  # noqa: D301 - the escape is click's mark for "do not fold"
    with plain_errors():
        from securecomp.errors import ParameterError
        from securecomp.overhead import runner, runs
        from securecomp.protocol.storage import check_output

        suite, cases = _chosen(case, quick, sizes)
        if only_list:
            for listed in cases:
                click.echo(f"{listed.name:34} {listed.title}")
            return
        if saved and (case or suite.sizes):
            raise ParameterError("--from shows a run as it was; leave out cases and sizes")
        if page:
            check_page(page)
        for file in (output, page):
            if file:
                check_output(file, [known for known in (compare, saved) if known])
        report = runs.read(saved) if saved else None
        old = runs.read(compare) if compare else None
        if old:  # before minutes are spent
            _same_machine(old, report or runner.report([]), anyway)
        report = report or _measured(suite, cases, quick)
        if output:
            runs.write(report, output)
        _print(report, old)
        if page:
            from securecomp.overhead.page import page as drawn

            write_page(page, drawn(report))
        for file in (output, page):
            if file:
                click.echo(f"{file}: written")
        if runner.failures(report):
            sys.exit(1)


def _chosen(
    names: tuple[str, ...], quick: bool, sizes: dict[str, int | None]
) -> tuple["Suite", list["Case"]]:
    """Return the cases of these names, and the suite in which a process finds them."""
    from securecomp.overhead import catalogue
    from securecomp.overhead.job import chosen
    from securecomp.overhead.runner import Suite

    # A flag that is not set is False and no size. A size of 0 is refused by the catalogue.
    given = {
        name: int(size) for name, size in sizes.items() if size is not None and size is not False
    }
    suite = Suite(catalogue.MODULE, given | ({"quick": 1} if quick else {}))
    return suite, chosen(catalogue.listed(**suite.sizes), names)


def _measured(suite: "Suite", cases: list["Case"], quick: bool) -> dict[str, Any]:
    """Measure the cases, with progress on the screen."""
    from securecomp.overhead import catalogue, runner

    with _progress(len(cases)) as told:
        report = runner.run(suite, cases, quick=quick, told=told)
    if suite.sizes.get("with_peers"):
        report["skipped"].append(catalogue.OTHER_PEERS)
    return report


def _print(report: dict[str, Any], old: dict[str, Any] | None) -> None:
    """Print a run, and its comparison with an old one."""
    from securecomp.overhead import comparison, measurement_tables

    screen = console()
    screen.width = max(screen.width, 100)  # a terminal folds lines better than a table cells
    for part in measurement_tables.parts(report):
        screen.print(part)
    if old:
        for part in measurement_tables.compared(comparison.compare(old, report)):
            screen.print(part)


def _same_machine(old: dict[str, Any], new: dict[str, Any], anyway: bool) -> None:
    from securecomp.overhead import comparison

    if not anyway:
        comparison.check_machines(old, new)
    for difference in comparison.machines(old, new):
        click.echo(f"warning: another machine: {difference}; times say nothing", err=True)


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[["Case", Any], None]]:
    """Show the running case: as a bar on a terminal, as a line for each case in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    if not sys.stderr.isatty():
        yield lambda case, row: click.echo(case.name, err=True) if row is None else None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total)

        def told(case: "Case", row: Any) -> None:
            bar.update(task, description=case.title, advance=0 if row is None else 1)

        yield told
