"""The doors of the C++ (``native/testing``): bytes from outside go in, promises are checked.

Each is entered by fuzzers (docs/fuzzing.md) and by tests, with the same bytes.
"""

from ina.extension.testing import BrokenPromise, door_names, enter, enter_pipeline

__all__ = ["BrokenPromise", "door_names", "enter", "enter_pipeline"]
