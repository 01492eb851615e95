"""The ``ina`` command: one file a noun, mounted by ``main`` when it is used."""
