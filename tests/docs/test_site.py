"""The site of the documentation: each page has its place, and nothing comes from outside."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]

from tests.docs.runner import ROOT

ROLES = ["Train", "Operate", "Write P4", "Do research", "Contribute"]
# Of tools/docs_site.py, which needs mkdocs to be imported.
ABOVE = dict(re.findall(r'"(\w+\.md)": "(\w+\.md)"', (ROOT / "tools/docs_site.py").read_text()))


class Loader(yaml.SafeLoader):  # type: ignore[misc,unused-ignore]
    """Leaves Python's objects alone, which are mkdocs' own affair."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
CONFIG: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)


def pages(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in pages(part)]


def test_every_page_has_one_place_and_the_order_is_by_role() -> None:
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    found = pages(CONFIG["nav"])
    assert len(found) == len(set(found))
    assert set(found) == there | set(ABOVE.values())
    assert [title for part in CONFIG["nav"] for title in part] == ["Home", *ROLES]
    assert all((ROOT / name).is_file() for name in ABOVE)


def test_the_readme_has_a_row_for_each_role() -> None:
    text = (ROOT / "README.md").read_text()
    table = text[text.index("## Documentation") :].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| **")]
    assert [re.findall(r"\*\*(.*?)\*\*", row)[0] for row in rows] == ROLES
    of_role = dict(zip(ROLES, CONFIG["nav"][1:], strict=True))
    for role, row in zip(ROLES, rows, strict=True):
        linked = re.findall(r"\]\(([^)]*)\)", row)
        uris = [ABOVE.get(name, name.removeprefix("docs/")) for name in linked]
        assert set(uris) <= set(pages(of_role[role])), role


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert CONFIG["theme"]["font"] is False
    assert CONFIG["plugins"] == ["search"]  # others may load scripts from a CDN
    assert not {"extra_css", "extra_javascript"} & CONFIG.keys()


@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="make docs installs it")
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text()
        assert not re.findall(r'<(?:script|img)[^>]*src="(?:https?:)?//', text), page
        assert not re.findall(r'<link[^>]*stylesheet[^>]*href="(?:https?:)?//', text), page
        assert "<!-- " not in re.sub(r"<(pre|code).*?</\1>", "", text, flags=re.DOTALL), page
    index = (tmp_path / "site" / "index.html").read_text()
    assert 'href="quickstart.html"' in index  # README's docs/quickstart.md
    assert (tmp_path / "site" / "source/examples/p4/counter.p4.txt").is_file()
    assert (tmp_path / "site" / "search/search_index.json").is_file()
