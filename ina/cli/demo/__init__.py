"""``ina demo``: its app is in ``command``."""
