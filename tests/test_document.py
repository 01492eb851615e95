"""What is wrong with a table that somebody wrote: where, which names there are, which was meant."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.cli.job.plan_file import PlanFile, plan_request
from ina.controller.config import Config
from ina.document import DocumentError, convert, did_you_mean
from ina.emulate import toml_file
from ina.sim.scenario import Scenario

FORMS = (Config, Scenario, PlanFile, *(vars(toml_file)[n] for n in ("_File", "_Host", "_Switch")))


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size_bytes: Annotated[int, msgspec.Meta(ge=1)]
    colour: Colour = Colour.RED


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    one: Inner | None = None
    many: list[Inner] = []
    named: dict[str, Inner] = {}
    deep: dict[str, list[Inner]] = {}
    either: str | tuple[Inner, ...] = ""
    kind: Literal["", "pool", "shared"] = ""


GOOD = {"size_bytes": 1}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"nam": 1}, "nam: unknown key; did you mean 'name'?"),
        ({"NAME": 1}, "NAME: unknown key; did you mean 'name'?"),
        ({"zzzz": 1}, "zzzz: unknown key; there are name, one, many, named, deep, either, kind"),
        ({"name": 3}, "name: expected `str`, got `int`"),
        ({"one": {}}, "one.size_bytes: missing"),
        ({"one": {"size_bytes": 0}}, "one.size_bytes: expected `int` >= 1"),
        ({"one": {"sise_bytes": 1}}, "one.sise_bytes: unknown key; did you mean 'size_bytes'?"),
        (
            {"many": [GOOD, {**GOOD, "colour": "grene"}]},
            "many[1].colour: 'grene' is none of red, green; did you mean 'green'?",
        ),
        ({"named": {"a": GOOD, "b.c": {}}}, "named.b.c.size_bytes: missing"),
        (
            {"deep": {"a": [], "b": [GOOD, {**GOOD, "color": "red"}]}},
            "deep.b[1].color: unknown key; did you mean 'colour'?",
        ),
        ({"either": [{**GOOD, "x": 1}]}, "either[0].x: unknown key; there are size_bytes, colour"),
        ({"kind": "share"}, "kind: 'share' is none of pool, shared; did you mean 'shared'?"),
        ([], "expected `object`, got `array`"),
    ],
)
def test_the_key_and_what_is_wrong_with_it(table: Any, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        convert(table, Outer)
    assert str(caught.value) == said
    if said.startswith("expected"):
        return
    with pytest.raises(DocumentError) as caught:
        convert(table, Outer, "file[2]")
    assert str(caught.value) == f"file[2].{said}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["red"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["one", "many", "named", "deep", "colour", "size_bytes", "kind", "a]"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_it_is_it_is_taken_or_refused_in_one_line(table: Any) -> None:
    said = ""
    try:
        convert(table, Outer)
    except DocumentError as error:
        said = str(error)
    assert "$" not in said


def structs(form: Any) -> Iterator[type[msgspec.Struct]]:
    """The form, if it is one, and all that are inside of it."""
    if isinstance(form, type) and issubclass(form, msgspec.Struct):
        yield form
        for field in msgspec.structs.fields(form):
            yield from structs(field.type)
    elif get_origin(form) is not Literal:
        for argument in get_args(form):
            yield from structs(argument)


@pytest.mark.parametrize("form", sorted({it for form in FORMS for it in structs(form)}, key=str))
def test_each_table_that_people_write_knows_its_keys_and_names(form: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(form)
    for field in fields:
        mistyped = field.encode_name + "z"
        with pytest.raises(DocumentError, match=f"{mistyped}: unknown key; did you mean '"):
            convert({**needed(form), mistyped: 1}, form)
        if get_origin(field.type) is Literal:
            names = [str(name) for name in get_args(field.type) if str(name)]
            with pytest.raises(DocumentError) as caught:
                convert({**needed(form), field.encode_name: names[-1] + "z"}, form)
            assert ", ".join(names) in str(caught.value) or "expected" in str(caught.value)


def needed(form: type[msgspec.Struct]) -> dict[str, Any]:
    """What stands for the keys that it cannot do without."""
    fields = [field for field in msgspec.structs.fields(form) if field.required]
    return {field.encode_name: sample(field.type) for field in fields}


def sample(form: Any) -> Any:
    if get_origin(form) is Literal:
        return get_args(form)[0]
    candidates: list[Any] = ["1", 1, {}, [], ["1", "1"]]
    for one in candidates:
        try:
            msgspec.convert(one, form)
        except msgspec.ValidationError:
            continue
        return one
    raise AssertionError(form)


def test_nothing_is_meant_where_nothing_is_close() -> None:
    assert did_you_mean("pol", ["pool", "shared"]) == "; did you mean 'pool'?"
    assert did_you_mean("xyz", ["pool", "shared"]) == ""


def test_the_file_is_named_too(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("worker = 3")
    with pytest.raises(ValueError, match=r"x\.toml: worker: unknown key; did you mean 'workers'\?"):
        plan_request(path, {})
