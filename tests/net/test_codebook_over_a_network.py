"""A codebook over a network: named by digest, signed with the study, checked before sending."""

import hashlib
import sqlite3

import pytest
from cases import each_case
from consortium import SITES, Consortium, rows
from test_over_a_network import documents
from test_processes import CODEBOOK

from securecomp.errors import ParameterError, RangeError
from securecomp.net import programs, simulation, study_file
from securecomp.statistics import Codebook, Study
from securecomp.statistics.codebook.entries import Entry

BOOK = Codebook(
    "stays",
    "2",
    {
        **CODEBOOK.columns,
        "los": Entry("number", unit="days", lower=0, upper=60, missing=(99,)),
        "pid": Entry("identifier"),
    },
    unique=("pid",),
)
QUESTIONS = """
[[analyses]]
ask = "mean"
column = "los"
by = "ward"
[[analyses]]
ask = "glm"
formula = "died ~ age"
"""


def frame(site):
    """A site's rows, with a code for missing."""
    found = rows(site)
    found["pid"] = [f"{site} {i}" for i in range(len(found))]
    found.loc[3, "los"] = 99
    return found


class Agreed(Consortium):
    """A consortium whose study names a codebook and declares nothing itself."""

    def __init__(self, folder, text=QUESTIONS, facts=""):
        folder.mkdir(exist_ok=True)
        self.book = folder / "stays.json"
        self.book.write_text(BOOK.to_json())
        digest = hashlib.sha256(self.book.read_bytes()).hexdigest()
        super().__init__(
            folder,
            text,
            facts='missing = "drop"\ncodebook = "stays.json"\n'
            f'codebook_sha256 = "{digest}"\n{facts}',
            columns="",
        )

    def run(self, frames=None, **facts):
        return super().run({site: frame(site) for site in SITES} | (frames or {}), **facts)


def test_the_result_is_that_of_one_process_with_the_codebook(tmp_path):
    consortium = Agreed(tmp_path)
    with consortium.relay():
        found = consortium.run()
    study = study_file.read(consortium.path)
    together = Study(
        {site: frame(site) for site in SITES},
        protocol=study.sums(),
        rows=study.rows,
        missing="drop",
        codebook=BOOK,
    )
    wanted = {str(q): q.put_to(together) for q in study.analyses}
    for site in SITES:
        assert documents(found[site]) == documents(wanted)


@each_case(
    "column, value, error, words",
    [
        ("los", 98, RangeError, "'los': row 6 is outside of the plausible range, 0 to 60 days"),
        ("pid", "south 7", RangeError, "row 8 repeats row 6 in column 'pid': the same patient"),
        ("ward", "icu", RangeError, "'ward': row 6 is not one of the agreed levels"),
    ],
)
def test_rows_that_do_not_follow_it_are_named_here_and_nothing_is_sent(
    column, value, error, words, tmp_path
):
    consortium = Agreed(tmp_path / column)
    wrong = frame("south")
    wrong.loc[5, column] = value
    with consortium.relay():
        found = consortium.run({"south": wrong})
    assert isinstance(found["south"], error)
    assert words in str(found["south"])
    for name in ("north", "west", *consortium.servers):
        assert str(found[name]).startswith("south: has stopped: an error of its own (")
        assert str(value) not in str(found[name])
    state = consortium.path.with_name("study.toml.south.1.state")
    with sqlite3.connect(state) as database:
        assert not database.execute("SELECT tag FROM outbox").fetchall()
    database.close()


def test_another_codebook_than_the_signed_one_is_refused(tmp_path):
    consortium = Agreed(tmp_path)
    consortium.book.write_text(BOOK.to_json().replace('"upper": 60', '"upper": 61'))
    member = consortium.member("north")
    with pytest.raises(ParameterError, match="another codebook than the study names: its SHA-256"):
        list(programs.join(member, "north", frame("north")))
    member.close()
    with pytest.raises(ParameterError, match="another codebook than the study names"):
        study_file.sign(consortium.path, "north", consortium.key("north"))
    consortium.book.unlink()
    with pytest.raises(ParameterError, match=r"stays\.json"):
        study_file.sign(consortium.path, "north", consortium.key("north"))


@each_case(
    "facts, words",
    [
        ('codebook = "stays.json"\n', "codebook_sha256 is the SHA-256 of stays.json: 64"),
        ('codebook = "../stays.json"\n', "name of a file that lies beside"),
        (f'codebook_sha256 = "{"0" * 64}"\n', "name of a file that lies beside"),
    ],
)
def test_a_codebook_is_named_as_a_file_beside_and_by_its_digest(facts, words, tmp_path):
    folder = tmp_path / str(len(facts))
    folder.mkdir()
    with pytest.raises(ParameterError, match=words):
        simulation.prepare(folder, f"[study]\n{facts}{QUESTIONS}", SITES, ["server 1", "server 2"])
