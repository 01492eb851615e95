"""Tensors on a GPU: quantised there, staged through pinned memory, summed by the network."""
