"""What a soak has done and seen, as a table and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tests.soak.job import End
from tests.worlds.fakes.forwarder import Counts


@dataclass
class Report:
    """Counts of one run; it is right if :attr:`wrong` is empty."""

    seed: int
    seconds: float = 0.0
    jobs: int = 0
    steps: int = 0
    """Of all jobs; each on four ranks."""
    checked: Counter[str] = field(default_factory=Counter)
    """Sums compared with NumPy's, each on each rank, by type and operation."""
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    """Ends of ranks by error and its line, with N for its numbers."""
    did_not_start: Counter[str] = field(default_factory=Counter)
    """Lines of services that ended as they started, as one whose switch is stopped."""
    forwarder: Counts = field(default_factory=Counts)
    wrong: list[str] = field(default_factory=list)
    """Whatever must not be, a line each."""

    def add_end(self, end: End) -> None:
        self.ends[f"{end.name}: {_without_numbers(end.line)}"] += 1

    def to_json(self) -> dict[str, Any]:
        """For ``--json``; adds what the table adds up."""
        plain = {  # asdict() would count a Counter's pairs
            field.name: dict(value) if isinstance(value, Counter) else value
            for field in fields(self)
            for value in [getattr(self, field.name)]
        }
        more = {"sums_checked": self.checked.total(), "ok": not self.wrong}
        return {**plain, "forwarder": asdict(self.forwarder), **more}

    def table(self) -> Iterator[str]:
        """Lines for people."""
        rows: list[tuple[str, object]] = [
            ("seed", self.seed),
            ("seconds", round(self.seconds)),
            ("jobs started", self.jobs),
            ("steps done by all ranks", self.steps),
            ("sums checked", self.checked.total()),
            *((f"  {name}", count) for name, count in sorted(self.checked.items())),
            ("faults", self.faults.total()),
            *((f"  {name}", count) for name, count in sorted(self.faults.items())),
            ("packets at the forwarder", self.forwarder.came),
            ("  lost", self.forwarder.lost),
            ("  copied", self.forwarder.copied),
            ("  overtaken", self.forwarder.overtaken),
            ("  kept back, up to 1 s", self.forwarder.kept),
            ("ends of ranks", self.ends.total()),
        ]
        width = max(len(name) for name, _ in rows)
        yield from (f"{name:{width}}  {value:>9}" for name, value in rows)
        yield from (f"{count:>5}  {line}" for line, count in self.ends.most_common())
        if self.did_not_start:
            yield "starts of a service that failed"
            yield from (f"{count:>5}  {line}" for line, count in self.did_not_start.most_common())
        yield from (f"wrong: {what}" for what in self.wrong)
        yield "ok: no wrong sum, every end explained, nothing left" if not self.wrong else "FAILED"


def _without_numbers(line: str) -> str:
    """Alike for ends that are."""
    return re.sub(r"\d+(\.\d+)*", "N", line.strip().partition("\n")[0])[:160]
