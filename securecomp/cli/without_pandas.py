"""Keep pandas out of commands that have no use for it: it takes half a second and 50 MB."""

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class _NotNow(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(self, name: str, *_: Any) -> Any:
        """Refuse pandas; other finders look for everything else."""
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return None


def without_pandas() -> None:
    """Let pyarrow find no pandas, for which it looks at its first conversion and never again.

    For commands: all their tables are pyarrow's own. Where pandas is loaded already, it stays.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NotNow()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
