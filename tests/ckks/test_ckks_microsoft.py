"""Microsoft SEAL as the independent implementation: it transforms as we do and opens what we made.

Keys and ciphertexts are written in SEAL's own format (4.x, not compressed).
"""

import struct

import numpy as np
import pytest
from cases import each_case
from ckks.parties import Parties, linear_model, stream, table

from securecomp.ckks.native.encryption import RingSecretKey, polynomials
from securecomp.ckks.native.ring import Fixed, primes, ring
from securecomp.core.prg import derive

seal = pytest.importorskip("tenseal.sealapi")

SEED = stream("secret")(32)
RINGS = {
    "2048, 53 bits": (2048, 53, 1),
    "4096, two primes": (4096, 36, 3),
    "8192, two primes of 60 bits": (8192, 60, 3),
}


def context(degree, moduli, plain=0):
    """BFV with a plaintext modulus, else CKKS; SEAL too checks that it is 128-bit secure."""
    scheme = seal.SCHEME_TYPE.BFV if plain else seal.SCHEME_TYPE.CKKS
    parameters = seal.EncryptionParameters(scheme)
    parameters.set_poly_modulus_degree(degree)
    parameters.set_coeff_modulus([seal.Modulus(q) for q in moduli])
    if plain:
        parameters.set_plain_modulus(seal.Modulus(plain))
    made = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.TC128)
    assert made.parameters_set(), made.parameters_error_message()
    return made


VERSION = (
    seal.Serialization.SEALHeader().version_major,
    seal.Serialization.SEALHeader().version_minor,
)


def framed(members):
    """SEAL's header: magic, its own size, version, no compression, the whole size."""
    return struct.pack("<HBBBBHQ", 0xA15E, 16, *VERSION, 0, 0, 16 + len(members)) + members


def array(words):
    return framed(struct.pack("<Q", words.size) + words.astype("<u8").tobytes())


def read(vector, size):
    return np.array([vector(i) for i in range(size)], np.uint64)


class Opener:
    """SEAL with our secret key."""

    def __init__(self, degree, moduli, folder):
        """The last of several primes is SEAL's special one, which ciphertexts do not have."""
        self.context = context(degree, moduli)
        self.folder = folder
        self.primes = moduli[:-1] if len(moduli) > 1 else moduli
        self.ring = ring(degree, self.primes)
        self.key = RingSecretKey(self.ring, SEED)
        words = RingSecretKey(ring(degree, moduli), SEED)._s.residues.reshape(-1)
        head = struct.pack("<4QQd", *self.context.key_parms_id(), words.size, 1.0)
        self.secret = self.load(seal.SecretKey(), head + array(words))

    def load(self, empty, members):
        path = self.folder / "seal"
        path.write_bytes(framed(members))
        empty.load(self.context, str(path))
        return empty

    def ciphertext(self, parts):
        """A ciphertext of values, shape (2 or 3, L, N)."""
        size, levels, degree = parts.shape
        head = struct.pack("<4QB", *self.context.first_parms_id(), 1)
        head += struct.pack("<QQQdQ", size, degree, levels, 1.0, 1)
        return self.load(seal.Ciphertext(), head + array(parts.reshape(-1)))

    def open(self, parts):
        """What SEAL decrypts, as whole numbers."""
        plain = seal.Plaintext()
        seal.Decryptor(self.context, self.secret).decrypt(self.ciphertext(parts), plain)
        return self.whole(plain)

    def whole(self, plain):
        values = read(plain.data, plain.coeff_count()).reshape(self.ring.levels, -1)
        self.ring.to_coefficients(values)
        return self.ring.signed(values)


@pytest.fixture(scope="module", params=RINGS.values(), ids=RINGS)
def opener(request, tmp_path_factory):
    degree, bits, count = request.param
    return Opener(degree, primes(degree, bits, count), tmp_path_factory.mktemp("seal"))


def encrypted(opener, messages, lift):
    """Our ciphertext of one integer polynomial, shape (2, L, N)."""
    r = opener.ring
    masks = r.uniform(stream("masks")(32), 1)
    words = np.frombuffer(stream("noise")(8 * r.degree), "<u8")
    out = polynomials(r, 1)
    opener.key.encrypt(messages[None], r.number(lift), iter(masks), words, out)
    return np.stack([out[:, 0], masks[:, 0]])


def message(opener, seed=0):
    limit = 2**20
    return np.random.default_rng(seed).integers(-limit, limit + 1, opener.ring.degree)


@each_case("plain", [65537, 1032193])
def test_values_are_those_of_seal(opener, plain):
    """Place by place: the same root of unity, in the same order."""
    r = opener.ring
    special = primes(r.degree, 25, 1) if r.levels > 1 else ()
    other = context(r.degree, (*opener.primes, *special), plain)
    numbers = np.random.default_rng(1).integers(0, plain, r.degree)
    numbers[-1] = 1
    text = " + ".join(f"{x:X}x^{i}" if i else f"{x:X}" for i, x in [*enumerate(numbers)][::-1])
    plaintext = seal.Plaintext(text)
    seal.Evaluator(other).transform_to_ntt_inplace(plaintext, other.first_parms_id())
    got = read(plaintext.data, plaintext.coeff_count()).reshape(r.levels, -1)
    values = r.residues(np.where(numbers >= (plain + 1) // 2, numbers - plain, numbers))
    r.to_values(values)
    assert np.array_equal(got, values)


@each_case("lift", [1, 2**10])
def test_seal_opens_what_we_encrypted(opener, lift):
    m = message(opener)
    error = opener.open(encrypted(opener, m, lift)) - m.astype(object) * lift
    assert 5 < max(abs(error)) <= 21


def test_seal_opens_what_the_public_key_encrypted(opener):
    r = opener.ring
    m = message(opener) * 2**10
    values = r.residues([m])
    r.to_values(values)
    public = opener.key.public(stream("public"))
    parts = public.encrypt(values, stream("fresh")(32))[:, :, 0]
    error = opener.open(np.ascontiguousarray(parts)) - m
    assert max(abs(error)) <= 21 * (2 * r.degree + 1)
    assert error.astype(float).std() > 50


def test_seal_opens_a_product(opener):
    """c_0 + c_1 s + c_2 s^2, the form of an encrypted model's replies."""
    r = opener.ring
    a, b = encrypted(opener, np.full(r.degree, 3), 1), encrypted(opener, np.arange(r.degree), 1)
    b = b.copy()
    parts = np.zeros((3, r.levels, r.degree), np.uint64)
    for i in range(2):
        for j in range(2):
            r.add_product(parts[i + j], np.ascontiguousarray(a[i]), Fixed(r, b[j]))
    body = parts[0].copy()
    r.to_coefficients(body)
    phase = opener.key.phase(np.ascontiguousarray(parts[1:].swapaxes(0, 1)))
    ours = r.signed(r.residues(r.signed(body) + r.signed(phase)))
    assert opener.open(parts).tolist() == ours.tolist()


def test_we_open_what_seal_encrypted(opener):
    r = opener.ring
    scale = 2.0**25
    plain, sealed = seal.Plaintext(), seal.Ciphertext()
    seal.CKKSEncoder(opener.context).encode(3.0, scale, plain)
    seal.Encryptor(opener.context, opener.secret).encrypt_symmetric(plain, sealed)
    data = sealed.dyn_array()
    parts = read(data.at, data.size()).reshape(2, r.levels, r.degree)
    body = parts[0].copy()
    r.to_coefficients(body)
    phase = opener.key.phase(np.ascontiguousarray(parts[1])[:, None])
    whole = r.signed(r.residues(r.signed(body) + r.signed(phase)))
    whole[0] -= 3 * 2**25
    assert 3 < max(abs(whole)) <= 41  # SEAL's noise


@pytest.mark.parametrize("choices", [{}, {"protect_model": True}], ids=["open", "protected"])
def test_seal_opens_the_servers_answer(choices, tmp_path):
    """The whole way: our client encrypts, our server computes, SEAL decrypts the logits."""
    parties = Parties(linear_model(40), precision=1e-6, **choices)
    rows = table(3, 40)
    answer, residues = parties.read(parties.server.predict(parties.ann.encrypt(rows)))
    r, c = parties.ring, parties.plan.linear
    flat = residues.reshape(r.levels, -1)
    body = np.zeros((r.levels, r.degree), np.uint64)
    body[:, np.arange(answer.rows) * 40] = flat[:, : answer.rows]
    r.to_values(body)
    # One more prime, so that SEAL has its special one and the ciphertext keeps all of ours.
    parts = np.stack([body, flat[:, answer.rows :]])
    extra = primes(r.degree, 30, 1) if r.levels > 1 else ()
    opener = Opener(r.degree, (*r.primes, *extra), tmp_path)
    opener.key = parties.ann._circuit._key
    secret = derive(parties.ann._circuit.secret, "ckks key", parties.plan.digest)
    words = RingSecretKey(ring(r.degree, (*r.primes, *extra)), secret)._s.residues
    head = struct.pack("<4QQd", *opener.context.key_parms_id(), words.size, 1.0)
    opener.secret = opener.load(seal.SecretKey(), head + array(words.reshape(-1)))
    whole = opener.open(parts)[np.arange(answer.rows) * 40]
    logits = (whole / 2**c.scale_bits).astype(float)
    expected = parties.model.logits(rows)[:, 0]
    assert np.abs(logits - expected).max() <= parties.plan.error
