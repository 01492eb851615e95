"""The rooms of the C++: which may include which, and that the page names them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.packages import PAGE, tables
from tests.lines import ROOT

NATIVE = ROOT / "native"
# What each room may include, besides itself and `common`. Bindings (bind*.cpp) may include all.
BELOW = {
    "common": set[str](),
    "congestion": set(),
    "host/recovery": {"congestion"},
    "host/core": {"congestion", "host/recovery"},
    "host/endpoint": {"host/core", "switch"},
    "host/channel": {"host/core", "host/endpoint", "switch"},
    "host/engine": {"congestion", "host/recovery", "host/core"},
    "host/transport": {"congestion", "host/core", "host/channel", "host/engine"},
    "embed": {"congestion", "host/recovery", "host/channel"},
    "infer": {"congestion", "host/recovery", "host/channel", "host/engine"},
    "switch": set(),
    "sim": {"congestion", "host/core", "host/endpoint", "host/engine", "switch"},
    "sim/flows": {"sim", "switch"},
    "testing": {
        *("congestion", "host/recovery", "host/core", "host/endpoint", "host/channel", "switch"),
    },
}
SOURCES = sorted(
    path for path in NATIVE.rglob("*.[ch]pp") if not path.name.startswith(("bind", "module"))
)
_INCLUDE = re.compile(r'^#include "(.+)/[^/]+"', re.MULTILINE)


def trespasses(room: str, text: str) -> set[str]:
    return set(_INCLUDE.findall(text)) - BELOW[room] - {room, "common"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(NATIVE)))
def test_a_room_knows_those_below_it(path: Path) -> None:
    room = str(path.parent.relative_to(NATIVE))
    assert room in BELOW
    assert trespasses(room, path.read_text()) == set()


def test_a_trespass_is_found() -> None:
    assert trespasses("congestion", '#include "host/core/lane.hpp"\n') == {"host/core"}
    assert trespasses("host/recovery", '#include "common/clock.hpp"\n') == set()


def test_the_page_has_their_layers() -> None:
    layers = tables(PAGE.read_text())["native"]
    assert layers.keys() == BELOW.keys()
    assert all(layers[below] < layers[room] for room in BELOW for below in BELOW[room])
