"""Totals that were told differently after the last sum: nobody ends a run with them in silence."""

import pytest
from cases import each_case
from consortium import SITES, Consortium
from test_over_a_network import ONE

from securecomp.errors import RemoteProtocolError
from securecomp.net import programs
from securecomp.net.study_messages import TotalsDigest


@each_case("teller, hearer", [("south", "north"), ("north", "south")])
def test_a_site_compares_its_totals_with_the_others(teller, hearer, tmp_path_factory):
    """The first site hears all, and each of the others the first."""
    consortium = Consortium(tmp_path_factory.mktemp("study"), ONE)
    with consortium.relay():
        told, hears = consortium.member(teller), consortium.member(hearer)
        others = [consortium.member(name) for name in SITES if name not in (teller, hearer)]
        tag = "1/totals"
        told.channel.tell([hearer], tag, TotalsDigest(b"x" * 32))
        for other in others:
            other.channel.tell([hearer], tag, TotalsDigest(other.carrier._totals))
        with pytest.raises(RemoteProtocolError, match=f"^{teller}: heard other totals"):
            hears.carrier.finish()
        for member in (told, hears, *others):
            member.close()


def test_a_server_ends_no_run_of_different_totals(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        for name in SITES:
            site = consortium.member(name)
            digest = b"x" * 32 if name == "west" else bytes(32)
            site.channel.tell(["server 1"], "1/totals", TotalsDigest(digest))
            site.close()
        server = consortium.member("server 1")
        with pytest.raises(RemoteProtocolError, match="and another site ended with other totals"):
            programs.serve(server)
        server.close()
