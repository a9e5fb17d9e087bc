"""Bring files beside `docs/` into the site: links work there as in the repository."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = (
    *("SECURITY.md", "CONTRIBUTING.md"),
    *("examples/*.py", "benchmarks/README.md", "benchmarks/results/*"),
)
SHOWN = (".md", ".py", ".svg")


def on_files(files: Files, config: Any) -> Files:
    """Add the files that pages link to."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix in SHOWN:
                name = path.relative_to(ROOT).as_posix()
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links from a page to files beside `docs/` to where they are in the site."""
    depth = page.file.src_uri.count("/")
    if page.file.generated_by:  # written from the repository's root: docs/x.md is x.md here
        first = "](decisions/0001-keystream-by-gcm.md)"
        markdown = markdown.replace("](docs/decisions)", first).replace("](pyproject.toml)", "](#)")
        return re.sub(r"\]\(docs/", "](", markdown)
    up = "../" * (depth + 1)
    return markdown.replace(f"]({up}", f"]({'../' * depth}")
