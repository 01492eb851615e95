"""Mininet as Debian installs it: for the system's Python, whose packages our environment lacks."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.worlds.processes.namespaces import require_root

PLACES = (Path("/usr/lib/python3/dist-packages"), Path("/usr/local/lib/python3/dist-packages"))
BMV2 = "simple_switch_grpc"


def import_mininet() -> None:
    """Makes ``import mininet`` work, with the system's Mininet and nothing else of its packages.

    Raises ImportError.
    """
    if "mininet" not in sys.modules and importlib.util.find_spec("mininet") is None:
        _import_from_debian()
    # It makes all loggers that come after it its own kind, which drops what is at INFO and prints
    # the rest without ends of lines.
    loggers = logging.getLoggerClass()
    importlib.import_module("mininet.log")
    logging.setLoggerClass(loggers)


def _import_from_debian() -> None:
    for place in PLACES:
        file = place / "mininet" / "__init__.py"
        if file.is_file():
            break
    else:
        raise ImportError("Mininet is not installed: apt-get install mininet")
    spec = importlib.util.spec_from_file_location(
        "mininet", file, submodule_search_locations=[str(file.parent)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mininet"] = module
    spec.loader.exec_module(module)


def why_not() -> str | None:
    """What this machine lacks for Mininet; None: nothing."""
    try:
        require_root()
    except pytest.skip.Exception as skip:
        return str(skip)
    if sys.version_info >= (3, 12) and importlib.util.find_spec("distutils") is None:
        return "Mininet 2.3 needs distutils: pip install setuptools"
    try:
        import_mininet()
    except ImportError as error:
        return str(error)
    missing = [name for name in ("mnexec", "ifconfig") if shutil.which(name) is None]
    if missing:
        return f"Mininet needs {', '.join(missing)}: apt-get install mininet net-tools"
    return None


def skip_module_without_mininet() -> None:
    """Skips the test module that is being imported, saying why."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason, allow_module_level=True)


def why_no_bmv2() -> str | None:
    """What this machine lacks for BMv2 in Mininet; None: nothing."""
    if shutil.which(BMV2) is None:
        return f"{BMV2} is not on PATH: build BMv2 with P4Runtime (docs/mininet.md)"
    if shutil.which("ethtool") is None:
        return "BMv2 needs hosts without offloads: apt-get install ethtool"
    return None


def environ() -> dict[str, str]:
    """The environment of programs in Mininet nodes: ours without the INA_* of whoever tests."""
    kept = ("INA_CC",)
    return {k: v for k, v in os.environ.items() if not k.startswith("INA_") or k in kept}
