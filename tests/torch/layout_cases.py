"""What each of two workers does in test_layouts.py: every collective, layout and dtype."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from itertools import count

import torch
import torch.distributed as dist

from ina.torch import stats
from ina.torch.errors import OverlappingTensorError
from tests.torch.collective_forms import FORMS, WAYS, Call, Form
from tests.torch.functional_cases import world
from tests.torch.layouts import LAYOUTS, Layout, contiguous

DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.float64, torch.complex64),
    *(torch.int64, torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex128),
    *(torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2),
)
MOVES = re.compile("broadcast|all_?gather")
GLOO_REFUSES = re.compile("Invalid scalar type|ProcessGroupGloo::allgather\\w*: invalid .*size")
"""Some types, and tensors without a dimension, which those forms take over the network."""
LONG = bool(os.environ.get("INA_LONG_TESTS"))

Answer = list[bytes] | Exception


def all_of_them(rank: int, workers: int) -> tuple[list[str], Counter[str]]:
    """What went wrong, and how often each outcome was seen.

    Every form and layout with an eighth of the dtypes, in turn, so that each form meets each dtype;
    with all where it may take long.
    """
    matrix, share = _Matrix(rank), 1 if LONG else 8
    every = [(form, layout) for form in FORMS for layout in LAYOUTS]
    for index, (form, layout) in enumerate(every):
        for dtype in DTYPES[index % share :: share]:
            if layout.takes(dtype):
                matrix.try_out(form, layout, dtype)
    return matrix.wrong, matrix.seen


def with_a_dead_peer(rank: int, workers: int) -> tuple[list[str], Counter[str]]:
    """Rank 1 dies; whatever rank 0 calls then must not look as if it had worked.

    With one of two dtypes in turn; with both where it may take long.
    """
    matrix, turn = _Matrix(rank), count()
    dist.barrier()
    dist.barrier(matrix.gloo)
    if rank == 1:
        os._exit(0)
    for form in FORMS:
        if form.name == "recv from anyone":
            continue  # which Gloo ends by its timeout alone
        for layout in LAYOUTS:
            dtypes = (torch.float64, torch.float32)
            if not layout.overlaps:
                for dtype in dtypes if LONG else (dtypes[next(turn) % 2],):
                    matrix.try_alone(form, layout, dtype)
    return matrix.wrong, matrix.seen


def sums_on_a_gpu(rank: int, workers: int) -> tuple[list[str], Counter[str]]:
    """What the network sums of tensors on one GPU, against Gloo's answer for CPU tensors."""
    matrix = _Matrix(rank, "cuda:0")
    for form in FORMS:
        if re.fullmatch(r"(all_reduce|reduce_scatter\w*).* (SUM|AVG)", form.name):
            for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
                for layout in LAYOUTS:
                    if layout.takes(dtype):
                        matrix.try_out(form, layout, dtype)
    matrix.seen["network"] = stats().network_all_reduces + stats().network_reduce_scatters
    return matrix.wrong, matrix.seen


class _Matrix:
    def __init__(self, rank: int, device: str = "cpu") -> None:
        self._rank, self._device = rank, device
        self.gloo = dist.new_group(backend="gloo")
        self._way = count()
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()

    def try_out(self, form: Form, layout: Layout, dtype: torch.dtype) -> None:
        lay = layout.lay
        call = Call(world(), self._rank, dtype, layout.shape, lay, lay, "sync", self._device)
        for way in WAYS if LONG else (WAYS[next(self._way) % len(WAYS)],):
            call = replace(call, way=way)
            if layout.overlaps:
                self._compare(form, layout, replace(call, out=contiguous))
                if not form.reads_only and not (form.root_alone and self._rank == 1):
                    self._refused(form, layout, replace(call, into=contiguous))
            else:
                self._compare(form, layout, call)
            if not layout.overlaps and (LONG or way == "wait"):
                alone = call if self._rank == 1 else replace(call, out=contiguous, into=contiguous)
                self._compare(form, layout, alone, "on rank 1")

    def try_alone(self, form: Form, layout: Layout, dtype: torch.dtype) -> None:
        way = WAYS[next(self._way) % len(WAYS)]
        call = Call(world(), self._rank, dtype, layout.shape, layout.lay, layout.lay, way)
        if not isinstance(self._gloo_answer(form, call), Exception):
            self.seen["takes no peer"] += 1
        elif isinstance(had := _answer(form, call), Exception):
            self.seen["fails"] += 1
        else:
            self._say(form, layout, call, f"{had!r:.150} without a peer")

    def _refused(self, form: Form, layout: Layout, call: Call) -> None:
        answer = _answer(form, call)
        if isinstance(answer, OverlappingTensorError):
            self.seen["overlap refused"] += 1
        elif isinstance(answer, Exception):
            self.seen["refused otherwise"] += 1  # torch looked at the dtype before we were asked
        else:
            self._say(form, layout, call, f"{answer!r:.150} for a tensor that overlaps")

    def _gloo_answer(self, form: Form, call: Call) -> Answer:
        if not call.shape and form.name.startswith("reduce_scatter_tensor"):
            call = replace(call, shape=(1,))  # without a dimension Gloo ends by a signal
        if 0 in call.shape and form.name == "recv from anyone":
            return [b""] if self._rank == 0 else []  # Gloo gives it to who receives next
        plain = replace(call, group=self.gloo, way="sync", device="cpu")
        return _answer(
            form, replace(plain, out=contiguous, into=lambda one: contiguous(call.into(one)))
        )

    def _compare(self, form: Form, layout: Layout, call: Call, where: str = "") -> None:
        wanted, had = self._gloo_answer(form, call), _answer(form, call)
        if form.total is not None:  # which all ranks run, whatever they have had
            mean = self._mean(replace(form, run=form.total), call)
            wanted = wanted if isinstance(had, Exception) else mean
        if isinstance(wanted, Exception) and isinstance(had, Exception):
            self.seen["both refuse"] += 1
        elif MOVES.search(form.name) and GLOO_REFUSES.search(str(wanted)):
            self.seen["moved, which Gloo cannot"] += 1  # test_collectives.py has all bits
        elif form.reads_only and isinstance(had, AssertionError) and "contiguous" in str(had):
            self.seen["torch refuses"] += 1  # 2.11, before we are asked
        elif wanted == had:
            self.seen["equal"] += 1
        else:
            self._say(form, layout, call, f"{where} {had!r:.150} instead of {wanted!r:.100}")

    def _mean(self, total: Form, call: Call) -> Answer:
        """Of the sum in a type that has no roundings."""
        wide = torch.complex128 if call.dtype.is_complex else torch.float64
        answer = self._gloo_answer(total, replace(call, dtype=wide, out=contiguous))
        if isinstance(answer, Exception):
            return answer
        sums = [torch.frombuffer(bytearray(one), dtype=wide) for one in answer if one]
        return [_bytes((one / 2).to(call.dtype)) for one in sums] or answer

    def _say(self, form: Form, layout: Layout, call: Call, what: str) -> None:
        self.seen["wrong"] += 1
        self.wrong.append(f"{form.name}, {call.dtype}, {layout.name}, {call.way}: {what}")
        assert len(self.wrong) < 20, self.wrong  # from here on ranks may wait for each other


def _answer(form: Form, call: Call) -> Answer:
    try:
        had = form.run(call)
    except Exception as error:
        return error
    return [_bytes(one) for one in had]


def _bytes(tensor: torch.Tensor) -> bytes:
    return contiguous(tensor).cpu().view(-1).view(torch.uint8).numpy().tobytes()
