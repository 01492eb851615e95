"""What a script may say about one group: ``init_process_group("ina", pg_options=Options(...))``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ina.torch.env import Settings, check_lease, check_on_switch_loss
from ina.torch.errors import SettingError


@dataclass(frozen=True)
class Options:
    """Goes before the environment variable of the same name; None leaves that in force.

    Raises :class:`ina.torch.errors.SettingError` for a policy that does not exist, or such a lease.
    """

    on_switch_loss: str | None = None
    """``"error"`` or ``"fallback"``."""
    tenant: str | None = None
    priority: int | None = None
    job: str | None = None
    """The job's name at the controller."""
    lease_s: float | None = None
    """Of the embedded controller: seconds after which a silent worker is dead, 1 to 3600."""

    def __post_init__(self) -> None:
        if self.on_switch_loss is not None:
            check_on_switch_loss("on_switch_loss", self.on_switch_loss)
        if self.lease_s is not None:
            check_lease("lease_s", self.lease_s)

    def over(self, settings: Settings) -> Settings:
        """``settings`` with what is said here; SettingError: a lease, but not embedded."""
        if self.lease_s is not None and settings.controller is not None:
            raise SettingError(
                f"lease_s is for the embedded controller, but INA_CONTROLLER={settings.controller}"
                " names a running one: its configuration has the lease"
            )
        said = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(settings, **said)
