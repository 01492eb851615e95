"""BFRuntime: a Tofino driven through the SDE's own Python client, which ina does not bring.

:mod:`~ina.controller.switches.southbound.bfrt.session` is the
:class:`~ina.controller.switches.southbound.interface.SwitchSession`. Nothing here is imported
before a configuration asks for it, and nothing of the SDE before a session is made.
"""
