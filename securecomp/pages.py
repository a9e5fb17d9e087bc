"""Self-contained HTML pages: no script, no font, no network; for screens, phones and paper.

Needs jinja2 (`pip install 'securecomp[report]'`).
"""

from typing import Any

from securecomp.errors import BackendUnavailableError


def rendered(template: str, **facts: Any) -> str:
    """Return a page made from a template of this package; what it shows is escaped.

    Raises:
        BackendUnavailableError: jinja2 is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise BackendUnavailableError(
            "a page needs jinja2; pip install 'securecomp[report]'"
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("securecomp"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**facts)
