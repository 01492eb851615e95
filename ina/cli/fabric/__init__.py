"""``ina fabric``: its app is in ``command``."""
