"""Embedding tables that are spread over hosts: rows are pooled and updated where they lie.

The cores are in native/embed; what of this needs PyTorch is in :mod:`ina.torch.embedding`.
"""
