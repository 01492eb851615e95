"""Benchmarks: what is measured, against which peer and which limit. ``ina bench`` prints it."""
