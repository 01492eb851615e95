"""Names in PromQL: metrics, and labels by where they stand. Not a parser of its grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_RANGE = re.compile(r"\[[^\]]*\]")
_GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")
_MATCHER = re.compile(r'^\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*""\s*$')
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_WORDS = {
    "sum", "min", "max", "avg", "count", "topk", "rate", "irate", "increase", "delta", "absent",
    "clamp_min", "or", "and", "unless", "bool", "offset", "time", "histogram_quantile",
}  # fmt: skip


class PromqlError(ValueError):
    """A query that is malformed as far as this looks."""


@dataclass(frozen=True)
class Names:
    """What a query mentions."""

    selectors: list[tuple[str, frozenset[str]]]
    """Each metric with the labels it is filtered by."""
    grouping: frozenset[str]
    """Labels that it aggregates by or joins on."""


def names(query: str) -> Names:
    """Raises :class:`PromqlError`."""
    text = _STRING.sub('""', query)
    _balance(text)
    text = _RANGE.sub(" ", text)
    grouping: set[str] = set()
    for _, labels in _GROUPING.findall(text):
        grouping |= {label.strip() for label in labels.split(",") if label.strip()}
    text = _GROUPING.sub(" ", text)
    selectors = []
    for match in _NAME.finditer(_MATCHERS.sub(_blank, text)):
        name = match.group()
        rest = text[match.end() :].lstrip()
        if rest.startswith("("):
            if name not in _WORDS:
                raise PromqlError(f"{query}: {name} is no function that this knows")
        elif name not in _WORDS:
            selectors.append((name, _filters(query, rest)))
    if not selectors:
        raise PromqlError(f"{query}: no metric")
    return Names(selectors, frozenset(grouping))


def _filters(query: str, rest: str) -> frozenset[str]:
    matchers = _MATCHERS.match(rest)
    if matchers is None:
        return frozenset()
    labels = set()
    for part in matchers.group(1).split(","):
        matcher = _MATCHER.match(part)
        if matcher is None:
            raise PromqlError(f"{query}: {part!r} is no matcher")
        labels.add(matcher.group(1))
    return frozenset(labels)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _balance(text: str) -> None:
    closing = {"(": ")", "[": "]", "{": "}"}
    open_now: list[str] = []
    for letter in text:
        if letter in closing:
            open_now.append(closing[letter])
        elif letter in closing.values() and (not open_now or open_now.pop() != letter):
            raise PromqlError(f"{text}: unbalanced {letter}")
    if open_now:
        raise PromqlError(f"{text}: {open_now[-1]} is missing")
