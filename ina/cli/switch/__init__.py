"""``ina switch``: its app is in ``command``."""
