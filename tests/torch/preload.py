"""What the fork server imports before it forks workers."""

import torch.distributed
import torch.nn.parallel  # noqa: F401

import ina.controller.embedded
import ina.torch  # noqa: F401
