"""The regression guard of the benchmarks."""
