"""Questions of analysts: asked of agents that stay, answered by all sites, or refused by one."""

import contextlib
import threading

from cases import each_case
from consortium import SITES, Consortium, rows

from securecomp.statistics import Study

RULES = """
[questions]
answer = ["count", "mean", "t_test", "kaplan_meier"]
ask = ["glm"]
most = 4
"""


@contextlib.contextmanager
def staying(consortium, frames=None, person=None):
    """Agents and servers that stay until the analysts have no more questions."""
    found = {}

    def site(name, frame, run):
        return consortium.agent(name, frame, run, (person or {}).get(name))

    thread = threading.Thread(target=lambda: found.update(consortium.run(frames, site=site)))
    with consortium.relay():
        thread.start()
        yield found
        thread.join(120)
        assert not thread.is_alive()


def together(consortium):
    """The same study in one process."""
    study = consortium.member(SITES[0], run="facts").study
    return Study(
        {site: rows(site) for site in sorted(SITES)},
        columns=study.columns,
        protocol=study.sums(),
        rows=study.rows,
    )


@each_case("protocol", ["sharing", "masking"])
def test_an_analyst_without_rows_hears_what_one_process_says(protocol, tmp_path):
    folder = tmp_path / protocol
    folder.mkdir()
    consortium = Consortium(folder, RULES, protocol, analysts=("alice",))
    with staying(consortium) as found, consortium.asked("alice") as study:
        answers = [study.mean("los", by="ward"), study.glm("died ~ age"), study.count()]
        study.no_more()
    one = together(consortium)
    wanted = [one.mean("los", by="ward"), one.glm("died ~ age"), one.count()]
    assert [a.to_json() for a in answers] == [w.to_json() for w in wanted]
    for site in SITES:
        assert [r.to_json() for _, r in found[site]] == [w.to_json() for w in wanted]
