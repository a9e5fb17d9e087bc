"""What a server sees of a secure sum says nothing, whatever is summed; the attack works without."""

import numpy as np
import pytest
from cases import each_case
from replaying import Replay
from scipy.stats import chi2_contingency, chisquare
from sklearn.datasets import load_digits

from securecomp.audit.reconstruction.gradients import recover_row
from securecomp.audit.reconstruction.observed_messages import server_view
from securecomp.audit.reconstruction.two_layer_net import Network
from securecomp.errors import ParameterError, RangeError, ThresholdError

PROTOCOLS = ["masking", "sharing"]
SITES = [f"site {i}" for i in range(1, 5)]
IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16


@each_case("protocol", PROTOCOLS)
def test_the_sum_is_right_and_the_view_complete(protocol):
    rng = np.random.default_rng(0)
    vectors = {name: rng.normal(size=30) for name in SITES}
    view = server_view(vectors, bound=10, bits=20, protocol=protocol, entropy=Replay(0))
    assert view.result.values == pytest.approx(sum(vectors.values()), abs=4 * 2**-21)
    assert list(view.words) == SITES
    assert view.server.startswith("server")
    for words in view.words.values():
        assert words.shape == (30,)
        assert int(words.max()) < view.modulus


def test_by_sharing_what_is_kept_is_what_the_server_adds_up(monkeypatch):
    from securecomp.protocol import wire
    from securecomp.sharing.private_sum import Receiver

    published = {}
    add = Receiver._add

    def noted(self, sender, vector, payload):
        published[sender] = wire.unpack(vector, bytes(payload), 5)
        add(self, sender, vector, payload)

    monkeypatch.setattr(Receiver, "_add", noted)
    vectors = {name: np.arange(5.0) for name in SITES}
    view = server_view(vectors, bound=10, bits=0, protocol="sharing", entropy=Replay(0))
    total = sum(words.astype(object) for words in view.words.values()) % view.modulus
    assert total.tolist() == published[view.server].astype(object).tolist()
    # One share of several: the other servers' are missing to the sum.
    assert (total != view.result.values).any()


@each_case("protocol", PROTOCOLS)
@each_case("site", SITES[:2])
def test_its_bytes_are_uniform_and_alike_for_two_inputs(protocol, site):
    counts = []
    for seed, value in (("one", 9.0), ("two", -9.0)):
        vectors = {name: np.full(20_000, value) for name in SITES}
        view = server_view(vectors, bound=10, bits=20, protocol=protocol, entropy=Replay(seed))
        for shift in (0, view.modulus.bit_length() - 8):
            part = (view.words[site] >> np.uint64(shift)) & np.uint64(0x3F)
            counts.append(np.bincount(part.astype(int), minlength=64))
    assert all(chisquare(each).pvalue > 1e-3 for each in counts)
    assert chi2_contingency([counts[0], counts[2]]).pvalue > 1e-3
    assert chi2_contingency([counts[1], counts[3]]).pvalue > 1e-3


@each_case("protocol", PROTOCOLS)
def test_the_attack_that_reads_a_gradient_finds_nothing_in_the_view(protocol):
    network = Network.draw(64, 16, 10, Replay(0))
    vectors = {
        name: network.gradient(IMAGES[[i]], np.eye(10)[DIGITS[[i]]]) for i, name in enumerate(SITES)
    }
    weights, bias, _, _ = network.split(vectors[SITES[0]])
    assert recover_row(weights, bias, loss="squared").row == pytest.approx(IMAGES[0], abs=1e-9)
    view = server_view(vectors, bound=1, bits=24, protocol=protocol, entropy=Replay(1))
    for name in SITES:
        seen = view.reading(name)
        assert abs(np.corrcoef(seen, vectors[name])[0, 1]) < 4 / np.sqrt(len(seen))
        weights, bias, _, _ = network.split(seen)
        with pytest.raises(ParameterError, match="no single row has this gradient"):
            recover_row(weights, bias, loss="squared")


def test_without_masks_the_view_is_the_vector(monkeypatch):
    """The check of the checks above."""
    from securecomp.core.prg import RingMasks

    monkeypatch.setattr(RingMasks, "apply", lambda self, block, index: None)
    vectors = {name: np.linspace(-9, 9, 50) for name in SITES}
    view = server_view(vectors, bound=10, bits=20, entropy=Replay(0))
    assert view.reading(SITES[0]) == pytest.approx(vectors[SITES[0]], abs=2**-20)


def test_what_is_refused():
    vectors = {name: np.ones(3) for name in SITES}
    with pytest.raises(ParameterError, match='"masking" or "sharing"'):
        server_view(vectors, bound=1, bits=0, protocol="paillier")
    with pytest.raises(RangeError, match="site 1"):
        server_view(vectors, bound=0.5, bits=4)
    with pytest.raises(ThresholdError):
        server_view({SITES[0]: np.ones(3)}, bound=1, bits=0)
    with pytest.raises(ParameterError, match="several residues per element"):
        server_view(vectors, bound=2**40, bits=40)
