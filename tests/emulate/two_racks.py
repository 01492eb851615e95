"""A network of two racks, two hosts each, below one spine."""

TWO_RACKS = """
aggregator = "all"
[hosts]
h1.ip = "10.0.0.1/24"
h2.ip = "10.0.0.2/24"
h3.ip = "10.0.0.3/24"
h4.ip = "10.0.0.4/24"
[switches]
leaf1 = {}
leaf2 = {}
spine = {}
[[links]]
ends = ["h1", "leaf1-p1"]
[[links]]
ends = ["h2", "leaf1-p2"]
[[links]]
ends = ["h3", "leaf2-p1"]
[[links]]
ends = ["h4", "leaf2-p2"]
[[links]]
ends = ["leaf1-p9", "spine-p1"]
[[links]]
ends = ["leaf2-p9", "spine-p2"]
"""
