"""The memory that Gloo sums for a collective: all values that the ranks give, part by part.

A sum of zeros elsewhere moves bytes. So each kind of collective is one or two all-reduces, whose
result each rank has whole, and takes what it wants from.
"""

from __future__ import annotations

import torch

from ina.host.word_sum import Place
from ina.protocol.collective import Collective, CollectiveKind
from ina.torch.dense import memory_of, octets, writing


def pack(
    what: Collective, place: Place, source: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    """``source`` itself where the result comes there; else new memory.

    Both: contiguous.
    """
    match what.kind:
        case CollectiveKind.BARRIER:
            return torch.zeros(1, dtype=torch.int32)
        case CollectiveKind.ALL_GATHER:
            parts = torch.zeros(place.world_size, what.elems, dtype=torch.uint8)
            parts[place.rank] = octets(source)
            return parts
        case CollectiveKind.BROADCAST:
            is_root = what.root == place.rank
            return octets(source).clone() if is_root else torch.zeros_like(octets(target))
    is_in_place = what.kind == CollectiveKind.ALL_REDUCE and source is target
    return source if is_in_place else source.detach().clone()


def unpack(what: Collective, place: Place, packed: torch.Tensor, target: torch.Tensor) -> None:
    """Write what this rank gets."""
    if not what.gets(place.rank):
        return
    with writing(target):
        if what.is_moved:
            octets(target).copy_(packed.view(-1))
            return
        own = packed.view(-1)
        if what.kind == CollectiveKind.REDUCE_SCATTER:
            own = own[place.rank * what.elems :][: what.elems]
        memory_of(target).view(-1).copy_(own)
