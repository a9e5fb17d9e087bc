"""Study files, signatures, keys and signed requests: what is taken, and what is refused."""

import time

import pytest
from cases import each_case
from consortium import COLUMNS, Consortium
from test_over_a_network import ONE

from securecomp.errors import AuthenticationError, KeyMismatchError, ParameterError
from securecomp.net import (
    identity_file,
    key_texts,
    programs,
    signed_requests,
    simulation,
    study_file,
)
from securecomp.protocol.identity import Identity


@pytest.fixture
def consortium(tmp_path):
    return Consortium(tmp_path, ONE)


def test_a_changed_byte_needs_every_signature_again(consortium):
    study_file.verify(consortium.path)
    text = consortium.path.read_text()
    consortium.path.write_text(text.replace("rows = 1000", "rows = 1001"))
    with pytest.raises(AuthenticationError, match=r"^north signed another version of study\.toml"):
        study_file.verify(consortium.path)
    study_file.sign(consortium.path, "north", consortium.key("north"))
    with pytest.raises(AuthenticationError, match=r"^south signed another version"):
        study_file.verify(consortium.path)


def test_a_missing_signature_is_named(consortium):
    study_file.signatures_path(consortium.path).unlink()
    study_file.sign(consortium.path, "south", consortium.key("south"))
    with pytest.raises(AuthenticationError, match=r"^north has not signed study\.toml; run: "):
        study_file.verify(consortium.path)


def test_only_the_holder_of_the_key_can_sign(consortium):
    with pytest.raises(ParameterError, match="'north' does not have this key"):
        study_file.sign(consortium.path, "north", consortium.key("south"))
    with pytest.raises(KeyMismatchError, match="does not have this key for 'north'"):
        programs.ConnectedParty(
            consortium.path, "north", consortium.key("south"), programs.Connection("http://x")
        )


@each_case(
    "old, new, words",
    [
        ('protocol = "sharing"', 'protocol = "shares"', "protocol is one of sharing"),
        ('protocol = "sharing"', 'protocol = "masking"', r"\[servers\] of masking are 'server'"),
        ("rows = 1000", "rows = 1.5", "rows"),
        ("rows = 1000", "row = 1000", r"\[study\] has no 'row'"),
        ("[columns.los]", "[column.los]", "the file has no 'column'"),
        ("decimals = 0", "decimal = 0", r"\[columns.los\] has bound, decimals or bits, or levels"),
        ('ask = "mean"', 'ask = "means"', "ask is one of anova"),
        ('ask = "mean"', 'ask = "compare"', "ask is one of anova"),
        ('column = "los"', 'col = "los"', "mean: "),
        ("[study]", "[study", "not a study file"),
        ("[sites]\n", '[sites]\n"west 2" = "abc"\n', "west 2: not a public key"),
    ],
)
def test_what_a_study_file_cannot_say(old, new, words, tmp_path_factory):
    path = Consortium(tmp_path_factory.mktemp("study"), ONE).path
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ParameterError, match=words) as caught:
        study_file.read(path)
    assert str(caught.value).startswith(str(path))


def test_one_key_for_two_parties(tmp_path):
    path = Consortium(tmp_path, ONE).path
    text = path.read_text()
    first = key_texts.to_text(identity_file.read(tmp_path / "north.identity").public)
    other = key_texts.to_text(identity_file.read(tmp_path / "server 1.identity").public)
    path.write_text(text.replace(other, first))
    with pytest.raises(ParameterError, match="'server 1' and 'north' have the same key"):
        study_file.read(path)


def test_a_template_is_a_study_once_it_has_parties(tmp_path):
    from securecomp.net.study_template import TEMPLATE

    kept = (
        TEMPLATE.split("# Names and public keys")[0] + TEMPLATE[TEMPLATE.index("# What is sum") :]
    )
    path = simulation.prepare(tmp_path, kept, ["a", "b"], ["server 1", "server 2"])
    assert study_file.verify(path).name == "Length of stay"
    assert COLUMNS  # the tests' own declaration is of the same form


def test_keys_are_private_files_with_a_fingerprint(tmp_path):
    path = tmp_path / "a.identity"
    identity = identity_file.create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert identity_file.read(path).public == identity.public
    words = key_texts.fingerprint(identity.public).split()
    assert len(words) == 8
    assert all(len(word) == 5 for word in words)
    assert key_texts.fingerprint(Identity.generate().public).split() != words
    with pytest.raises(ParameterError, match="File exists"):
        identity_file.create(path)
    path.chmod(0o644)
    with pytest.raises(ParameterError, match="other users can read this key; run: chmod 600"):
        identity_file.read(path)


def test_fingerprints_are_proquints():
    """The examples of the paper: 127.0.0.1 is lusab-babad, 63.84.220.193 gutih-tugad."""
    numbers = [127 << 8, 1, 63 << 8 | 84, 220 << 8 | 193]
    assert [key_texts._word(n) for n in numbers] == ["lusab", "babad", "gutih", "tugad"]


def test_requests_are_verified():
    identity, body = Identity.generate(), b"body"
    keys, now = signed_requests.signing_keys({"north": identity.public}), time.time()
    others = signed_requests.signing_keys({"south": identity.public})
    what = ("POST", "/v1/x/messages", "after=1")
    headers = {
        name.lower(): value
        for name, value in signed_requests.sign(identity, "north", *what, body).items()
    }
    name, _, content = signed_requests.verify(headers, keys, *what, now)
    assert (name, content) == ("north", signed_requests.digest(body))
    swapped = {**headers, "content-digest": signed_requests.digest(b"other")}
    with pytest.raises(AuthenticationError, match="the signature is not valid"):
        signed_requests.verify(swapped, keys, *what, now)
    for changed in (
        ("GET", *what[1:]),
        (what[0], "/v1/y/messages", what[2]),
        (*what[:2], "after=2"),
    ):
        with pytest.raises(AuthenticationError, match="the signature is not valid"):
            signed_requests.verify(headers, keys, *changed, now)
    with pytest.raises(AuthenticationError, match="signed by nobody of this study"):
        signed_requests.verify(headers, others, *what, now)
    for late in (-400, 400):
        with pytest.raises(AuthenticationError, match=r"clocks differ by .* here it is 20.* UTC"):
            signed_requests.verify(headers, keys, *what, now + late)
    other = {**headers, "signature-input": headers["signature-input"].replace("north", "south")}
    with pytest.raises(AuthenticationError, match="the signature is not valid"):
        signed_requests.verify(other, others, *what, now)
    for gone in ("signature", "signature-input"):
        left = {k: v for k, v in headers.items() if k != gone}
        with pytest.raises(AuthenticationError, match="not signed"):
            signed_requests.verify(left, keys, *what, now)
