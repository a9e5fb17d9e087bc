"""A full disk at the relay or at a site: one clear error, and the same result when there is room.

SQLite is told the most pages that its file may have, and answers as it does when the disk is full.
"""

import threading
import time

from consortium import Consortium
from test_over_a_network import documents, in_one_process

from securecomp.net.relay_client import RelayClient
from securecomp.net.site_state import SiteState, StateError

TWO = '[[analyses]]\nask = "mean"\ncolumn = "los"\n[[analyses]]\nask = "variance"\ncolumn = "age"\n'
SITES = ("north", "south")


def pages(database, most):
    """Let a database have so many pages."""
    database.execute(f"PRAGMA max_page_count = {most}")


def test_a_relay_without_room_is_tried_again_until_it_has_room(tmp_path, monkeypatch):
    consortium = Consortium(tmp_path, TWO, sites=SITES)
    told = []
    init = RelayClient.__init__

    def telling(self, *args, **kwargs):
        init(self, *args, **{**kwargs, "note": told.append})

    monkeypatch.setattr(RelayClient, "__init__", telling)
    with consortium.relay():
        store = consortium.store
        ((used,),) = store._db.execute("PRAGMA page_count")
        pages(store._db, used)
        found = {}
        thread = threading.Thread(target=lambda: found.update(consortium.run()))
        thread.start()
        while not any("make room" in text for text in told):
            time.sleep(0.05)
        pages(store._db, 1 << 30)
        thread.join(60)
    assert any("the relay's disk" in text and "next try" in text for text in told)
    wanted = documents(in_one_process(consortium.path, SITES))
    assert {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, wanted)


def test_a_site_without_room_says_so_and_goes_on_when_it_has_room(tmp_path, monkeypatch):
    consortium = Consortium(tmp_path, TWO, sites=SITES)
    full = []
    remember = SiteState.remember

    def filling(self, *args):
        """After its first total nothing more finds room at one site."""
        remember(self, *args)
        if self.fact("party", b"") == b"south" and not full:
            full.append(self)
            ((used,),) = self._db.execute("PRAGMA page_count")
            pages(self._db, used)

    monkeypatch.setattr(SiteState, "remember", filling)
    errors = []

    def site(name, frame, run):
        try:
            return consortium.site(name, frame, run)
        except StateError as error:
            errors.append((name, str(error)))
            return consortium.site(name, frame, run)  # there is room again

    with consortium.relay():
        found = consortium.run(site=site)
    ((name, words),) = errors
    assert name == "south"
    assert "full" in words
    assert words.endswith("make room, and start again")
    wanted = documents(in_one_process(consortium.path, SITES))
    assert {site: documents(found[site]) for site in SITES} == dict.fromkeys(SITES, wanted)
