"""Messages that say one thing to one party and another to the next, or come in place of others."""

import numpy as np
import pytest
from cases import each_case
from consortium import SITES, Consortium
from msgspec import structs
from test_over_a_network import ONE

from securecomp.errors import LocalProtocolError, RemoteProtocolError
from securecomp.net import study_file, sum_server
from securecomp.net.site_state import SESSION, SiteState
from securecomp.net.study_messages import Announcement, Nonces, TotalsDigest
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout


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
            sum_server.serve(server)
        server.close()


def announced(site, session, number=0):
    site.channel.tell(
        ["server 1"],
        f"{SESSION}{session.id.hex()}",
        Announcement("1", number, session.to_bytes()),
    )


def session_of(consortium, member):
    return study_file.read(consortium.path).sums().session(member.carrier, Layout(1, 5), SITES)


def test_a_server_plays_no_sum_that_a_stranger_receives(tmp_path):
    """A site alone could have a sum opened to whom the study does not name."""
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        server = consortium.member("server 1")
        object.__setattr__(server.carrier.study, "patience", 1)
        key = Identity.generate().public
        for name in SITES:
            site = consortium.member(name)
            session = session_of(consortium, site)
            keys = {**session.keys, "eve": key}
            announced(site, structs.replace(session, receivers=("eve",), keys=keys))
            site.close()
        with pytest.raises(RemoteProtocolError, match="a sum that is not of this study"):
            sum_server.serve(server)
        server.close()


def test_a_sum_that_is_over_and_is_announced_again_stops_no_server(tmp_path):
    """Whoever carries messages keeps one, and brings it again when the sum is over."""
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        server = consortium.member("server 1")
        for name in SITES:
            site = consortium.member(name)
            session = session_of(consortium, site)
            announced(site, session)
            site.channel.tell(["server 1"], "1/totals", TotalsDigest(bytes(32)))
            site.close()
        server.state.spend(session.id)
        sum_server.serve(server)
        server.close()


def test_a_site_whose_nonce_was_left_out_begins_no_run(tmp_path):
    """With a nonce of its own in it, no run has the sessions of an earlier one."""
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        first, site = consortium.member("north"), consortium.member("south")
        first.channel.tell(["south"], "1/nonces", Nonces(dict.fromkeys(SITES, bytes(32))))
        with pytest.raises(RemoteProtocolError, match=r"^north: its list of nonces is not that of"):
            site.carrier.begin()
        first.close()
        site.close()


def test_another_question_than_before_a_restart_is_refused(tmp_path):
    consortium = Consortium(tmp_path, ONE)
    with consortium.relay():
        before = consortium.member("north")
        session = session_of(consortium, before)
        before.carrier.opened(session, lambda: np.zeros(1, np.int64))
        before.close()
        after = consortium.member("north")
        found = after.carrier.opened(session, lambda: pytest.fail("it is known"))
        assert found.tolist() == [0]
        after.close()
        again = consortium.member("north")
        other = structs.replace(session, layout=Layout(1, 6))
        with pytest.raises(LocalProtocolError, match="sum 1 is another one than before the restar"):
            again.carrier.opened(other, lambda: np.zeros(1, np.int64))
        again.close()


def test_one_step_is_heard_once(tmp_path):
    state = SiteState(tmp_path / "state", bytes(32), "north")
    state.heard([("south", "1/nonces", b"one")], 1)
    state.heard([("south", "1/nonces", b"one")], 2)  # a relay may bring it twice
    with pytest.raises(RemoteProtocolError, match=r"^south: two different messages came for one"):
        state.heard([("south", "1/nonces", b"two")], 3)
    assert (state.message("south", "1/nonces"), state.read) == (b"one", 2)
    state.close()
