"""How switches and hosts are joined: the graph, its shapes, the ways over it. No config, no I/O."""
