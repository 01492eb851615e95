"""pyproject.toml's lower bounds are true, and constraints.txt keeps to its ranges."""

from __future__ import annotations

import re
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from ina.rpc.generate import ROOT


def ours() -> dict[NormalizedName, Requirement]:
    """The installed ina's requirements, extras included, by name."""
    found = map(Requirement, requires("ina") or ())
    return {canonicalize_name(r.name): r for r in found if canonicalize_name(r.name) != "ina"}


def lower_bound(requirement: Requirement) -> Version:
    bounds = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
    return max(bounds, default=Version("0"))


def test_every_pin_is_within_our_bounds() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    outside = [str(r) for name, r in ours().items()
               if name in pinned and not r.specifier.contains(pinned[name])]  # fmt: skip
    assert outside == []
    assert len(pinned.keys() & ours().keys()) > 15


@pytest.mark.parametrize("name", ["grpcio", "protobuf"])
def test_our_bound_is_not_below_finsys(name: str) -> None:
    theirs = {r.name: r for r in map(Requirement, requires("finsy") or ())}
    assert lower_bound(ours()[canonicalize_name(name)]) >= lower_bound(theirs[name])


def test_our_bounds_suffice_for_the_generated_code() -> None:
    grpc = (ROOT / "ina/rpc/controller_pb2_grpc.py").read_text()
    made_by = re.search(r"GRPC_GENERATED_VERSION = '(.+)'", grpc)
    assert made_by
    assert lower_bound(ours()[canonicalize_name("grpcio")]) >= Version(made_by[1])
    messages = (ROOT / "ina/rpc/controller_pb2.py").read_text()
    runtime = re.search(r"Protobuf Python Version: (\S+)", messages)
    assert runtime
    assert lower_bound(ours()[canonicalize_name("protobuf")]) >= Version(runtime[1])
