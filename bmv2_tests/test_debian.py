"""What Mininet's import leaves behind in a process that also runs other tests."""

from __future__ import annotations

import logging

from bmv2_tests.debian import skip_module_without_mininet

skip_module_without_mininet()


def test_loggers_that_come_after_it_are_pythons_own() -> None:
    import mininet.log  # noqa: F401

    assert type(logging.getLogger("ina.bmv2_tests.after")) is logging.Logger
