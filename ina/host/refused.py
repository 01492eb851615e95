"""What workers cannot ask for in jobs of some modes, which say so themselves (:mod:`ina.modes`)."""

from __future__ import annotations

from ina import modes
from ina.errors import InvalidInputError
from ina.host.options import WorkerOptions
from ina.host.ticket import Ticket
from ina.protocol.coding import checked_coding, values_per_word
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType


def check_options(ticket: Ticket, options: WorkerOptions) -> None:
    """Raises InvalidInputError: the job's mode has nothing of the kind."""
    if checked_coding("wire", options.wire).bits < 32:
        _refuse(ticket, "wire", options.wire)
    if options.recoverable:
        _refuse(ticket, "recoverable", "True")
    if ticket.verify != "off":
        _refuse(ticket, "verify", repr(ticket.verify))


def check_packed(ticket: Ticket, what: Collective) -> None:
    """Raises InvalidInputError: values of the job do not travel so."""
    per_word = values_per_word(what.value_type)
    if per_word > 1 and what.value_type != ValueType.BYTES:
        _refuse(ticket, "wire", str(32 // per_word))


def _refuse(ticket: Ticket, option: str, value: str) -> None:
    why = modes.of(ticket.mode).refuses.get(option)
    if why is not None:
        raise InvalidInputError(
            f"job {ticket.job_name!r} rank {ticket.rank}: mode {ticket.mode!r}, {option}={value}:"
            f" {why}"
        )
