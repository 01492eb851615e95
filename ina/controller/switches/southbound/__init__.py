"""From the controller down to a switch: one interface, one implementation for each protocol.

:mod:`~ina.controller.switches.southbound.interface` is what the rest of the controller knows;
:func:`ina.controller.switches.southbound.connect.connect` chooses.
"""
