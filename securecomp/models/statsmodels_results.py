"""The numbers of a result of statsmodels, without importing statsmodels."""

from typing import Any

import numpy as np

from securecomp.errors import ParameterError
from securecomp.models.fitted_numbers import FittedNumbers
from securecomp.models.links import Label, Link

_CONSTANTS = ("const", "Intercept")
_MODELS: dict[str, Link] = {
    "OLS": "identity",
    "WLS": "identity",
    "Logit": "sigmoid",
    "Poisson": "log",
}
_LINKS: dict[str, Link] = {"Identity": "identity", "Log": "log", "Logit": "sigmoid"}


def recognised(fitted: Any) -> bool:
    """Return whether an object is a result of statsmodels."""
    return hasattr(fitted, "params") and hasattr(getattr(fitted, "model", None), "exog_names")


def read(fitted: Any) -> FittedNumbers:
    """Read a result. Its features are the columns of its design matrix.

    Raises:
        ParameterError: Another kind of model or link, or an offset or exposure.
    """
    model = fitted.model
    link = _link(model)
    for name in ("offset", "exposure"):
        if np.any(getattr(model, name, None)):
            raise ParameterError(f"this result has an {name}, which no weight stands for")
    names = [str(name) for name in model.exog_names]
    params = np.asarray(fitted.params, float)
    constant = np.array([name in _CONSTANTS for name in names])
    reach = 2 * np.abs(np.asarray(model.exog, float)).max(axis=0)
    classes: tuple[Label, ...] = (0, 1) if link == "sigmoid" else ()
    return FittedNumbers(
        weights=params[~constant][None],
        intercepts=params[constant].sum(keepdims=True),
        classes=classes,
        features=tuple(name for name, is_one in zip(names, constant, strict=True) if not is_one),
        reach=np.where(reach > 0, reach, np.nan)[~constant],
        link=link,
    )


def _link(model: Any) -> Link:
    kind = type(model).__name__
    if kind in _MODELS:
        return _MODELS[kind]
    if kind != "GLM":
        raise ParameterError(f"statsmodels' {kind} is not read; use OLS, WLS, Logit, Poisson, GLM")
    link = type(model.family.link).__name__
    if link not in _LINKS:
        raise ParameterError(f"a GLM with the link {link} is not read; use {', '.join(_LINKS)}")
    return _LINKS[link]
