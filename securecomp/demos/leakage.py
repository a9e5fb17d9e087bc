"""The demonstration of why sums are masked: images out of gradients, and out of sums of them.

Ten sites take one step of training a small network together, on the digits of scikit-learn.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from rich.text import Text

from securecomp.audit.reconstruction import gradients
from securecomp.audit.reconstruction.gradient_matching import MatchingLeak, gradient_matching
from securecomp.audit.reconstruction.observed_messages import View, server_view
from securecomp.audit.reconstruction.two_layer_net import Network
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import BackendUnavailableError
from securecomp.privacy.distributed import plan
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.protocol.secure_sum import secure_sum
from securecomp.show.exhibit import Plot
from securecomp.show.figures import svg
from securecomp.show.pages import render

Floats = npt.NDArray[np.float64]

SITES = 10
EACH = (1, 2, 5, 20)
"""Images of a site in a step; the last is the one that is shown."""
_EPSILON, _DELTA = 8.0, 1e-5
_CLIP = 6.0  # the longest gradient of an image; longer ones would be shortened
_SIDE, _CLASSES, _HIDDEN, _BITS, _NOISE_BITS, _STEPS, _SHOWN = 8, 10, 32, 24, 8, 300, 3
_COLUMNS = (
    "the image at its site",
    "out of its gradient",
    "out of the sum of all sites",
    "a guess without a gradient",
    "what the server gets",
)
_WHY = (
    "A gradient says how a model should change for its data, and it carries the data: an image "
    "comes out of its own gradient by divisions. So no site's gradient may be seen.",
    "Masked, it is not: what a site sends is random to whoever gets it, and only the sum over all "
    "sites opens.",
    "The sum is no lock by itself. If few images are in it, a search finds most of them. If there "
    "are many more numbers to find than sums to know, it finds others that add up alike; what is "
    "still nearer to the images in the sum than to others has leaked. Who knows all sites' images "
    "but one takes them off the sum, and is back at one site's.",
    "Aggregation hides who contributed what. What the sum still says is bounded by noise "
    "(differential privacy), not by masks.",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One attack on a sum of gradients.

    Attributes:
        what: What was summed.
        leak: What came out.
    """

    what: str
    leak: MatchingLeak

    def row(self) -> tuple[str, ...]:
        """Return what the table shows."""
        leak = self.leak
        return (
            self.what,
            f"{leak.rows.size:,}",
            f"{leak.members.recovered} of {len(leak.rows)}",
            f"{leak.guess.recovered}",
            leak.members.decibel,
            leak.others.decibel,
            leak.guess.decibel,
        )


_HEADER = (
    "the attacker sees",
    "unknowns",
    "images found",
    "guessed",
    "decibel",
    "to others",
    "a guess",
)


@dataclass(frozen=True, slots=True)
class Leakage:
    """What the demonstration found; all numbers are of this run.

    Attributes:
        pictures: For each image shown: the image, and what attacks made of it, shape (5, 8, 8).
        labels: What the images show.
        divided: Images that divisions read off their gradient, of all that were tried.
        error: The largest error of a pixel by that.
        trials: Searches, by how much was in the sum.
        parameters: Numbers in a gradient.
        correlation: Of what the server gets of a site with that site's gradient.
        chance: What correlations stay within in 95 of 100 cases if there is none.
    """

    pictures: Floats
    labels: tuple[int, ...]
    divided: tuple[int, int]
    error: float
    trials: tuple[Trial, ...]
    parameters: int
    correlation: float
    chance: float

    def facts(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {
            "sites": SITES,
            "parameters": self.parameters,
            "divided": self.divided[0],
            "divided_of": self.divided[1],
            "error": self.error,
            "trials": [{"sum": t.what, **t.leak.facts()} for t in self.trials],
            "correlation": self.correlation,
            "chance": self.chance,
            "labels": list(self.labels),
            "pictures": np.round(self.pictures, 4).tolist(),
        }

    def words(self) -> list[str]:
        """Return what was found, in words."""
        found, of = self.divided
        all_sites = self.trials[len(EACH)].leak
        nearer = np.median(all_sites.members.psnr) - np.median(all_sites.others.psnr)
        return [
            f"Of one image's gradient: {found} of {of} images read off by divisions, with an "
            f"error of at most {self.error:.0e}.",
            f"Out of the sum of all sites comes what resembles its digit, as a guess does: it is "
            f"{nearer:.1f} decibel nearer to the images in the sum than to other people's.",
            f"What the server gets of a site correlates with the site's gradient by "
            f"{self.correlation:+.3f}; by chance alone it is within {self.chance:.3f} of 0 in 95 "
            "of 100 runs.",
        ]

    def parts(self, colours: bool, width: int = 100) -> Iterator[Any]:
        """Yield what to print.

        Args:
            colours: Draw in shades of grey; otherwise with plain characters.
            width: Of the screen, in characters.
        """
        yield Text(
            f"{SITES} sites, {EACH[-1]} images each, a network of {self.parameters:,} parameters",
            style="bold",
        )
        beside = max(1, (width + _GAP) // (2 * _SIDE + _GAP))  # pictures in a line
        for start in range(0, len(_COLUMNS), beside):
            yield self._drawn(slice(start, start + beside), _blocks if colours else _characters)
        yield from map(Text, self.words())
        yield Text()
        table = Table(title="Searching in sums", title_justify="left", title_style="bold")
        for i, name in enumerate(_HEADER):
            table.add_column(name, justify="right" if i else "left")
        for trial in self.trials:
            table.add_row(*map(Text, trial.row()))
        yield table
        yield Text(_READING)
        yield from map(Text, _WHY)

    def _drawn(self, columns: slice, sketch: Callable[[Floats], Text]) -> Table:
        shown = Table(box=None, padding=(0, _GAP, 1, 0), pad_edge=False)
        for name in _COLUMNS[columns]:
            shown.add_column(name, width=2 * _SIDE)
        for images in self.pictures:
            shown.add_row(*map(sketch, images[columns]))
        return shown

    def page(self) -> str:
        """Return the demonstration as a self-contained page.

        Raises:
            BackendUnavailableError: jinja2 or matplotlib is not installed.
        """
        trials = self.trials[: 1 + len(EACH)]
        counts = [float(len(t.leak.rows)) for t in trials]
        series: dict[str, dict[str, Sequence[float]]] = {
            name: {"x": counts, "y": [min(float(np.median(v)), _TOP) for v in values]}
            for name, values in (
                ("to the images in the sum", [t.leak.members.psnr for t in trials]),
                ("to other people's images", [t.leak.others.psnr for t in trials]),
            )
        }
        title = f"How near the found images are; {_TOP:g} decibel stands for all above"
        plot = Plot("line", title, "images in the sum", "decibel, median image", series)
        return render(
            "leakage.html",
            title="What a gradient gives away",
            columns=_COLUMNS,
            pictures=[
                (label, [image.tolist() for image in images])
                for label, images in zip(self.labels, self.pictures, strict=True)
            ],
            sites=SITES,
            each=EACH[-1],
            parameters=f"{self.parameters:,}",
            words=self.words(),
            header=_HEADER,
            rows=[trial.row() for trial in self.trials],
            reading=_READING,
            caption=title,
            figure=svg(plot),
            why=_WHY,
        )


_TOP = 100.0
_GAP = 3
_READING = (
    "Decibel: how near the median image comes; from 20 on it is found. Guessed: images to which "
    "the guess is as near. To others: how near what was found comes to images that are not in the "
    "sum; the difference is the leak. A guess: the mean of other people's images of the same "
    "digit, where searches begin. The attacker knows the network and all labels. Noised: epsilon "
    f"{_EPSILON:g}, delta {_DELTA:g} for an image's presence in this one step."
)


def _blocks(image: Floats) -> Text:
    """Return an image in shades of grey, two pixels of a column in one half block."""
    large = np.kron(np.clip(image, 0, 1), np.ones((2, 2)))
    grey = np.rint(255 * large).astype(int)
    text = Text()
    for i in range(0, len(grey), 2):
        for top, bottom in zip(grey[i], grey[i + 1], strict=True):
            text.append("▀", f"rgb({top},{top},{top}) on rgb({bottom},{bottom},{bottom})")
        text.append("\n" if i + 2 < len(grey) else "")
    return text


def _characters(image: Floats) -> Text:
    """Return an image in ASCII, two characters a pixel."""
    ramp = " .:-=+*#%@"
    places = np.rint(np.clip(image, 0, 1) * (len(ramp) - 1)).astype(int)
    return Text("\n".join("".join(2 * ramp[place] for place in row) for row in places))


def run(entropy: Entropy = entropy_.system) -> Leakage:
    """Train one step on ten sites, and attack it.

    Args:
        entropy: Source of the network, the masks and where searches begin.

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


def _attacked(images: Floats, digits: npt.NDArray[np.int64], entropy: Entropy) -> Leakage:
    """Attack, with images of values from 0 to 1."""
    rows, beside, known = (images[i::3] for i in range(3))
    labels, of_beside, of_known = (digits[i::3] for i in range(3))
    means = np.array([known[of_known == c].mean(axis=0) for c in range(_CLASSES)])
    network = Network.draw(_SIDE**2, _HIDDEN, _CLASSES, entropy)
    # Site s has the images s, s + 10, s + 20 ...; more of them the larger its batch.
    places = np.arange(SITES * EACH[-1])
    rows, labels = rows[places], labels[places]
    targets = np.eye(_CLASSES)[labels]
    beside = _alike(beside, of_beside, labels)

    def searched(what: str, taken: npt.NDArray[np.intp], gradient: Floats) -> Trial:
        leak = gradient_matching(
            network,
            rows[taken],
            targets[taken],
            beside[taken],
            gradient=gradient,
            guess=means[labels[taken]],
            steps=_STEPS,
            entropy=entropy,
        )
        return Trial(what, leak)

    def own(taken: npt.NDArray[np.intp]) -> Floats:
        return network.gradient(rows[taken], targets[taken])

    trials = [searched("one image", places[:1], own(places[:1]))]
    view = None
    for each in EACH:
        taken = places[: SITES * each]
        view = _summed(own, taken, entropy)
        many = "1 image" if each == 1 else f"{each} images"
        trials.append(searched(f"{SITES} sites, {many} each", taken, view.result.values))
    assert view is not None  # noqa: S101  (EACH is not empty)
    first = places[places % SITES == 0]
    rest = own(np.setdiff1d(places, first))
    trials.append(searched("the same, nine sites known", first, view.result.values - rest))
    noised = _noised([own(places[i : i + 1]) for i in range(SITES)], entropy)
    trials.append(searched(f"{SITES} sites, 1 each, noised", places[:SITES], noised))
    read = [_divided(network, row, aim) for row, aim in zip(rows, targets, strict=True)]
    errors = np.abs(np.array(read) - rows).max(axis=1)
    seen = view.reading("site 1")
    pictures = [
        (
            rows[i],
            read[i],
            trials[len(EACH)].leak.rows[i],
            means[labels[i]],
            _as_image(view, f"site {i + 1}"),
        )
        for i in range(_SHOWN)
    ]
    return Leakage(
        pictures=np.array(pictures).reshape(_SHOWN, len(_COLUMNS), _SIDE, _SIDE),
        labels=tuple(labels[:_SHOWN].tolist()),
        divided=(int((errors < 1e-9).sum()), len(errors)),
        error=float(errors.max()),
        trials=tuple(trials),
        parameters=network.parameters,
        correlation=float(np.corrcoef(seen, own(first))[0, 1]),
        chance=1.96 / float(np.sqrt(len(seen))),
    )


def _summed(own: Any, taken: npt.NDArray[np.intp], entropy: Entropy) -> View:
    """Add the sites' gradients securely. No element of an image's gradient passes 1."""
    vectors = {f"site {s + 1}": own(taken[taken % SITES == s]) for s in range(SITES)}
    return server_view(vectors, bound=len(taken) // SITES, bits=_BITS, entropy=entropy)


def _noised(gradients: list[Floats], entropy: Entropy) -> Floats:
    """Return the secure sum of single images' gradients, to which each site adds its noise."""
    scale = 1 << _NOISE_BITS
    size = len(gradients[0])
    # Towards zero, so that no gradient becomes longer.
    change = UnitChange(size, math.ceil(_CLIP * scale * math.sqrt(size)), _CLIP * scale)
    made = plan("skellam", [change], _EPSILON, _DELTA, len(gradients))
    parts = {}
    for i, gradient in enumerate(gradients):
        shorter = gradient * min(1.0, _CLIP / float(np.linalg.norm(gradient)))
        parts[f"site {i + 1}"] = made.add(
            0, np.trunc(shorter * scale).astype(int).tolist(), entropy
        )
    bound = math.ceil(_CLIP * scale) + made.reach(0)
    return secure_sum(parts, bound=bound, protocol="masking", entropy=entropy).values / scale


def _alike(images: Floats, digits: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Floats:
    """Return an image of each label, each once as long as there are some, then again."""
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
    """Return the first words that the server got of a site, as shares of the modulus."""
    return view.words[site][: _SIDE**2] / float(view.modulus)
