"""One door being fuzzed: the process of libFuzzer, what it says, and what it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.build import BUILD, PROGRAM, ROOT
from fuzz.registry import Door

OUT = ROOT / "out" / "fuzz"
"""Where inputs are kept that broke a promise: a folder a door."""
_running: set[subprocess.Popen[str]] = set()
_GRACE_S = 60.0
"""For what libFuzzer does before and after its time: it reads the corpus first."""
_TIMEOUT_S = 20
"""Of one input."""
_RSS_LIMIT_MB = 4096
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]{2,30}")
_MOST_WORDS = 400
_PULSE = re.compile(r"#(\d+)\s.*cov: (\d+)")
_DONE = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_REASON = re.compile(
    r"error: (broken promise: .*)|(runtime error: .*)|ERROR: (\w+: .*)"
    r"|^([\w.]+(?:Error|BrokenPromise): .*)"
)


@dataclass
class Outcome:
    """What came of a door's time."""

    door: Door
    executions: int = 0
    coverage: int = 0
    """libFuzzer's count of edges that were taken."""
    seconds: float = 0.0
    findings: list[Path] = field(default_factory=list)
    reason: str = ""
    """Why the last finding is one."""
    failure: str = ""
    """Why there was no fuzzing at all."""


def fuzz(door: Door, seconds: int, tell: Callable[[Outcome], None]) -> Outcome:
    """Fuzzes the door for so long, or until something is found. ``tell``: at each sign of life."""
    outcome = Outcome(door)
    kept, grown = OUT / door.name, BUILD / "corpora" / door.name
    kept.mkdir(parents=True, exist_ok=True)
    grown.mkdir(parents=True, exist_ok=True)
    before = set(kept.iterdir())
    flags = [
        f"-max_total_time={seconds}",
        f"-max_len={door.most_bytes}",
        f"-artifact_prefix={kept}/",
        f"-timeout={_TIMEOUT_S}",
        f"-rss_limit_mb={_RSS_LIMIT_MB}",
        *(f"-dict={path}" for path in _dictionary(door)),
        "-print_final_stats=1",
        "-use_value_profile=1",
        str(grown),
        str(door.corpus),
    ]
    last: list[str] = []
    with _start(door, flags) as process:
        assert process.stdout is not None
        _running.add(process)
        try:
            for line in process.stdout:
                last = [*last[-20:], line]
                _read(outcome, line)
                tell(outcome)
            process.wait(seconds + _GRACE_S)
        finally:
            process.kill()
            _running.discard(process)
    outcome.findings = sorted(set(kept.iterdir()) - before)
    if process.returncode and not outcome.findings:
        said = [line.strip() for line in last if line.strip()]
        outcome.failure = said[-1] if said else f"ended with {process.returncode}"
    return outcome


def stop() -> None:
    """Ends all that run; each :func:`fuzz` then returns."""
    for process in list(_running):
        process.kill()


def _start(door: Door, flags: list[str]) -> subprocess.Popen[str]:
    if door.is_native:
        command = [str(PROGRAM), *flags]
    else:
        command = [sys.executable, "-m", "fuzz.python_target", door.name, *flags]
    environment = {
        **os.environ,
        "INA_DOOR": door.name,
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "ASAN_OPTIONS": "quarantine_size_mb=16",
    }
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,  # Atheris tells of exceptions there
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )


def _read(outcome: Outcome, line: str) -> None:
    if pulse := _PULSE.search(line):
        outcome.executions, outcome.coverage = int(pulse[1]), int(pulse[2])
    elif done := _DONE.search(line):
        outcome.executions = int(done[1])
    elif not outcome.reason and (reason := _REASON.search(line)):
        outcome.reason = next(part for part in reason.groups() if part)[:200]


def _dictionary(door: Door) -> list[Path]:
    """A file of the corpus's words, as libFuzzer reads them; none: it has none."""
    words: set[bytes] = set()
    for path in door.inputs():
        words.update(_WORD.findall(path.read_bytes()))
    if not words:
        return []
    chosen = sorted(words, key=lambda word: (len(word), word))[:_MOST_WORDS]
    path = BUILD / f"{door.name}.dict"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'"{word.decode()}"\n' for word in chosen))
    return [path]
