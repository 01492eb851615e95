"""What the fork server imports and loads before it forks workers."""

import torch._dynamo  # what an optimizer imports when it is made
import torch.distributed
import torch.nn.parallel  # noqa: F401

import ina.controller.embedded
import ina.torch  # noqa: F401
from ina.p4 import compiled
from ina.switch.targets import default_target

# A rank 0 loads the build of one of these: so it has been read and checked already.
for values in (64, 256, 1024):
    default_target().read_and_build(compiled(values).bmv2_json)
