"""What the fork server imports before it forks workers."""

import torch._dynamo  # what an optimizer imports when it is made
import torch.distributed
import torch.nn.parallel  # noqa: F401

import ina.controller.embedded
import ina.torch  # noqa: F401
