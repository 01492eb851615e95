"""Bugs that are put into the cores of embeddings, to see that runs in virtual time find them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lines import ROOT
from tests.sim.bug import Bug

_OWNER = "native/embed/owner.cpp"
_HEADER = "native/embed/owner.hpp"
_CLIENT = "native/embed/client.cpp"
_PACKETS = "native/embed/packets.hpp"
_NODE = "native/embed/node.hpp"
_CACHE = "native/embed/row_cache.hpp"
_HOT = "native/embed/hot_rows.hpp"
TIME_S = 1200
MOST_SEEDS = 2000

BUGS = (
    Bug(
        "a gradient that is sent again is added again",
        _OWNER,
        "Assembly &message = from.messages[header.number];",
        "Assembly &message = from.messages[header.number + ((header.flags & kFlagAgain) << 12)];",
    ),
    Bug(
        "a step is read before the one before has been applied",
        _OWNER,
        "} else if (ahead > 0 || !is_open(header) || !fault_.empty()) {",
        "} else if (ahead > 1 || !is_open(header) || !fault_.empty()) {",
    ),
    Bug(
        "who has no gradients for an owner does not say so",
        _CLIENT,
        "        auto message = message_of(Kind::kGradient, step, 0, nullptr);\n",
        "        if (step_ != step || gradient_numbers_[owner] == 0) continue;\n"
        "        auto message = message_of(Kind::kGradient, step, 0, nullptr);\n",
    ),
    Bug(
        "a step is applied without its last message",
        _HEADER,
        "complete == last + 1",
        "complete >= last",
    ),
    Bug(
        "gradients of the next step are this one's",
        _OWNER,
        "FromHost &from = steps_[ahead][header.sender];",
        "FromHost &from = steps_[0][header.sender];",
    ),
    Bug(
        "parts that have not come are acknowledged",
        _OWNER,
        "acknowledge(header, message.have());",
        "acknowledge(header, all_parts(header.parts));",
    ),
    Bug(
        "gradients of a step that is over are not acknowledged",
        _OWNER,
        "        return acknowledge(header, all_parts(header.parts));\n",
        "        return;\n",
    ),
    Bug("damage is not seen", _PACKETS, "if (!is_sealed(packet, bytes, kCrcOffset) || ", "if ("),
    Bug(
        "weights have no part in gradients",
        _OWNER,
        "                                         bags.weight(next));",
        "                                         1.0F);",
    ),
    Bug(
        "an answer is taken for another part",
        _CLIENT,
        "std::memcpy(answer + offset, payload, bytes);",
        "std::memcpy(answer, payload, bytes);",
    ),
    Bug(
        "a row that is hot no more is what it was before",
        _NODE,
        "                std::copy_n(hot.values(table, i), shard.dim(), shard.row(local));\n",
        "",
    ),
    Bug(
        "rows are read before those that were hot have been set",
        _HEADER,
        "return (header.flags & kFlagState) != 0 || header.step < closed_from_;",
        "return true;",
    ),
    Bug(
        "gradients of hot rows go on into the next step",
        _HOT,
        "            std::fill(own.gradients.begin(), own.gradients.end(), 0.0F);\n",
        "",
    ),
    Bug(
        "a hot row's weight has no part in its gradient",
        _HOT,
        "sum[i] += weight * vector[i];",
        "sum[i] += vector[i];",
    ),
    Bug(
        "the cache keeps rows of another version",
        _CACHE,
        "if (version == version_) return;",
        "if (version != version_) return;",
    ),
    Bug(
        "silence is never noticed",
        _CLIENT,
        "if (now_ns - heard_ns > own_.patience_ns) {",
        "if (false) {",
    ),
)

_RUN = """\
import sys
sys.path[:] = [{root!r}, {tests!r}, *sys.path, {site!r}]
from tests.embed.world import World, draw
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
