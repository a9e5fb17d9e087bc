"""Pages from templates: each is one file that needs no other file, no font and no network.

Needs jinja2 (`pip install 'securecomp[report]'`).
"""

from typing import Any

from securecomp.errors import BackendUnavailableError


def render(template: str, **values: Any) -> str:
    """Return a page.

    Args:
        template: Its file in `securecomp/show/templates`.
        **values: Its values; text is escaped.

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
        loader=jinja2.PackageLoader("securecomp.show"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
