"""One of the Python doors under Atheris: ``python -m fuzz.python_target DOOR [libFuzzer's flags]``.

Atheris is libFuzzer with the coverage of Python's bytecode; ``make fuzz-parsers`` installs it.
"""

from __future__ import annotations

import importlib
import logging
import random
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    atheris: Any
    from fuzz.mutations import Mutate
else:
    import atheris

_INSTRUMENTED = ["ina", "tomllib", "json"]
_EDITABLE_FINDER = "ScikitBuildRedirectingFinder"
_OWN_MUTATIONS = 0.7
"""Of all; the others are libFuzzer's."""


def mutation_of(name: str) -> Mutate | None:
    """What keeps the form of the door's inputs."""
    from fuzz import mutations

    match name:
        case "p4runtime":
            from fuzz.doors import p4runtime

            types = list(p4runtime.REQUESTS.values())
            return mutations.of_records(types, ["role", "forward"])
        case "controller":
            from fuzz.doors import controller

            names = ["j", "j1", "switch", "10.0.0.1", "127.0.0.1"]
            return mutations.of_records(controller.REQUESTS, names)
        case "bmv2_json" | "network_json":
            return mutations.json_tree
    return None


def import_plainly() -> None:
    """From now on ina's modules come from their files.

    An editable install has a finder of its own, and Atheris cannot see into what that imports. The
    extension, which is elsewhere, is imported by it before.
    """
    importlib.import_module("ina._native")
    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != _EDITABLE_FINDER]


def main() -> None:
    """Never returns: libFuzzer ends the process."""
    name = sys.argv[1]
    logging.disable(logging.CRITICAL)
    import_plainly()
    # All of ina is imported here, for only so it is instrumented.
    with atheris.instrument_imports(include=_INSTRUMENTED):
        from fuzz.registry import DOORS, enter_of

        enter = enter_of(DOORS[name])
    mutation = mutation_of(name)

    def mutate(data: bytes, most_bytes: int, seed: int) -> bytes:
        assert mutation is not None
        if random.Random(seed).random() < _OWN_MUTATIONS:
            return mutation(data, most_bytes, seed)
        return bytes(atheris.Mutate(data, most_bytes))

    options = {"custom_mutator": mutate} if mutation else {}
    atheris.Setup([sys.argv[0], *sys.argv[2:]], enter, **options)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
