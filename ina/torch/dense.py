"""Contiguous memory for backends that take no other, whatever the caller's tensors look like.

torch's backends read and write a tensor's memory as if it were contiguous; most do not look.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.distributed import Work
from torch.distributed._functional_collectives import AsyncCollectiveTensor

from ina.torch.copied_work import CopiedWork
from ina.torch.errors import OverlappingTensorError


def waited(tensor: torch.Tensor) -> torch.Tensor:
    """The result of an earlier functional collective once it is there; others as they are."""
    if not isinstance(tensor, AsyncCollectiveTensor):
        return tensor
    there: torch.Tensor = tensor.trigger_wait()  # type: ignore[no-untyped-call]
    return there


class Loan:
    """Contiguous tensors in place of one call's, and the way back for those that it writes."""

    def __init__(self) -> None:
        self._copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._results: list[torch.Tensor] = []

    def read(self, argument: Any) -> Any:
        """``argument``, or a list, with each tensor contiguous; what is no tensor as it is."""
        if isinstance(argument, (list, tuple)):
            return [self.read(one) for one in argument]
        if not isinstance(argument, torch.Tensor):
            return argument
        tensor = waited(argument)
        if tensor.requires_grad:
            tensor = tensor.detach()  # the same memory; some backends write with autograd's eyes on
        return tensor if _is_dense(tensor) else tensor.contiguous()

    def written(self, argument: Any) -> Any:
        """As :meth:`read`; what the call writes gets to the caller's tensors.

        Raises :class:`OverlappingTensorError`.
        """
        if isinstance(argument, (list, tuple)):
            return [self.written(one) for one in argument]
        lent = self.read(argument)
        if isinstance(lent, torch.Tensor):
            tensor = waited(argument)
            self._results.append(tensor)
            if _is_dense(tensor):
                return memory_of(tensor)
            check_writable(tensor)
            self._copies.append((tensor, lent))
        return lent

    def give_back(self, work: Work) -> Work:
        """``work``, or one that ends once the results are where they belong."""
        return CopiedWork(work, self._deliver, self._results) if self._copies else work

    def _deliver(self) -> None:
        for tensor, lent in self._copies:
            with writing(tensor):
                memory_of(tensor).copy_(lent)


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, with a version counter of its own: for writes by another thread.

    A collective writes memory, as far as autograd knows. Whoever counts such a write as a change of
    the tensor (``copy_`` does; in Gloo a thread calls it) does so at any moment of the caller's,
    who then has torch's error "has been modified inplace" for a view that it was just given: a
    functional collective of complex numbers returns one.

    A sparse tensor's result is other memory, which it alone can be given.
    """
    return tensor.data if tensor.layout is torch.strided else tensor


def octets(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory, flat; with a version counter of its own."""
    flat = memory_of(tensor).detach()
    # What holds one element, or none, is contiguous whatever its strides are.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a strided tensor's values are its memory, one behind the other, as they lie there.

    Those of a conjugate are not: torch conjugates as it reads.
    """
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` itself, or a copy that is plain; without gradient."""
    tensor = tensor.detach()
    return tensor if is_plain(tensor) else tensor.clone(memory_format=torch.contiguous_format)


def share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two contiguous tensors have a byte in common."""
    if one.nbytes == 0 or other.nbytes == 0:
        return False
    first, second = one.data_ptr(), other.data_ptr()
    return first < second + other.nbytes and second < first + one.nbytes


def joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Flat, the memory of plain tensors of one type that lie one behind the other; None: not so.

    As the chunks of one tensor do, which a list of parts often is.
    """
    first = tensors[0]
    end = first.data_ptr()
    memory = first.untyped_storage().data_ptr()
    for tensor in tensors:
        if not is_plain(tensor) or tensor.data_ptr() != end:
            return None
        if tensor.untyped_storage().data_ptr() != memory:
            return None
        end += tensor.nbytes
    elems = sum(tensor.numel() for tensor in tensors)
    return memory_of(first).detach().as_strided((elems,), (1,))


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout is not torch.strided or tensor.is_contiguous()


def check_writable(tensor: torch.Tensor) -> None:
    """Raise :class:`OverlappingTensorError` if elements of a strided tensor share memory."""
    if _is_dense(tensor) or not _overlaps(tensor):
        return
    raise OverlappingTensorError(
        f"a tensor of shape {tuple(tensor.shape)} with strides {tensor.stride()} cannot take a"
        " result: several of its elements share memory; pass a clone() of it"
    )


def _overlaps(tensor: torch.Tensor) -> bool:
    steps = sorted(
        (step, n) for step, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1
    )
    if tensor.numel() == 0 or not steps:
        return False
    reach = 0  # of the dimensions with smaller steps
    for step, n in steps:
        if step <= reach:
            break
        reach += step * (n - 1)
    else:
        return False
    if steps[0][0] == 0:
        return True
    places = torch.zeros(1, dtype=torch.int64)
    for step, n in steps:
        places = (places.unsqueeze(1) + step * torch.arange(n)).view(-1)
    return len(set(places.tolist())) < places.numel()


@contextlib.contextmanager
def writing(tensor: torch.Tensor) -> Iterator[None]:
    """Where ``tensor`` may be written in place, whatever thread this is and whoever made it.

    A tensor of inference mode is only writable in it; a mode is a thread's own, and to set it turns
    gradients on or off, with which a leaf is not writable. So they come off last.
    """
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        yield
