"""The demonstration of leaking gradients: images reconstructed from them and from their sums.

Ten sites take one step of training a small network together, on the digits of scikit-learn.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from securecomp.audit.reconstruction import gradients
from securecomp.audit.reconstruction.gradient_matching import gradient_matching
from securecomp.audit.reconstruction.observed_messages import View, server_view
from securecomp.audit.reconstruction.two_layer_net import Network
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.demos.leakage_report import (
    COLUMNS,
    DELTA,
    EACH,
    EPSILON,
    SIDE,
    SITES,
    Floats,
    Leakage,
    Trial,
)
from securecomp.errors import BackendUnavailableError
from securecomp.privacy.distributed import plan
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.protocol.secure_sum import secure_sum

Places = npt.NDArray[np.intp]

_CLIP = 6.0  # the longest gradient of an image; longer ones would be shortened
_CLASSES, _HIDDEN, _BITS, _NOISE_BITS, _STEPS, _SHOWN = 10, 32, 24, 8, 300, 3


def run(entropy: Entropy = entropy_.system) -> Leakage:
    """Train one step on ten sites, and attack it.

    Args:
        entropy: Source of the network, the masks and the starts of searches.

    Raises:
        BackendUnavailableError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise BackendUnavailableError(
            "the demonstration's images come with scikit-learn: pip install 'securecomp[federated]'"
        ) from None
    # Beside other programs, several threads on matrices this small wait for each other.
    with threadpool_limits(1):
        images, digits = load_digits(return_X_y=True)
        return _attacked(images / images.max(), digits, entropy)


@dataclass(frozen=True, slots=True)
class _Sites:
    """The sites' images and the network that they train, as an attacker's search needs them.

    Site s has the images s, s + 10, s + 20 ...; the larger its batch, the more of them.
    """

    network: Network
    rows: Floats
    labels: npt.NDArray[np.int64]
    beside: Floats
    means: Floats
    entropy: Entropy

    @classmethod
    def draw(cls, images: Floats, digits: npt.NDArray[np.int64], entropy: Entropy) -> "_Sites":
        """Divide images, with values from 0 to 1, between the sites, others and the attacker."""
        rows, beside, known = (images[i::3] for i in range(3))
        labels, of_beside, of_known = (digits[i::3] for i in range(3))
        means = np.array([known[of_known == c].mean(axis=0) for c in range(_CLASSES)])
        network = Network.draw(SIDE**2, _HIDDEN, _CLASSES, entropy)
        number = SITES * EACH[-1]
        rows, labels = rows[:number], labels[:number]
        return cls(network, rows, labels, _alike(beside, of_beside, labels), means, entropy)

    @property
    def targets(self) -> Floats:
        """The labels as the network's outputs."""
        return np.eye(_CLASSES)[self.labels]

    def gradient(self, taken: Places) -> Floats:
        """Return the gradient of some images."""
        return self.network.gradient(self.rows[taken], self.targets[taken])

    def searched(self, name: str, taken: Places, gradient: Floats) -> Trial:
        """Search for some images by their gradient."""
        leak = gradient_matching(
            self.network,
            self.rows[taken],
            self.targets[taken],
            self.beside[taken],
            gradient=gradient,
            guess=self.means[self.labels[taken]],
            steps=_STEPS,
            entropy=self.entropy,
        )
        return Trial(name, leak)

    def summed(self, taken: Places) -> View:
        """Add the sites' gradients securely. No element of an image's gradient passes 1."""
        vectors = {f"site {s + 1}": self.gradient(taken[taken % SITES == s]) for s in range(SITES)}
        bound = len(taken) // SITES
        return server_view(vectors, bound=bound, bits=_BITS, entropy=self.entropy)

    def divided(self) -> Floats:
        """Read each image off its own gradient."""
        pairs = zip(self.rows, self.targets, strict=True)
        return np.array([_divided(self.network, row, target) for row, target in pairs])


def _attacked(images: Floats, digits: npt.NDArray[np.int64], entropy: Entropy) -> Leakage:
    """Attack, with images of values from 0 to 1."""
    sites = _Sites.draw(images, digits, entropy)
    places = np.arange(len(sites.rows))
    trials = [sites.searched("one image", places[:1], sites.gradient(places[:1]))]
    views = []
    for each in EACH:
        taken = places[: SITES * each]
        views.append(sites.summed(taken))
        many = "1 image" if each == 1 else f"{each} images"
        trials.append(sites.searched(f"{SITES} sites, {many} each", taken, views[-1].result.values))
    view = views[-1]
    first = places[places % SITES == 0]
    rest = sites.gradient(np.setdiff1d(places, first))
    colluding = view.result.values - rest
    trials.append(sites.searched("the same, nine sites known", first, colluding))
    noised = _noised([sites.gradient(places[i : i + 1]) for i in range(SITES)], entropy)
    trials.append(sites.searched(f"{SITES} sites, 1 each, noised", places[:SITES], noised))
    read = sites.divided()
    errors = np.abs(read - sites.rows).max(axis=1)
    seen = view.reading("site 1")
    pictures = [
        (
            sites.rows[i],
            read[i],
            trials[len(EACH)].leak.rows[i],
            sites.means[sites.labels[i]],
            _as_image(view, f"site {i + 1}"),
        )
        for i in range(_SHOWN)
    ]
    return Leakage(
        pictures=np.array(pictures).reshape(_SHOWN, len(COLUMNS), SIDE, SIDE),
        labels=tuple(sites.labels[:_SHOWN].tolist()),
        divided=(int((errors < 1e-9).sum()), len(errors)),
        error=float(errors.max()),
        trials=tuple(trials),
        parameters=sites.network.parameters,
        correlation=float(np.corrcoef(seen, sites.gradient(first))[0, 1]),
        chance=1.96 / float(np.sqrt(len(seen))),
    )


def _noised(gradients: list[Floats], entropy: Entropy) -> Floats:
    """Return the secure sum of single images' gradients with each site's noise."""
    scale = 1 << _NOISE_BITS
    size = len(gradients[0])
    # Towards zero, so that no gradient becomes longer.
    change = UnitChange(size, math.ceil(_CLIP * scale * math.sqrt(size)), _CLIP * scale)
    made = plan("skellam", [change], EPSILON, DELTA, len(gradients))
    parts = {}
    for i, gradient in enumerate(gradients):
        shorter = gradient * min(1.0, _CLIP / float(np.linalg.norm(gradient)))
        parts[f"site {i + 1}"] = made.add(
            0, np.trunc(shorter * scale).astype(int).tolist(), entropy
        )
    bound = math.ceil(_CLIP * scale) + made.reach(0)
    return secure_sum(parts, bound=bound, protocol="masking", entropy=entropy).values / scale


def _alike(images: Floats, digits: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Floats:
    """Return an image of each label; images repeat only when all were used."""
    found = np.empty((len(labels), images.shape[1]))
    for digit in np.unique(labels):
        where = np.flatnonzero(labels == digit)
        found[where] = np.resize(images[digits == digit], (len(where), images.shape[1]))
    return found


def _divided(network: Network, row: Floats, target: Floats) -> Floats:
    """Read a row off its gradient: the first layer's weights by its biases."""
    weights, bias, _, _ = network.split(network.gradient(row[None], target[None]))
    return gradients.recover_row(weights, bias, loss="squared").row


def _as_image(view: View, site: str) -> Floats:
    """Return the first words that the server received from a site, as fractions of the modulus."""
    return view.words[site][: SIDE**2] / float(view.modulus)
