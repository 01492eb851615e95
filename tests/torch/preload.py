"""What the fork server imports before it forks workers."""

import ina.controller.embedded
import torch.distributed
import torch.nn.parallel  # noqa: F401

import ina.torch  # noqa: F401
