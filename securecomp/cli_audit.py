"""`securecomp audit`: attacks on one's own models and files."""

import click


@click.group()
def audit() -> None:
    """Attack your own models and files, before somebody else does."""
