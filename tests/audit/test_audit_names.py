"""The public names of audits: loaded when they are used, each from its own module."""

import subprocess
import sys
from importlib import import_module

import pytest

from securecomp import audit


def test_every_public_name_is_that_of_its_module():
    for name in audit.__all__:
        found = getattr(audit, name)
        home = import_module(found.__module__)
        assert getattr(home, name) is found, name
        assert found.__doc__, name
    assert list(audit.__all__) == sorted(audit.__all__)
    assert set(audit.__all__) <= set(dir(audit))


def test_no_name_is_hidden_by_a_room():
    for module in ("membership.trials", "reconstruction.canaries", "reidentification.uniqueness"):
        import_module(f"securecomp.audit.{module}")
    rooms = {name for name in audit.__all__ if hasattr(getattr(audit, name), "__path__")}
    assert not rooms


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match=r"'securecomp.audit' has no attribute 'membrship'"):
        _ = audit.membrship


def test_the_package_itself_loads_nothing_heavy():
    code = (
        "import sys, securecomp.audit\n"
        "print(*(m in sys.modules for m in ('scipy', 'numpy', 'sklearn')))\n"
        "from securecomp.audit import uniqueness\n"
        "print(*(m in sys.modules for m in ('numpy', 'sklearn')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "False False False\nTrue False\n"
