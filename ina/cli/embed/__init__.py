"""``ina embed``: its app is in ``command``."""
