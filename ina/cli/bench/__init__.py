"""``ina bench``: its app is in ``command``."""
