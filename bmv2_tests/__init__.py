"""Network tests: Mininet topologies with BMv2, or the soft switch in its place."""
