"""What a group does when its switch is lost and the policy is to go on: see docs/failures.md."""

from ina.torch.fallback.fallback import Fallback
from ina.torch.fallback.sums import GlooSum
from ina.torch.fallback.told import SwitchLoss

__all__ = ["Fallback", "GlooSum", "SwitchLoss"]
