"""Facts that pages state and that the code knows: a page that is out of date fails here."""

from __future__ import annotations

import ast
import re

from ina.protocol.spec import VALUES_PER_PACKET_BUILDS
from ina.testing.cases import all_cases
from tests.docs.runner import ROOT
from tests.sources import nodes

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
# Not for users: names in generated C, a prefix, and a switch of the fault tests.
NO_SETTINGS = {"INA_TLS_", "INA_FAULT"}


def test_the_conformance_page_counts_the_cases() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text()
    for values in VALUES_PER_PACKET_BUILDS:
        assert f"soft: {len(all_cases(values))} cases green" in page
        assert f"| {len(all_cases(values))} green " in page


def test_every_setting_of_the_environment_is_on_a_page() -> None:
    settings = set()
    for path in (ROOT / "ina").rglob("*.py"):
        if {"emit", "emit_c", "emit_ebpf"} & {*path.parts}:  # macros of C
            continue
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                settings |= set(re.findall(r"^INA_[A-Z0-9_]+$", node.value))
    text = "\n".join(page.read_text() for page in PAGES)
    assert "INA_CONTROLLER" in settings
    missing = {name for name in settings - NO_SETTINGS if not re.search(rf"\b{name}\b", text)}
    assert missing == set()


def texts_of_the_code() -> str:
    """All strings of ina's, what is filled in left out."""
    found = []
    for path in (ROOT / "ina").rglob("*.py"):
        for node in nodes(path):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            said = [part.value if isinstance(part, ast.Constant) else "\0" for part in parts]
            found.append("".join(text for text in said if isinstance(text, str)))
    native = (path.read_text() for path in (ROOT / "native").rglob("*.[ch]pp"))
    return "\n".join([*found, *(re.sub(r'"\s*"', "", text) for text in native)])


def test_what_troubleshooting_quotes_is_said() -> None:
    """At most once a quote goes over what is filled in."""
    code = texts_of_the_code()
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    quotes = [
        part.strip(" :,")
        for line in page.splitlines()
        if line.startswith("| ")
        for quote in re.findall(r"`([^`]+)`", line.split("|")[1])
        for part in re.split(r"\.\.\.|HOST:PORT", quote)
    ]
    assert len(quotes) > 30

    def is_said(quote: str) -> bool:
        words = quote.split(" ")
        cuts = ((words[:cut], words[cut:]) for cut in range(len(words)))
        return any(" ".join(one) in code and " ".join(other) in code for one, other in cuts)

    assert [quote for quote in quotes if not is_said(quote)] == []
