"""The controller's page shows every key of the file, with its default."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ina.controller.config import (
    Config,
    HostConfig,
    JobRule,
    LinkConfig,
    TenantConfig,
    load_config,
)
from ina.controller.config.fabric import AggregatorConfig
from ina.controller.config.tofino import MirrorConfig, PipesConfig, PortConfig
from tests.docs.page import blocks
from tests.docs.runner import ROOT

PAGE = ROOT / "docs" / "controller.md"
TOFINO_PAGE = ROOT / "docs" / "tofino.md"
(FILE,) = (b.text for b in blocks(PAGE) if b.notes.get("file") == "controller.toml")
(TOFINO_FILE,) = (b.text for b in blocks(TOFINO_PAGE) if b.notes.get("file") == "tofino.toml")
FABRIC_PAGE = ROOT / "docs" / "fabric.md"
(FABRIC_FILE,) = (b.text for b in blocks(FABRIC_PAGE) if b.notes.get("file") == "racks.toml")
SHARED_PAGE = ROOT / "docs" / "shared_slots.md"
(SHARED_FILE,) = (b.text for b in blocks(SHARED_PAGE) if b.notes.get("file") == "shared.toml")
KEY = re.compile(r"^(\w+) = ", re.MULTILINE)


def tables(text: str = FILE) -> dict[str, set[str]]:
    """Keys by table; those above the first table are in "". ``tenants.default``, ``host``."""
    parts = re.split(r"^\[+([\w.]+)\]+", text, flags=re.MULTILINE)
    found = {"": set(KEY.findall(parts[0]))}
    for name, keys in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(name, set()).update(KEY.findall(keys))
    return found


def test_every_key_is_shown() -> None:
    wanted: dict[str, Any] = Config().document()
    keys = {name: set(value) if isinstance(value, dict) else None for name, value in wanted.items()}
    keys["tenants.default"] = set(TenantConfig.__struct_fields__) - {"congestion"}
    keys["tenants.default.congestion"] = {"algorithm"}
    keys["host"] = set(HostConfig.__struct_fields__)
    keys["job"] = set(JobRule.__struct_fields__)
    del keys["tenants"], keys["switch_tls"]  # the latter is said to be like tls
    del keys["link"], keys["aggregator"]  # they are on pages of their own
    assert keys["switch"] is not None
    keys["switch"] -= {"pipes", "port", "mirror"}  # tables; the last two are a Tofino's
    keys["switch.pipes"] = set(PipesConfig.__struct_fields__)
    assert "[switch_tls]" in FILE
    assert tables() == {
        "": {name for name, of_table in keys.items() if of_table is None},
        **{name: of_table for name, of_table in keys.items() if of_table is not None},
    }


def test_every_key_of_a_link_and_a_host_is_on_the_fabrics_page(tmp_path: Path) -> None:
    shown = tables(FABRIC_FILE)
    assert shown["link"] == set(LinkConfig.__struct_fields__)
    assert shown["host"] == set(HostConfig.__struct_fields__)
    file = tmp_path / "racks.toml"
    file.write_text(FABRIC_FILE)
    assert load_config(file).is_fabric


def test_every_key_of_an_aggregator_is_on_the_page_about_it(tmp_path: Path) -> None:
    assert tables(SHARED_FILE)["aggregator"] == set(AggregatorConfig.__struct_fields__)
    file = tmp_path / "shared.toml"
    file.write_text(SHARED_FILE)
    (listed,) = load_config(file).aggregators
    needed = {key: getattr(listed, key) for key in ("name", "grpc_addr", "data_host")}
    assert listed == AggregatorConfig(**needed, port=4)  # every other value is the default


def test_every_value_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "controller.toml"
    file.write_text(FILE.partition("[[host]]")[0])  # those are examples
    assert load_config(file) == Config(tenants={"default": TenantConfig()})


def test_every_key_of_a_tofino_is_shown() -> None:
    shown = tables(TOFINO_FILE)
    assert shown["switch.port"] == set(PortConfig.__struct_fields__)
    assert shown["switch.mirror"] == set(MirrorConfig.__struct_fields__)
    assert shown["switch.pipes"] == set(PipesConfig.__struct_fields__)
