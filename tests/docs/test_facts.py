"""Facts that pages state and that the code knows: a page that is out of date fails here."""

from __future__ import annotations

import ast
import re

from ina.protocol.spec import VALUES_PER_PACKET_BUILDS
from ina.testing.cases import all_cases
from tests.docs.runner import ROOT

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
        if "codegen" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                settings |= set(re.findall(r"^INA_[A-Z0-9_]+$", node.value))
    text = "\n".join(page.read_text() for page in PAGES)
    assert "INA_CONTROLLER" in settings
    missing = {name for name in settings - NO_SETTINGS if not re.search(rf"\b{name}\b", text)}
    assert missing == set()


def test_every_package_is_in_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.parent.name for path in (ROOT / "ina").glob("*/__init__.py")}
    packages |= {path.stem for path in (ROOT / "ina").glob("[a-z]*.py")}
    assert {name for name in packages if f"`ina.{name}`" not in page} == set()
