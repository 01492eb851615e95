"""The policies, by the names that the configuration has for them."""

from __future__ import annotations

from ina.controller.config import JobsConfig
from ina.controller.memory.asked import Asked
from ina.controller.memory.deadline import Deadline
from ina.controller.memory.equal import Equal
from ina.controller.memory.jct import Jct
from ina.controller.memory.policy import Policy
from ina.controller.memory.priority import Priority
from ina.controller.memory.static import Static

RESIZING: dict[str, type[Equal | Jct | Deadline | Priority]] = {
    policy.name: policy for policy in (Equal, Jct, Deadline, Priority)
}
"""Those that change the size of jobs that run."""


def policy_for(config: JobsConfig, share: int) -> Policy:
    """The policy that the configuration names; ``share``: slots of each job under ``static``."""
    if config.policy in RESIZING:
        return RESIZING[config.policy]()
    return Asked(config.slots) if config.gives_what_is_asked else Static(share)
