"""`securecomp budget` and `securecomp dial`: privacy budgets, and the meaning of an epsilon."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from securecomp.cli import privacy_options
from securecomp.cli.written_pages import check_page, write_page
from securecomp.show.console import console, plain_errors, plain_warnings

_ledger = click.argument("ledger", type=click.Path(path_type=Path, dir_okay=False))
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_dataset = click.option(
    "--dataset", metavar="NAME", help="Data set that the ledger must belong to."
)


@click.group()
def budget() -> None:
    """Keep a data set's privacy budget.

    Every private answer about a data set takes from its LEDGER, a file, before it is computed. A
    question that no longer fits the budget is not answered.
    """


@budget.command()
@_ledger
@click.option("--dataset", required=True, metavar="NAME", help="Data set of the budget.")
@click.option("--epsilon", required=True, metavar="E", help="Epsilon of all answers together.")
@click.option(
    "--delta", default="0", show_default=True, metavar="D", help="Delta of all answers together."
)
@privacy_options.relation
@privacy_options.unit("Unit by which neighbours differ.", "site")
@click.option(
    "--records",
    default=1,
    show_default=True,
    metavar="M",
    type=click.IntRange(min=1),
    help="Most records of one patient.",
)
@click.option(
    "--persons",
    metavar="N",
    type=click.IntRange(min=1),
    help="Public number of persons, roughly; warns of a delta that is too large for it.",
)
def create(
    ledger: Path,
    dataset: str,
    epsilon: str,
    delta: str,
    relation: str,
    unit: str,
    records: int,
    persons: int | None,
) -> None:
    """Make a LEDGER, once for each data set. It is never overwritten."""
    with plain_errors(), plain_warnings():
        from securecomp.privacy.guarantee import check_delta
        from securecomp.privacy.ledger import Ledger
        from securecomp.privacy.sensitivity import Neighbours

        neighbours = Neighbours(relation, unit, records)  # type: ignore[arg-type]
        if persons is not None:
            check_delta(delta, persons)
        state = Ledger.create(ledger, dataset, epsilon, delta, neighbours).state()
    click.echo(f"{ledger}: {state.budget} for {dataset!r}, {state.neighbours}")


@budget.command()
@_ledger
@_dataset
@_json
def show(ledger: Path, dataset: str | None, as_json: bool) -> None:
    """Check a LEDGER's history and show the rest of its budget."""
    with plain_errors():
        from securecomp.privacy.ledger import Ledger, report

        state = Ledger(ledger, dataset).state()
        facts = report(state)
    if as_json:
        click.echo(json.dumps(facts))
        return
    screen = console()
    screen.print(f"{state.dataset}: {state.neighbours}", markup=False)
    names = ("", "budget", "spent", "left")
    rows = [
        (name, *(str(facts[key]) for key in (name, f"{name}_spent", f"{name}_left")))
        for name in ("epsilon", "delta")
    ]
    screen.print(_table(names, rows))
    if state.open:
        some = "run was" if len(state.open) == 1 else "runs were"
        screen.print(f"{len(state.open)} {some} reserved and not settled; all of it counts")
    screen.print(f"head {state.head}")


@budget.command()
@_ledger
@_dataset
@_json
def history(ledger: Path, dataset: str | None, as_json: bool) -> None:
    """List the questions about a LEDGER's data set, and their costs."""
    with plain_errors():
        from securecomp.privacy.ledger import Ledger

        state = Ledger(ledger, dataset).state()
        entries = state.entries
    names = ("number", "kind", "of", "epsilon", "delta", "what", "time")
    rows = []
    for entry in entries:
        number, kind, of, epsilon, delta, what, time, _ = entry.row()
        what = f"the budget of {state.dataset}" if kind == "create" else what
        rows.append((str(number), kind, str(of), epsilon, delta, what, time[:19]))
    if as_json:
        listed = [dict(zip((*names, "link"), e.row(), strict=True)) for e in entries]
        click.echo(json.dumps({"entries": listed}))
        return
    console().print(_table(names, rows))


@budget.command()
@_ledger
@_dataset
@click.option(
    "--head", metavar="LINK", help="Link that was noted before; it must be in the ledger."
)
@_json
def verify(ledger: Path, dataset: str | None, head: str | None, as_json: bool) -> None:
    """Check that a LEDGER is unchanged; exit with 1 if it is not.

    Only a link that was noted elsewhere reveals that an older copy was put back.
    """
    with plain_errors():
        from securecomp.privacy.ledger import Ledger

        state = Ledger(ledger, dataset).verify(head)
    if as_json:
        click.echo(json.dumps({"entries": len(state.entries), "head": state.head}))
    else:
        click.echo(f"{ledger}: {len(state.entries)} entries, as they were written; {state.head}")


@click.command()
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with sliders.",
)
@click.option(
    "--epsilon", default="1", show_default=True, metavar="E", help="Epsilon of an answer."
)
@click.option(
    "--answers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Number of answers.",
)
@_json
def dial(html: Path | None, epsilon: str, answers: int, as_json: bool) -> None:
    """Explain an epsilon: a count of 40, and a guess whether you are in it."""
    with plain_errors():
        from securecomp.errors import ParameterError
        from securecomp.privacy import epsilon_explorer as turned
        from securecomp.privacy.privacy_amounts import epsilon_of

        if html is not None:
            check_page(html)
        exact = epsilon_of(epsilon)
        if not 10**-6 <= exact <= 1000:
            raise ParameterError(f"the dial turns from 0.000001 to 1000, not to {epsilon}")
        setting = turned.SliderPosition(float(exact), answers)
        if html is not None:
            write_page(html, turned.page(epsilon, answers))
        if as_json:
            names = ("epsilon", "answers", "total", "accuracy", "cap", "error")
            click.echo(json.dumps({name: getattr(setting, name) for name in names}))
            return
        header = ("epsilon", "answers", "the guess is right", "at most", "typical error")
        console().print(_table(header, [turned.row(setting), *turned.table()]))
    if html is not None:
        click.echo(f"{html}: open it in a browser")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in header:
        table.add_column(name, justify="left" if name in ("", "kind", "what") else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
