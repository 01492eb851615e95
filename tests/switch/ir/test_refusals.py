"""What the soft switch lacks is refused when the program is loaded, by construct and P4 line."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir import load_program

PROGRAMS = Path(__file__).parent.parent / "programs"
REFUSED = PROGRAMS / "refused"


def line_of(name: str, text: str) -> int:
    lines = (REFUSED / f"{name}.p4").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("name", "construct", "text"),
    [
        ("meter", "meters", "meter(4"),
        ("random", "modify_field_rng_uniform", "random("),
        ("selector", "action profiles", "action_profile(16)"),
        ("varbit", "varbit", "hdr.h.x = 1"),
        ("wide", "136 bits", "+ 1"),
        ("union", "header unions ('either')", "hdr.either.other.x = 1"),
        ("index", "a table key in a stack's element chosen at run time", "table chosen"),
    ],
)
def test_unsupported_constructs_are_named(name: str, construct: str, text: str) -> None:
    with pytest.raises(UnsupportedProgramError) as caught:
        load_program(REFUSED / f"{name}.json")
    message = str(caught.value)
    assert construct in message
    assert message.endswith(f"{name}.p4:{line_of(name, text)}")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["varbit", "union"])
def test_what_is_only_parsed_and_sent_is_placed_at_the_deparser(name: str) -> None:
    program = json.loads((REFUSED / f"{name}.json").read_text())
    for action in program["actions"]:
        action["primitives"] = []
    with pytest.raises(UnsupportedProgramError) as caught:
        load_program(json.dumps(program))
    assert str(caught.value).endswith(f"{name}.p4:{line_of(name, 'control Emit')}")


def test_a_type_that_is_only_declared_is_no_reason() -> None:
    program = json.loads((PROGRAMS / "hashes.json").read_text())
    program["header_types"].append({"name": "v_t", "id": 9, "fields": [["v", "*"]]})
    program["header_union_types"] = [{"name": "u_t", "id": 0, "headers": []}]
    assert load_program(json.dumps(program)).headers


def of_metadata(primitives: list[dict[str, object]]) -> str:
    """Hashes, with metadata of a varbit, a wide field and one more, and a copy of it."""
    program = json.loads((PROGRAMS / "hashes.json").read_text())
    fields = [["wide", 200, False], ["varied", "*"], ["x", 8, False]]
    program["header_types"].append({"name": "m_t", "id": 90, "fields": fields})
    program["headers"] += [
        {"name": name, "id": number, "header_type": "m_t", "metadata": True}
        for number, name in enumerate(("m", "copy_of_m"), 90)
    ]
    program["actions"][0]["primitives"] += primitives
    return json.dumps(program)


def use(op: str, *operands: tuple[str, object]) -> dict[str, object]:
    parameters = [{"type": kind, "value": value} for kind, value in operands]
    return {"op": op, "parameters": parameters, "source_info": {"filename": "m.p4", "line": 77}}


def test_a_field_of_metadata_that_nothing_uses_is_no_reason() -> None:
    """p4c's issue1291: a varbit in the user's metadata."""
    program = load_program(of_metadata([use("assign", ("field", ["m", "x"]), ("hexstr", "0x01"))]))
    assert [field.name for field in program.headers["m"].type.fields] == ["x"]


@pytest.mark.parametrize(
    ("primitive", "construct"),
    [
        (use("assign", ("field", ["m", "wide"]), ("hexstr", "0x01")), "'wide' of 200 bits"),
        (use("assign_VL", ("field", ["m", "varied"]), ("field", ["m", "varied"])), "'varied'"),
        (use("assign_header", ("header", "copy_of_m"), ("header", "m")), "'wide' of 200 bits"),
    ],
)
def test_one_that_is_used_is_placed(primitive: dict[str, object], construct: str) -> None:
    with pytest.raises(UnsupportedProgramError, match=rf"{construct}.* at m\.p4:77$"):
        load_program(of_metadata([primitive]))


def test_a_header_of_a_unions_type_is_a_union() -> None:
    """p4c 1.2.5 makes such a one of a union that only a sub-parser has."""
    program = json.loads((PROGRAMS / "hashes.json").read_text())
    program["header_union_types"] = [{"name": "u_t", "id": 0, "headers": [["one", "h_t"]]}]
    program["headers"].append({"name": "u", "id": 9, "header_type": "u_t", "metadata": True})
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "u.one"}]}
    program["parsers"][0]["parse_states"][0]["parser_ops"].append(extract)
    with pytest.raises(UnsupportedProgramError, match=r"header unions .* parser state 'start'$"):
        load_program(json.dumps(program))


def test_where_p4c_gives_no_line_the_parser_state_is_named() -> None:
    program = json.loads((PROGRAMS / "hashes.json").read_text())
    program["parsers"][0]["parse_states"][0]["parser_ops"] = [{"op": "odd", "parameters": []}]
    with pytest.raises(UnsupportedProgramError, match=r"'odd' at parser state 'start'$"):
        load_program(json.dumps(program))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"pipelines": [], "header_types": []}',
        '{"pipelines": 3}',
    ],
    ids=str.__len__,
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(InvalidProgramError):
        load_program(text.encode())


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProgramError, match="No such file"):
        load_program(tmp_path / "none.json")


def test_every_key_of_the_json_may_be_missing() -> None:
    """A damaged program is a typed error or still a program, never another exception."""
    whole = json.loads((PROGRAMS / "tables.json").read_text())
    for key in list(whole):
        damaged = {name: value for name, value in whole.items() if name != key}
        with contextlib.suppress(InvalidProgramError, UnsupportedProgramError):
            load_program(json.dumps(damaged))


def test_a_number_that_is_none_is_refused() -> None:
    program = json.loads((PROGRAMS / "tables.json").read_text())
    program["errors"] = [["PacketTooShort", "x"]]
    with pytest.raises(InvalidProgramError):
        load_program(json.dumps(program))


def test_unknown_names_are_refused() -> None:
    text = (PROGRAMS / "registers.json").read_text()
    for name in ("MyIngress.rounds", "MyIngress.ops", "values"):
        damaged = text.replace(f'"{name}"', '"gone"', 1)
        with pytest.raises(InvalidProgramError):
            load_program(damaged)


def test_a_table_with_an_empty_list_of_entries_is_const() -> None:
    program = json.loads((PROGRAMS / "tables.json").read_text())
    [node] = [t for t in program["pipelines"][0]["tables"] if t["name"] == "MyIngress.const_t"]
    node["entries"] = []
    table = load_program(json.dumps(program)).table("MyIngress.const_t")
    assert table is not None
    assert table.is_const


def test_hit_and_miss_of_a_table_that_runs_in_place() -> None:
    """`if (keyless.apply().hit)`: it never hits, and what follows a miss runs."""
    text = (PROGRAMS.parent / "p4runtime" / "programs" / "types.json").read_text()
    program = json.loads(text)
    [node] = [t for t in program["pipelines"][0]["tables"] if t["name"] == "MyIngress.keyless"]
    [after] = node["next_tables"].values()
    node["next_tables"] = {"__HIT__": None, "__MISS__": after}
    assert load_program(json.dumps(program)).ingress == load_program(text).ingress


def test_metadata_of_another_type_is_not_copied() -> None:
    program = json.loads(of_metadata([use("assign_header", ("header", "m"), ("header", "other"))]))
    wide, narrow = program["header_types"][-1], {"name": "n_t", "id": 91}
    wide["fields"], narrow["fields"] = [["x", 16, False]], [["x", 8, False]]
    program["header_types"].append(narrow)
    other = {"name": "other", "id": 92, "header_type": "n_t", "metadata": True}
    program["headers"].append(other)
    with pytest.raises(InvalidProgramError, match="'other' is copied to 'm', which is not of its"):
        load_program(json.dumps(program))


def test_metadata_is_neither_extracted_nor_sent() -> None:
    program = json.loads((PROGRAMS / "hashes.json").read_text())
    [state] = program["parsers"][0]["parse_states"]
    name = state["parser_ops"][0]["parameters"][0]["value"]
    [header] = [header for header in program["headers"] if header["name"] == name]
    header["metadata"] = True
    with pytest.raises(InvalidProgramError, match=f"'{name}' is metadata, no header"):
        load_program(json.dumps(program))
    state["parser_ops"] = []
    with pytest.raises(InvalidProgramError, match=f"'{name}' is metadata, no header"):
        load_program(json.dumps(program))


def test_an_entry_has_the_arguments_of_its_action() -> None:
    program = json.loads((PROGRAMS / "tables.json").read_text())
    [node] = [t for t in program["pipelines"][0]["tables"] if t["name"] == "MyIngress.const_t"]
    entry = node["entries"][0]["action_entry"]
    entry["action_data"].append("0x01")
    wanted = rf"a constant entry has {len(entry['action_data'])} arguments, not"
    with pytest.raises(InvalidProgramError, match=wanted):
        load_program(json.dumps(program))
