"""``ina infer``."""
