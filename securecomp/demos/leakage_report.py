"""The leakage demonstration as a reader sees it: pictures, tables and sentences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from rich.text import Text

from securecomp.audit.reconstruction.gradient_matching import MatchingLeak
from securecomp.show.exhibit import Plot
from securecomp.show.figures import svg
from securecomp.show.pages import render

Floats = npt.NDArray[np.float64]

SITES = 10
EACH = (1, 2, 5, 20)
"""Images of a site in a step; the last is the one that is shown."""
EPSILON, DELTA = 8.0, 1e-5
SIDE = 8
"""Pixels of an image's side."""
COLUMNS = (
    "the image at its site",
    "from its gradient",
    "from the sum of all sites",
    "a guess without a gradient",
    "the server's view",
)
_WHY = (
    "A gradient tells how a model should change for its data, and so it carries the data. "
    "Divisions recover an image from its own gradient. So nobody may see a site's gradient.",
    "Masks hide it. A masked gradient looks random to its recipient, and only the sum over all "
    "sites can be opened.",
    "The sum alone does not protect the images. If it contains few images, a search finds most of "
    "them. If there are many more unknown numbers than known sums, the search finds other images "
    "with the same sum. The leak is the part by which they are nearer to the images in the sum "
    "than to others. An attacker who knows all sites' images but one subtracts them from the sum "
    "and has one site's gradient again.",
    "Aggregation hides which site contributed which part. Noise (differential privacy) bounds what "
    "the sum reveals; masks do not.",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One attack on a sum of gradients.

    Attributes:
        what: The gradients in the sum, in words.
        leak: The result of the attack.
    """

    what: str
    leak: MatchingLeak

    def row(self) -> tuple[str, ...]:
        """Return the cells of the table."""
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


HEADER = (
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
    """The findings of the demonstration. All numbers are of this run.

    Attributes:
        pictures: For each image shown: the image and its reconstructions, shape (5, 8, 8).
        labels: The digits in the images.
        divided: Number of images that divisions recovered from their gradients, and of images
            tried.
        error: Largest error of a pixel recovered by divisions.
        trials: Searches, in the order of the images in the sum.
        parameters: Numbers in a gradient.
        correlation: Correlation of the server's view of a site with that site's gradient.
        chance: Bound that holds 95 of 100 correlations of independent vectors.
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
        """Return the findings in words."""
        found, of = self.divided
        all_sites = self.trials[len(EACH)].leak
        nearer = np.median(all_sites.members.psnr) - np.median(all_sites.others.psnr)
        return [
            f"From one image's gradient, divisions recover {found} of {of} images, with an error "
            f"of at most {self.error:.0e}.",
            f"From the sum of all sites, a search finds images that resemble their digit, as a "
            f"guess does. They are {nearer:.1f} decibel nearer to the images in the sum than to "
            "other people's.",
            f"The server's view of a site has a correlation of {self.correlation:+.3f} with the "
            f"site's gradient. By chance alone it is within {self.chance:.3f} of 0 in 95 of 100 "
            "runs.",
        ]

    def parts(self, colours: bool, width: int = 100) -> Iterator[Any]:
        """Yield the parts to print.

        Args:
            colours: Draw in shades of grey; otherwise with plain characters.
            width: Width of the screen, in characters.
        """
        yield Text(
            f"{SITES} sites, {EACH[-1]} images each, a network of {self.parameters:,} parameters",
            style="bold",
        )
        beside = max(1, (width + _GAP) // (2 * SIDE + _GAP))  # pictures in a line
        for start in range(0, len(COLUMNS), beside):
            yield self._drawn(slice(start, start + beside), _blocks if colours else _characters)
        yield from map(Text, self.words())
        yield Text()
        table = Table(title="Searching in sums", title_justify="left", title_style="bold")
        for i, name in enumerate(HEADER):
            table.add_column(name, justify="right" if i else "left")
        for trial in self.trials:
            table.add_row(*map(Text, trial.row()))
        yield table
        yield Text(_READING)
        yield from map(Text, _WHY)

    def _drawn(self, columns: slice, sketch: Callable[[Floats], Text]) -> Table:
        shown = Table(box=None, padding=(0, _GAP, 1, 0), pad_edge=False)
        for name in COLUMNS[columns]:
            shown.add_column(name, width=2 * SIDE)
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
        title = f"Nearness of the found images; {_TOP:g} decibel stands for all above"
        plot = Plot("line", title, "images in the sum", "decibel, median image", series)
        return render(
            "leakage.html",
            title="Images reconstructed from gradients",
            columns=COLUMNS,
            pictures=[
                (label, [image.tolist() for image in images])
                for label, images in zip(self.labels, self.pictures, strict=True)
            ],
            sites=SITES,
            each=EACH[-1],
            parameters=f"{self.parameters:,}",
            words=self.words(),
            header=HEADER,
            rows=[trial.row() for trial in self.trials],
            reading=_READING,
            caption=title,
            figure=svg(plot),
            why=_WHY,
        )


_TOP = 100.0
_GAP = 3
_READING = (
    "Decibel: nearness of the median found image; from 20 on an image counts as found. Guessed: "
    "images to which the guess is as near. To others: nearness of the found images to images that "
    "are not in the sum; the difference is the leak. A guess: the mean of other people's images of "
    "the same digit, where searches begin. The attacker knows the network and all labels. Noised: "
    "epsilon "
    f"{EPSILON:g}, delta {DELTA:g} for an image's presence in this one step."
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
