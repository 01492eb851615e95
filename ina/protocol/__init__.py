"""The wire format and the rules of aggregation: docs/protocol.md.

``spec`` is the one definition of the header, ``codec`` its Python form, ``emit`` writes all others.
``slot_model`` specifies what a slot does, ``switch_model`` a whole switch: the tests' oracles.
"""
