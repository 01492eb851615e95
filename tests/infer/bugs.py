"""Bugs that are put into the cores of inference, to see that runs in virtual time find them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lines import ROOT
from tests.sim.bug import Bug

_STAGES = "native/infer/stages.cpp"
_ENTRY = "native/infer/entry.cpp"
_CLIENT = "native/infer/client.cpp"
_MESSAGE = "native/infer/message.hpp"
TIME_S = 1200
MOST_SEEDS = 1000

BUGS = (
    Bug(
        "damage is not seen",
        "native/infer/outbox.hpp",
        " || !is_sealed(packet, bytes, kCrcOffset)",
        "",
    ),
    Bug(
        "a packet that comes twice counts for two",
        _MESSAGE,
        "        if ((word & bit) != 0) return false;\n",
        "",
    ),
    Bug(
        "a part is put where another one goes",
        _MESSAGE,
        "copy(row * stride + (part.low - whole.low) + column, done, now);",
        "copy(row * stride + column, done, now);",
    ),
    Bug(
        "a new attempt ends at the first node",
        _STAGES,
        "    if (header.attempt > block->attempt) replay(header.seq, header.attempt);\n",
        "",
    ),
    Bug(
        "what is sent again is what the last stage has made",
        _STAGES,
        "        if (block->work[k].state == State::kDone && program_.stages[k].is_mine) {\n",
        "        if (block->work[k].state == State::kDone && program_.stages[k].is_last) {\n",
    ),
    Bug(
        "sums go out in the order in which blocks come",
        _STAGES,
        "        const std::uint64_t seq = next_sum_[k];\n"
        "        Block *const block = block_at(seq);\n",
        "        std::uint64_t seq = base_;\n"
        "        while (seq < base_ + program_.ring &&\n"
        "               (!block_at(seq)->is_used || block_at(seq)->seq != seq ||\n"
        "                block_at(seq)->work[k].state != State::kReady)) ++seq;\n"
        "        Block *const block = block_at(seq);\n",
    ),
    Bug(
        "a place in the ring is used again before all are done",
        _ENTRY,
        "for (; base_ < next_ && lacking(base_) == 0; ++base_) {",
        "for (; base_ < next_ && stages_->is_done(base_); ++base_) {",
    ),
    Bug(
        "progress is taken for that of later blocks",
        _ENTRY,
        "const std::uint64_t bit = seq - header.base;",
        "const std::uint64_t bit = seq - base_;",
    ),
    Bug(
        "silence is never noticed",
        _ENTRY,
        "        if (silence_ns(node, base_, now_ns) > config_.patience_ns) {\n",
        "        if (silence_ns(node, base_, now_ns) > INT64_MAX / 4) {\n",
    ),
    Bug(
        "who asks for a block again gets another one's place",
        _CLIENT,
        "request.out + header.block * std::size_t{config_.rows_out} * config_.columns_out;",
        "request.out + (header.attempt == 0 ? header.block : 0) * std::size_t{config_.rows_out} *"
        " config_.columns_out;",
    ),
    Bug(
        "a late block is never asked for again",
        _CLIENT,
        "        send(&flight, now_ns);\n    }\n    fill_window(now_ns);\n",
        "        flight.deadline_ns = INT64_MAX;\n    }\n    fill_window(now_ns);\n",
    ),
)

_RUN = """\
import sys
sys.path[:] = [{root!r}, {tests!r}, *sys.path, {site!r}]
from tests.infer.world import World, draw
for seed in range({seeds}):
    wrong = World(draw(seed)).run().wrong
    if wrong:
        print(seed, wrong[0])
        break
"""


def run_in(root: Path, seeds: int) -> str:
    """Runs seeds with what is in `root` until one is wrong, and says what; empty: none is."""
    # -S: an editable install's finder would bring in the checkout's own ina.
    site = next(path for path in sys.path if path.endswith("site-packages"))
    script = root / "run_worlds.py"
    script.write_text(_RUN.format(root=str(root), tests=str(ROOT), site=site, seeds=seeds))
    done = subprocess.run(
        [sys.executable, "-S", str(script)],
        capture_output=True, text=True, timeout=TIME_S, cwd=root,
    )  # fmt: skip
    return done.stdout.strip() if done.returncode == 0 else f"crash: {done.stderr.strip()[-300:]}"
