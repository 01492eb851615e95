"""``ina p4``: its app is in ``command``."""
