"""What a group does when its switch is lost and the policy is to go on: see docs/failures.md."""

from ina.torch.fallback.fallback import Fallback, SwitchLoss

__all__ = ["Fallback", "SwitchLoss"]
