"""The package against vectors that were made without it, and that must never change."""

import copy
import json
from pathlib import Path

import pytest
from cases import each_case
from paillier import textbook

from securecomp.errors import AuthenticationError, DecodeError, KeyMismatchError
from securecomp.paillier import (
    PrivateKey,
    PublicKey,
    decrypt,
    encoding,
    encrypt,
    paillier_files,
    partial_decryption,
)
from securecomp.paillier.partial_decryption import PartialDecryption
from securecomp.paillier.threshold_key import KeyShare, ThresholdKey

FILE = Path(__file__).parents[1] / "vectors" / "paillier.json"
PUBLISHED = json.loads(FILE.read_text(encoding="utf-8"))
TESTS = {"insecure_for_tests": True}
ENCRYPTIONS = PUBLISHED["encryptions"]
IDS = [f"{e['bound']} {e['exponent']}" for e in ENCRYPTIONS]


def number(text):
    return int(text, 16)


@pytest.fixture(scope="module")
def key():
    p, q, h_s = (number(PUBLISHED["key"][name]) for name in ("p", "q", "h_s"))
    return PrivateKey(p, q, h_s, **TESTS)


def test_they_are_what_the_reference_makes():
    assert {k: v for k, v in PUBLISHED.items() if k != "note"} == textbook.published()


def test_the_key(key):
    assert key.public.id.hex() == PUBLISHED["key"]["id"]


class Fed:
    """Randomness that makes r the given numbers."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def __call__(self, size):
        return next(self.numbers).to_bytes(size)


@each_case("case", ENCRYPTIONS)
@each_case("owned", [False, True])
def test_encryption(key, case, owned):
    full = case["exponent"] == "full"
    vector = encrypt(
        key.public,
        case["values"],
        bound=case["bound"],
        additions=case["additions"],
        exponent=case["exponent"],
        owner=key if owned else None,
        entropy=Fed([number(r) - full for r in case["r"]]),  # a full one is drawn from 1 on
    )
    assert encoding.encode_vector(vector, case["scale"]).hex() == case["file"]


@each_case("case", ENCRYPTIONS)
def test_decryption(key, case):
    data = bytes.fromhex(case["file"])
    vector, scale = encoding.decode_vector(data, key.public)
    assert decrypt(key, vector).tolist() == case["values"]
    assert (scale, vector.weight, vector.left) == (case["scale"], 1, case["additions"] - 1)
    with pytest.raises(DecodeError):
        encoding.decode_vector(data[:-1], key.public)
    bare = PublicKey(key.public.n, **TESTS)
    with pytest.raises(KeyMismatchError):
        encoding.decode_vector(data, bare)


def test_a_table(key):
    case = PUBLISHED["table"]
    data = bytes.fromhex(case["file"])
    table = paillier_files.decode_table(data, key.public, "a.enc")
    assert (list(table.frame.columns), table.frame.labels, table.frame.rows) == tuple(
        case["frame"].values()
    )
    assert decrypt(key, table.vector).tolist() == case["values"]
    assert (table.vector.weight, table.scale) == (case["weight"], case["scale"])
    assert table.encode() == data


@pytest.fixture(scope="module")
def quorum():
    """The threshold key, the shares as their holders read them, and the vector."""
    case = PUBLISHED["threshold"]
    public = PublicKey(number(case["n"]), number(case["h_s"]), **TESTS)
    fields = {
        "kty": "securecomp paillier share",
        "pub": json.loads(public.to_json()),
        **{name: case[name] for name in ("threshold", "base", "verification")},
    }
    shares = [
        KeyShare.from_json(json.dumps(fields | {"index": i + 1, "secret": secret}), **TESTS)
        for i, secret in enumerate(case["secrets"])
    ]
    vector, _ = encoding.decode_vector(bytes.fromhex(case["vector"]), public)
    return shares[0].key, shares, vector


def sent():
    parts = PUBLISHED["threshold"]["partials"]
    return [
        PartialDecryption(i + 1, *([bytes.fromhex(part)] for part in partial))
        for i, partial in enumerate(parts)
    ]


def test_what_holders_send(quorum):
    key, shares, vector = quorum
    assert isinstance(key, ThresholdKey)
    for share, partial, nonce in zip(shares, sent(), PUBLISHED["threshold"]["nonces"], strict=True):
        assert (
            partial_decryption.partial_decrypt(share, vector, entropy=Fed([number(nonce)]))
            == partial
        )
        partial_decryption.verify_partial(key, vector, partial)


@each_case("pair", [(0, 1), (1, 0), (0, 2), (2, 1)])
def test_what_two_of_three_decrypt(quorum, pair):
    key, _, vector = quorum
    got = partial_decryption.combine(key, vector, [sent()[i] for i in pair])
    assert got.tolist() == PUBLISHED["threshold"]["values"]


@each_case("field", range(3))
def test_a_changed_proof_is_refused(quorum, field):
    key, _, vector = quorum
    forged = copy.copy(sent()[1])
    parts = [forged.values, forged.challenges, forged.responses]
    last = parts[field][0][-1] ^ 1
    parts[field] = [parts[field][0][:-1] + bytes([last])]
    with pytest.raises(AuthenticationError, match=r"^holder 2: its partial decryption does not"):
        partial_decryption.combine(key, vector, [sent()[0], PartialDecryption(2, *parts)])
