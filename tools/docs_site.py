"""mkdocs hook: brings the pages above docs/ and the files that pages link to into the site.

Pages link to each other and to sources as they lie in the checkout, so that they can be read there.
Here README and its like become pages, a source that is linked becomes a file of the site (below
``source/``, as text), and links lead there. A link to a folder of benchmarks/results leads to a
page with its rows and plots, which are made here; one to another folder becomes plain text.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
from benchmarks import pages as results  # noqa: E402

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "threat_model.md",
    "CHANGELOG.md": "changes.md",
}
_OF_PAGE = {page: name for name, page in PAGES.items()}
_FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_ANNOTATION = re.compile(r"^ *<!--.*?-->\n", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that lie above docs/, and those of results."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    for name, content in (results.full() | results.plots()).items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Leaves out the notes for the tests, and turns links to where the site has things."""
    uri = page.file.src_uri
    if uri == "index.md":  # alone in its part of the order: nothing to navigate to
        page.meta["hide"] = ["navigation"]
    home = _OF_PAGE.get(uri, f"docs/{uri}")
    parts = _FENCED.split(_ANNOTATION.sub("", markdown))
    for index in range(0, len(parts), 2):  # what is between code

        def turn(link: re.Match[str]) -> str:
            return _turned(link, home, uri, config, files)

        parts[index] = _LINK.sub(turn, parts[index])
    return "".join(parts)


def _turned(link: re.Match[str], home: str, uri: str, config: Any, files: Files) -> str:
    image, text, target = link.groups()
    if "://" in target or target.startswith(("mailto:", "#")):
        return link[0]
    name, hash_, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(home), name))
    if path in PAGES:
        found = PAGES[path]
    elif path in results.FULL:
        found = results.FULL[path]
    elif path.startswith("docs/"):
        found = path.removeprefix("docs/")
    elif (ROOT / path).is_file():
        found = _source(path, config, files)
    else:
        return text
    relative = os.path.relpath(found, posixpath.dirname(uri) or ".")
    return f"{image}[{text}]({relative}{hash_}{anchor})"


def _source(path: str, config: Any, files: Files) -> str:
    uri = f"source/{path}.txt"
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, content=(ROOT / path).read_text()))
    return uri
