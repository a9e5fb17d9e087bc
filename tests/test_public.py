"""The public names: few, lazy, and typed."""

import importlib.metadata
import importlib.resources
import subprocess
import sys

import pytest
from cases import named

import securecomp

HOMES = {
    "Column": "securecomp.statistics",
    "Privacy": "securecomp.privacy.policy",
    "Result": "securecomp.statistics",
    "SecureSum": "securecomp.protocol.secure_sum",
    "Study": "securecomp.statistics",
    "secure_sum": "securecomp.protocol.secure_sum",
}


def test_a_public_name_is_the_one_of_its_module():
    for name in HOMES:
        with named(name):
            assert getattr(securecomp, name) is getattr(importlib.import_module(HOMES[name]), name)
            assert getattr(securecomp, name).__doc__


def test_there_are_these_and_no_others():
    assert sorted(securecomp.__all__) == sorted(HOMES)
    assert set(HOMES) <= set(dir(securecomp))
    assert dir(securecomp) == sorted(dir(securecomp))


def test_a_star_import_gives_them():
    names = {}
    exec("from securecomp import *", names)  # noqa: S102
    assert {name for name in names if not name.startswith("__")} == set(HOMES)


def test_another_name_is_no_attribute():
    for name in ["study", "Statistic", "_HOMES_", "numpy"]:
        with (
            named(name),
            pytest.raises(AttributeError, match=f"module 'securecomp' has no attribute '{name}'"),
        ):
            getattr(securecomp, name)


def test_a_submodule_is_not_in_the_way():
    from securecomp import errors, sharing

    assert issubclass(errors.RangeError, errors.SecureCompError)
    assert callable(sharing.split)


def test_the_version_is_that_of_the_package():
    assert securecomp.__version__ == importlib.metadata.version("securecomp")


def test_it_is_typed():
    assert importlib.resources.files("securecomp").joinpath("py.typed").is_file()


def test_a_first_use_loads_what_it_needs():
    code = (
        "import sys, securecomp\n"
        "loaded = lambda: [m in sys.modules for m in ('securecomp.statistics', 'numpy')]\n"
        "print(*loaded()); securecomp.Study; print(*loaded())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "False False\nTrue True\n"


def test_the_public_names_of_statistics():
    from securecomp import statistics

    assert set(statistics.__all__) == {
        "Codebook",
        "CodebookWarning",
        "Column",
        "Count",
        "Cox",
        "KaplanMeier",
        "LogRank",
        "Ranks",
        "Scores",
        "Skewness",
        "Winner",
        "CrossTable",
        "Entry",
        "Finding",
        "Histogram",
        "Mean",
        "Regression",
        "Result",
        "Run",
        "Statistic",
        "Study",
        "Sum",
        "Variance",
    }
    assert all(hasattr(statistics, name) for name in statistics.__all__)
