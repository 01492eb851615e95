"""Sums of arrays that are mostly zero, of which only what some rank has is sent.

For whoever has a way to begin operations of its own (a Session has this built in)::

    turns = Turns()  # of ina.host.turns; all operations go through turns.submit
    sums = BlockSums(turns, begin, workers)  # begin(source, target, what) -> Sum, at once
    stream = sums.stream()
    first = stream.blocks(array, 360, out=array)  # counters of the first
    second = stream.rows(numbers, rows, count)  # counters of the second, values of the first
    stream.flush()  # values of the second
    second.add_done_callback(lambda sum: use(sum.wait()))  # RowSums; sum.union of sum.blocks
"""

from ina.host.sparse.counts import BlockCounts
from ina.host.sparse.parts import Blocks, Part, RowSums
from ina.host.sparse.sums import BlockStream, BlockSum, BlockSums

__all__ = ["BlockCounts", "BlockStream", "BlockSum", "BlockSums", "Blocks", "Part", "RowSums"]
