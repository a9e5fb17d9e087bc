"""Parties and relays that do not keep to the protocol, and failures that must not spread."""

import time
from dataclasses import replace

import pytest
from consortium import Consortium
from test_over_a_network import ONE

from securecomp.errors import RemoteProtocolError


def test_who_still_waits_in_one_run_takes_nothing_of_the_next(tmp_path):
    """One party is told of a new run while it is in the old one."""
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        slow = consortium.member("north", "1")
        south = consortium.member("south", "ü 2&after=9")
        south.office.put([("north", "t", b"of the new run")])
        south.close()
        slow.carrier.study = replace(slow.study, patience=2)
        with pytest.raises(RemoteProtocolError, match="nothing came"):
            slow.carrier.begin()
        assert slow.state.read == 0
        slow.close()
        later = consortium.member("north", "ü 2&after=9")
        try:
            assert later.office.wait(
                lambda: later.state.message("south", "t") == b"of the new run",
                time.monotonic() + 10,
            )
        finally:
            later.close()
