"""``ina job``: its app is in ``command``."""
