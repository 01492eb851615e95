"""Bugs of changes of a running job's mapping, one at a time: what resize_check.py of the design
finds in a model of the protocol, put into the ranks' part and the controller's.

Of that list, ``the new mapping has the old epoch`` is not here: switches and ranks refuse it.
"""

from __future__ import annotations

from tests.sim.bug import Bug

RESIZE_BUGS = (
    Bug(
        "resize rank: the new mapping begins with what was sent last",
        "native/host/engine/course.cpp",
        "layout.first_of_new = next_id_ + submit_times_.since(now_ns - news_ns);",
        "layout.first_of_new = next_id_ - 1;",
    ),
    Bug(
        "resize rank: rank 0 goes on by the old mapping",
        "native/host/engine/engine.cpp",
        "course_.place_from(first, newer);",
        "course_.place_from(first, *layout.mappings.front());",
    ),
    Bug(
        "resize rank: what was sent by the old mapping stays there",
        "native/host/engine/engine.cpp",
        "share->core.withdraw_from(first);",
        "share->core.withdraw_from(first + 1);",
    ),
    Bug(
        "resize rank: each goes over by itself",
        "ina/host/remapping.py",
        "self._transport.cut_over(first, may_send)",
        "self._transport.cut_over(self._transport.reserve(0), may_send)",
    ),
    Bug(
        "resize rank: it is done when it has sent all",
        "ina/host/remapping.py",
        "done = self._is_cut and self._transport.wait_cut(0)",
        "done = self._is_cut",
    ),
    Bug(
        "resize controller: the former slots are free when one rank is done",
        "ina/controller/change.py",
        "if self.stage is Stage.DECIDED and not self.not_done(here):",
        "if self.stage is Stage.DECIDED and self.done:",
    ),
    Bug(
        "resize controller: in place, ranks do not wait for the former entries to go",
        "ina/controller/change.py",
        "return Terms(self.first_operation, self.in_place)",
        "return Terms(self.first_operation, False)",
    ),
    Bug(
        "resize controller: ranks are told before the switches",
        "ina/controller/change.py",
        "return None if rank == 0 and self.not_asked(here) else Terms(0, self.in_place)",
        "return Terms(0, self.in_place)",
        slows=True,
    ),
)
