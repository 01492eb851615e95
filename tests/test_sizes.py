"""Nothing is too large to be one thing, but for what is excepted by name; see tests/sizes.py."""

from __future__ import annotations

import pytest

from tests import sizes
from tests.sizes import Function

RULES = (
    "class in two files",
    "more than 60 lines",
    "more than 8 parameters",
    "word of the glossary",
)


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    return sizes.found()


@pytest.mark.parametrize("rule", RULES)
def test_nothing_new_is_too_large(rule: str, found: dict[str, set[str]]) -> None:
    """Take it apart, or give it another name. The list of exceptions may only shrink."""
    assert sorted(found[rule] - sizes.exceptions()[rule]) == []


@pytest.mark.parametrize("rule", RULES)
def test_what_is_excepted_is_still_too_large(rule: str, found: dict[str, set[str]]) -> None:
    """``python -m tests.sizes`` takes what is listed here out of the exceptions."""
    assert sorted(sizes.exceptions()[rule] - found[rule]) == []


PYTHON = """
def plain(a, b=1, *rest, c, **more):
    return lambda x: x

class Owner:
    async def method(self, a, /, b):
        def inner():
            pass
"""


def test_functions_of_python_are_measured() -> None:
    assert list(sizes.functions_of("ina/host/a.py", PYTHON)) == [
        Function("ina/host/a.py", "plain", 2, 5),
        Function("ina/host/a.py", "Owner.method", 3, 2),
        Function("ina/host/a.py", "Owner.method.inner", 2, 0),
    ]


NATIVE = r"""
#define TWICE(x) { x; \
    x; }
namespace ina::host {
// void comment() {
enum class Kind : uint8_t { kA, kB };
constexpr int kTable[] = {f(1), 2};
using Made = std::function<void(int)>;

template <typename T>
T largest(T a, std::pair<int, int> b = {1, 2}) {
  for (;;) { if (a) { return "}"; } }
}

struct Lane {
  int value = 3;
  std::array<int, 2> both{1, 2};
  Lane(int a, int b) : value{a}, both{b, 0} { each([&](int x) { use(x); }); }
  bool operator()(const Lane& other) const { return value == other.value; }
  void declared(int) const;
};
}  // namespace ina::host

void Lane::declared(int) const
{
}
Lane::~Lane() = default;
"""


def test_functions_of_cpp_are_measured() -> None:
    assert [
        (one.name, one.lines, one.parameters)
        for one in sizes.functions_of("native/host/a.cpp", NATIVE)
    ] == [("largest", 4, 2), ("Lane", 1, 2), ("operator()", 1, 1), ("Lane::declared", 3, 1)]


def test_a_class_in_two_files_is_found() -> None:
    files = {
        "native/host/a.cpp": "namespace x { void A::run() {} }",
        "native/host/b.cpp": "void A::stop() {}\nvoid B::stop() {}",
        "native/sim/a.cpp": "void B::run() {}",
        "native/host/a.hpp": "struct B { void go() {} };",
    }
    functions = [one for path, text in files.items() for one in sizes.functions_of(path, text)]
    assert sizes.in_two_files(functions) == {"native/host: A"}


def test_a_word_of_two_packages_is_found() -> None:
    page = "| word | meaning |\n| --- | --- |\n| job | a |\n| host node | b |\n"
    words = sizes.glossary_words(page)
    assert words == {"Job", "HostNode"}
    files = {
        "ina/bench/a.py": "class Job: ...\nclass Case: ...",
        "ina/host/a.py": "class Job: ...\nclass HostNode: ...",
        "ina/host/b.py": "class HostNode: ...",
        "ina/sim/a.py": "class Case: ...",
        "tests/a.py": "class HostNode: ...",
    }
    assert sizes.words_twice(files, words) == {"Job: ina/bench", "Job: ina/host"}
