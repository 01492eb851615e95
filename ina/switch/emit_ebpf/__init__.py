"""A plan to C for the kernel: XDP programs and the maps that hold their state."""
