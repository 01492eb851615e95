"""What a script may say about one group: ``init_process_group("ina", pg_options=Options(...))``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ina.torch.env import Settings, check_on_switch_loss


@dataclass(frozen=True)
class Options:
    """Goes before the environment variable of the same name; None leaves that in force.

    Raises :class:`ina.torch.errors.SettingError` for a policy that does not exist.
    """

    on_switch_loss: str | None = None
    """``"error"`` or ``"fallback"``."""
    tenant: str | None = None
    priority: int | None = None
    job: str | None = None
    """The job's name at the controller."""

    def __post_init__(self) -> None:
        if self.on_switch_loss is not None:
            check_on_switch_loss("on_switch_loss", self.on_switch_loss)

    def over(self, settings: Settings) -> Settings:
        """``settings`` with what is said here."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(settings, **said)
