"""A p4c for machines without one: says what a test wants, and writes an empty program."""

from __future__ import annotations

from pathlib import Path

import pytest

_SCRIPT = """#!/bin/sh
cat >&2 <<'END'
{said}
END
for last; do :; done
while [ $# -gt 0 ]; do
  case $1 in -o) json=$2 ;; --p4runtime-files) info=$2 ;; esac
  shift
done
[ {code} = 0 ] || exit {code}
echo '{{"program": "'"$last"'", "__meta__": {{"version": [2, 23]}}}}' > "$json"
: > "$info"
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str = "", code: int = 0) -> None:
    """Let ``INA_P4C`` be a script that writes ``said`` to stderr and exits with ``code``."""
    p4c = folder / "fake-p4c"
    p4c.write_text(_SCRIPT.format(said=said, code=code))
    p4c.chmod(0o755)
    monkeypatch.setenv("INA_P4C", str(p4c))
