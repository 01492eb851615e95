"""The ``ina`` command: a noun is a file, or a folder with its app in ``command``."""
