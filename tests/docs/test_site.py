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

from benchmarks.pages import FULL
from tests.docs.page import blocks, links
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
    assert set(found) == there | set(ABOVE.values()) | set(FULL.values())
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


def test_the_readme_leads_to_every_page() -> None:
    """By a link, or by one of a page that it links."""
    docs = (ROOT / "docs").resolve()
    first = {(ROOT / name).resolve() for name in links(ROOT / "README.md")}
    first = {path for path in first if path.suffix == ".md" and path.is_file()}
    second = {
        (page.parent / name.partition("#")[0]).resolve() for page in first for name in links(page)
    }
    assert set(docs.rglob("*.md")) - first - second == set()
    assert set(docs.glob("*.md")) - first == set()


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert CONFIG["theme"]["font"] is False
    assert [list(plugin) for plugin in CONFIG["plugins"]] == [["search"]]  # others ask a CDN
    assert CONFIG["extra_css"] == ["site.css"]
    assert not re.search(r"url\(|@import", (ROOT / "docs" / "site.css").read_text())
    assert "extra_javascript" not in CONFIG


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    if importlib.util.find_spec("material") is None:
        pytest.skip("make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return folder


def test_a_page_brings_all_it_needs(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.findall(r'<(?:script|img)[^>]*src="(?:https?:)?//', text), page
        assert not re.findall(r'<link[^>]*stylesheet[^>]*href="(?:https?:)?//', text), page
        assert "<!-- " not in re.sub(r"<(pre|code).*?</\1>", "", text, flags=re.DOTALL), page
    index = (site / "index.html").read_text()
    assert 'href="quickstart.html"' in index  # README's docs/quickstart.md
    assert re.search(r"md-sidebar--primary[^>]*hidden", index)  # it would say Home, and no more
    assert 'href="assets/' in index
    assert 'href="site.css"' in index
    assert (site / "source/examples/p4/counter.p4.txt").is_file()
    assert (site / "search/search_index.json").is_file()


def test_results_are_on_pages_of_their_own_with_their_plots(site: Path) -> None:
    """In git a link to them leads to the folder of the rows."""
    for name in ("windows", "routing", "benchmarks"):
        text = (site / "results" / f"{name}.html").read_text()
        plots = re.findall(r'src="([\w-]+\.svg)"', text)
        assert plots
        assert all((site / "results" / plot).read_text().startswith("<?xml") for plot in plots)
        assert f'href="results/{name}.html"' in (site / f"{name}.html").read_text()


def test_plots_are_made_and_not_kept() -> None:
    """In git there are below 100 KB."""
    kept = list((ROOT / "docs").rglob("*.svg"))
    assert sum(path.stat().st_size for path in kept) < 100_000


def test_what_is_copied_of_a_console_block_is_its_commands(site: Path) -> None:
    hidden = re.search(r"([^{}]*)\{\s*display: none;\s*\}", (site / "site.css").read_text())
    assert hidden is not None
    assert all(f"[data-md-copying] .{part}" in hidden[1] for part in ("gp", "go"))
    (bundle,) = (site / "assets" / "javascripts").glob("bundle.*.js")
    assert "data-md-copying" in bundle.read_text()  # what the theme sets while it copies
    assert '<span class="gp">$ </span>' in (site / "index.html").read_text()


def test_lists_and_code_are_whole(site: Path) -> None:
    """Markdown that GitHub reads as a list or a block, and mkdocs as a paragraph, shows here."""
    above = {page: name for name, page in ABOVE.items()}
    for uri in pages(CONFIG["nav"]):
        text = (site / uri).with_suffix(".html").read_text()
        article = text[text.index("<article") : text.index("</article>")]
        source = ROOT / above[uri] if uri in above else ROOT / "docs" / uri
        assert article.count("<pre") == (len(blocks(source)) if source.exists() else 0), uri
        prose = re.sub(r"<pre.*?</pre>", "", article, flags=re.DOTALL)
        assert "<ol start" not in prose, f"{uri}: something ends its list"
        for paragraph in re.findall(r"<p>(.*?)</p>", prose, re.DOTALL):
            assert not re.search(r"^\s*(?:[-*]|\d+\.) ", paragraph, re.MULTILINE), uri
            assert "](" not in re.sub(r"<code>.*?</code>", "", paragraph), uri
            assert "`" not in paragraph, uri


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("stop (SIGHUP), or", "SIGHUP"),
        ("and jobs.lease_s, which", "lease_s"),
        ("with `INA_LOG=info`:", "INA_LOG"),
        ("ina job list|show|watch", "watch"),
        ("quotas, tokens", "quotas"),
    ],
)
def test_a_search_finds_words_without_their_punctuation(text: str, found: str) -> None:
    assert found in re.split(CONFIG["plugins"][0]["search"]["separator"], text)
