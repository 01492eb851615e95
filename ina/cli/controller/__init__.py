"""``ina controller``: its app is in ``command``."""
