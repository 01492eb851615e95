"""BFRuntime: a Tofino driven through the SDE's own Python client, which ina does not bring.

:mod:`~ina.tables.bfrt.session` is the :class:`~ina.tables.session.SwitchSession`. Nothing here is
imported before a configuration asks for it, and nothing of the SDE before a session is made.
"""
