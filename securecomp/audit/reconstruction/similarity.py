"""Similarity of reconstructed rows to the true ones, for values from 0 to 1."""

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError

Floats = npt.NDArray[np.float64]
_LUMINANCE, _CONTRAST = 0.01**2, 0.03**2


def psnr(found: npt.ArrayLike, true: npt.ArrayLike) -> Floats:
    """Return each row's peak signal-to-noise ratio in decibels: -10 log10 of the mean square error.

    Args:
        found: Reconstructed rows, shape (n, d).
        true: True rows, shape (n, d), with values from 0 to 1.

    Returns:
        Shape (n,); infinite where both are equal. 20 dB is a root mean square error of 0.1.
    """
    one, other = _pair(found, true)
    with np.errstate(divide="ignore"):
        return np.asarray(-10 * np.log10(((one - other) ** 2).mean(axis=1)), np.float64)


def ssim(found: npt.ArrayLike, true: npt.ArrayLike) -> Floats:
    """Return each row's structural similarity: 1 if equal, about 0 if unrelated.

    It is computed over one window, since small images have no room for more.

    Source: Wang, Bovik, Sheikh, Simoncelli, IEEE Trans. Image Processing 13 (2004), eq. 13.
    """
    one, other = _pair(found, true)
    means, others = one.mean(axis=1), other.mean(axis=1)
    together = ((one - means[:, None]) * (other - others[:, None])).mean(axis=1)
    brightness = (2 * means * others + _LUMINANCE) / (means**2 + others**2 + _LUMINANCE)
    structure = (2 * together + _CONTRAST) / (one.var(axis=1) + other.var(axis=1) + _CONTRAST)
    return np.asarray(brightness * structure, np.float64)


def _pair(found: npt.ArrayLike, true: npt.ArrayLike) -> tuple[Floats, Floats]:
    one, other = (np.atleast_2d(np.asarray(a, np.float64)) for a in (found, true))
    if one.shape != other.shape:
        raise ParameterError(
            f"rows of shape {one.shape} and {other.shape} cannot be compared; give one shape"
        )
    return one, other
