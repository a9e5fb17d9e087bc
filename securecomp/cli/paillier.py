"""`securecomp paillier`: encrypt tables, add them without opening, decrypt the total."""

import contextlib
from pathlib import Path

import click

from securecomp.cli import option_values as values
from securecomp.show.console import plain_errors, progress_bar, status

_PATH = click.Path(path_type=Path)
_WORTH_PROCESSES = 128  # ciphertexts; starting a process and its table takes a second


@click.group(name="paillier")
def paillier() -> None:
    """Encrypt tables under one key, add them without opening, decrypt the total.

    \b
    The key holder:   securecomp paillier keygen consortium
    Each hospital:    securecomp paillier encrypt consortium.pub stays.csv --bound 100000 -o a.enc
    The aggregator:   securecomp paillier add consortium.pub a.enc b.enc c.enc -o total.enc
    The key holder:   securecomp paillier decrypt consortium.key total.enc -o total.csv
    """  # noqa: D301 - the escape is click's mark for "do not fold"


@paillier.command()
@click.argument("name", type=_PATH)
@click.option("--bits", default=3072, show_default=True, help="Length of the modulus.")
def keygen(name: Path, bits: int) -> None:
    """Draw a key pair: NAME.key, which is secret, and NAME.pub, to hand out."""
    with plain_errors(), status("drawing primes"):
        from securecomp.errors import ParameterError
        from securecomp.paillier import PrivateKey
        from securecomp.protocol.storage import write_new

        secret, public = values.key_files(name, "key", "pub")
        if public.exists():
            raise ParameterError(f"{public}: cannot be written: File exists")
        key = PrivateKey.generate(bits)
        write_new(secret, key.to_json(), 0o600)
        write_new(public, key.public.to_json(), 0o644)
    click.echo(f"{secret}: keep it secret; its holder can decrypt everything")
    click.echo(f"{public}: hand it out; key id {key.public.id.hex()[:16]}, compare it by phone")


@paillier.command()
@click.argument("key", type=_PATH)
@click.argument("table", type=_PATH)
@click.option("--bound", required=True, metavar="X", help="Largest absolute value of any cell.")
@click.option("--decimals", default=0, show_default=True, help="Decimals of the cells.")
@click.option("--column", "columns", multiple=True, metavar="COL", help="Encrypt this column.")
@click.option(
    "--label", "labels", multiple=True, metavar="COL", help="Keep this column in the clear."
)
@click.option(
    "--additions", default=1024, show_default=True, help="Largest number of tables to add."
)
@click.option(
    "--exponent",
    type=click.Choice(["half", "full"]),
    default="half",
    show_default=True,
    help="full is slower and assumes nothing beyond Paillier's.",
)
@click.option("-o", "--output", required=True, type=_PATH, help="Encrypted table to write.")
def encrypt(
    key: Path,
    table: Path,
    bound: str,
    decimals: int,
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    additions: int,
    exponent: str,
    output: Path,
) -> None:
    """Encrypt a CSV TABLE under the public KEY.

    All columns but the labels are encrypted, unless --column names some.
    """
    from decimal import Decimal, InvalidOperation

    try:
        largest = Decimal(bound)
    except InvalidOperation:
        raise click.BadParameter("expected a number", param_hint="--bound") from None
    with plain_errors(), progress_bar("encrypting") as progress:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        from securecomp.core.fixedpoint import FixedPoint
        from securecomp.paillier import Packing, paillier_files, vectors
        from securecomp.protocol import storage

        public = paillier_files.read_public(key)
        grid = FixedPoint.decimal(largest, decimals)
        frame, integers = paillier_files.read_csv(table, columns, labels, grid)
        count = Packing.plan(public, grid.limit, additions).ciphertexts(len(integers))
        with contextlib.ExitStack() as stack:
            # Fresh processes, not forks: a fork copies locks that other threads hold.
            pool = (
                stack.enter_context(ProcessPoolExecutor(mp_context=get_context("spawn")))
                if count >= _WORTH_PROCESSES
                else None
            )
            vector = vectors.encrypt(
                public,
                integers,
                bound=grid.limit,
                additions=additions,
                exponent="full" if exponent == "full" else "half",
                executor=pool,
                progress=progress,
            )
        data = paillier_files.EncryptedTable(frame, vector, grid.scale).encode()
        storage.write_output(output, data, [key, table])
    click.echo(
        f"{output}: {frame.rows} rows, {len(frame.columns)} columns, {count} ciphertexts, "
        f"{len(data):,} bytes, under key {public.id.hex()[:16]}"
    )


@paillier.command()
@click.argument("key", type=_PATH)
@click.argument("tables", nargs=-1, required=True, type=_PATH)
@click.option("-o", "--output", required=True, type=_PATH, help="Encrypted total to write.")
def add(key: Path, tables: tuple[Path, ...], output: Path) -> None:
    """Add encrypted TABLES without opening them."""
    with plain_errors(), status("adding"):
        from securecomp.errors import ParameterError
        from securecomp.paillier import paillier_files
        from securecomp.protocol import storage

        public = paillier_files.read_public(key)
        if len({path.resolve() for path in tables}) < len(tables):
            raise ParameterError("a file is named twice; its values would count twice")
        read, seen = [], dict[bytes, Path]()
        for path in tables:
            data = storage.read_bytes(path)
            table = paillier_files.decode_table(data, public, str(path))
            twin = seen.setdefault(data, path)
            # Tables without rows are alike; others never, as encryption is randomised.
            if twin is not path and table.vector.length:
                raise ParameterError(f"{path}: is a copy of {twin}; its values would count twice")
            read.append((str(path), table))
        total = paillier_files.add_tables(read)
        # The result must not show which ciphertexts it was made of.
        fresh = total.vector.rerandomised(exponent="full" if public.h_s is None else "half")
        data = paillier_files.EncryptedTable(total.frame, fresh, total.scale).encode()
        storage.write_output(output, data, [key, *tables])
    click.echo(f"{output}: the total of {len(tables)} tables")


@paillier.command()
@click.argument("key", type=_PATH)
@click.argument("table", type=_PATH)
@click.option(
    "--minimum", default=2, show_default=True, help="Fewest tables in a total that is decrypted."
)
@click.option("-o", "--output", required=True, type=_PATH, help="CSV file to write.")
def decrypt(key: Path, table: Path, minimum: int, output: Path) -> None:
    """Decrypt an encrypted TABLE with the private KEY."""
    with plain_errors(), progress_bar("decrypting") as progress:
        from securecomp.errors import ThresholdError
        from securecomp.paillier import paillier_files, vectors
        from securecomp.protocol import storage

        private = paillier_files.read_private(key)
        data = storage.read_bytes(table)
        read = paillier_files.decode_table(data, private.public, str(table))
        if read.vector.weight < minimum:
            raise ThresholdError(
                minimum, read.vector.weight, f"{table}: the total of too few tables"
            )
        values = vectors.decrypt(private, read.vector, progress=progress)
        plain = paillier_files.format_csv(read.frame, values, read.scale)
        storage.write_output(output, plain, [key, table])
    click.echo(f"{output}: the total of {read.vector.weight} tables, {read.frame.rows} rows")
