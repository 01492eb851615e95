"""The pool program with a bug in it: changed in its P4 source, or, without p4c, in its JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.p4 import compiled, names
from ina.p4.compile import compile_program
from ina.p4.programs import P4_DIR, build_defines


@dataclass(frozen=True)
class Built:
    """A program, as :func:`ina.p4.compiled` gives one."""

    p4info: Path
    bmv2_json: Path


def compile_with(
    source: str,
    before: str,
    after: str,
    values: int,
    folder: Path,
    mode: str = names.DEFAULT_MODE,
) -> Built:
    """Compiles a mode's program with a text of a source changed, which is there once."""
    sources = folder / "p4"
    shutil.copytree(P4_DIR, sources, ignore=shutil.ignore_patterns("compiled", "*.py"))
    path = sources / source
    text = path.read_text()
    assert text.count(before) == 1, f"{source} has changed: write the bug anew"
    path.write_text(text.replace(before, after))
    main = sources / "v1model" / f"{mode}.p4"
    bmv2_json, p4info = compile_program(main, folder, "mutant", build_defines(values), root=folder)
    return Built(p4info, bmv2_json)


@dataclass(frozen=True)
class Mutant:
    """A bug, and the case that must notice it."""

    name: str
    source: str
    before: str
    after: str
    change_json: Callable[[dict[str, Any]], None]
    noticed_by: str

    def compile(self, values: int, folder: Path) -> Built:
        """Compiles the sources with the bug in them."""
        return compile_with(self.source, self.before, self.after, values, folder)

    def patch(self, values: int, folder: Path) -> Built:
        """Puts the bug into the checked-in JSON."""
        good = compiled(values)
        program = json.loads(good.bmv2_json.read_text())
        before = json.dumps(program)
        self.change_json(program)
        assert json.dumps(program) != before, "the JSON has changed: write the bug anew"
        path = folder / "mutant.json"
        path.write_text(json.dumps(program))
        return Built(good.p4info, path)


def action(program: dict[str, Any], name: str) -> dict[str, Any]:
    """The action that is called from the place of this name."""
    return next(each for each in program["actions"] if each["name"].endswith(name))


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON document, outermost first."""
    if isinstance(node, dict):
        yield node
    for child in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from nodes(child)


def stale_takes(program: dict[str, Any]) -> None:
    """Any other sequence number begins a round: newer or older."""
    for node in nodes(action(program, "slots.enter_round")):
        if node.get("op") == "<":
            node["op"] = "!="
            node["right"] = {"type": "hexstr", "value": "0x00"}


def never_complete(program: dict[str, Any]) -> None:
    """What is missing is taken for what is there."""
    for node in nodes(action(program, "contribution.compare_full")):
        if node.get("op") == "^":
            node["op"] = "&"


def least_exponent(program: dict[str, Any]) -> None:
    """The slot keeps the minimum."""
    for node in nodes(action(program, "contribution.next_exponent_join")):
        if node.get("op") == ">":
            node["op"] = "<"


def swap_first_values(program: dict[str, Any]) -> None:
    """The first packet of a round leaves values 0 and 1 in the registers of each other."""
    other = {"v0": "v1", "v1": "v0"}
    for node in nodes(action(program, "accumulate.take_values")):
        if node.get("type") == "field":
            header, name = node["value"]
            if header == "values" and name in other:
                node["value"] = [header, other[name]]


def last_digest(program: dict[str, Any]) -> None:
    """Nothing is added: the slot keeps what the newest packet says."""
    for node in nodes(action(program, "contribution.digest_join")):
        if node.get("op") == "+":
            node["left"] = {"type": "hexstr", "value": "0x0000"}


def last_check(program: dict[str, Any]) -> None:
    """Nothing is added: the slot keeps what the newest packet says."""
    for node in nodes(action(program, "contribution.check_join")):
        if node.get("op") == "+":
            node["left"] = {"type": "hexstr", "value": "0x00000000"}


def swap_exponents(program: dict[str, Any]) -> None:
    """Wherever an action reads or writes one of them, it takes the other."""
    other = {"exponent": "next_exponent", "next_exponent": "exponent"}
    for node in nodes(program["actions"]):
        if node.get("type") == "field":
            header, name = node["value"]
            if header == "ina" and name in other:
                node["value"] = [header, other[name]]


def forget_worker_1(program: dict[str, Any]) -> None:
    """The bitmap is OR-ed with the worker's bit, unless it is that of worker 1."""
    for node in nodes(action(program, "slots.enter_round")):
        if node.get("op") == "|":
            mask = {"type": "hexstr", "value": "0xfffffffd"}
            operation = {"op": "&", "left": node["right"], "right": mask}
            node["right"] = {"type": "expression", "value": operation}
            return


MUTANTS = (
    Mutant(
        "no-tag-check",
        "shared/slots.p4",
        "} else if (NOT_OLDER(hdr.ina.seq, value.seq)) {",
        "} else {",
        stale_takes,
        "takeover/stale-1",
    ),
    Mutant(
        "bitmap-forgets-worker-1",
        "shared/slots.p4",
        "value.bitmap = value.bitmap | meta.worker_bit;",
        "value.bitmap = value.bitmap | (meta.worker_bit & 0xFFFFFFFD);",
        forget_worker_1,
        "completion/order-012",
    ),
    Mutant(
        "never-complete",
        "shared/contribution.p4",
        "meta.missing = meta.bitmap ^ meta.full_bitmap;",
        "meta.missing = meta.bitmap & meta.full_bitmap;",
        never_complete,
        "completion/order-012",
    ),
    Mutant(
        "least-exponent",
        "shared/contribution.p4",
        "if (hdr.ina.next_exponent > value)",
        "if (hdr.ina.next_exponent < value)",
        least_exponent,
        "exponent/maximum-3-200-7",
    ),
    Mutant(
        "last-digest",
        "shared/contribution.p4",
        "value = value + hdr.ina.digest;",
        "value = hdr.ina.digest;",
        last_digest,
        "digest/sum-0x0001-0x0002-0x0004",
    ),
    Mutant(
        "last-check",
        "shared/contribution.p4",
        "value = value + hdr.ina.check;",
        "value = hdr.ina.check;",
        last_check,
        "check/sum-0x00000001-0x00000002-0x00000004",
    ),
    Mutant(
        "values-0-and-1-swapped",
        "shared/accumulate.p4",
        "    apply {\n",
        "    apply {\n"
        "        bit<32> swapped = hdr.values.v0;\n"
        "        hdr.values.v0 = hdr.values.v1;\n"
        "        hdr.values.v1 = swapped;\n",
        swap_first_values,
        "completion/order-012",
    ),
    Mutant(
        "exponents-swapped",
        "v1model/distribute.p4",
        "hdr.ina.contributors = meta.bitmap;",
        "hdr.ina.contributors = meta.bitmap; bit<8> swapped = hdr.ina.exponent; "
        "hdr.ina.exponent = hdr.ina.next_exponent; hdr.ina.next_exponent = swapped;",
        swap_exponents,
        "exponent/maximum-3-200-7",
    ),
)
