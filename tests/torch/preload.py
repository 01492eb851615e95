"""What the fork server imports and loads before it forks workers."""

from contextlib import suppress
from importlib import import_module

from ina.controller.config.reading import make_config
from ina.p4 import compiled
from ina.switch.targets import default_target
from ina.tables.entities import entities_of

for name in (
    *("torch.distributed", "torch.nn.parallel"),
    "torch._dynamo",  # an optimizer imports it when it is made
    # What gRPC imports when it is used:
    *("grpc._channel", "grpc._server", "grpc._simple_stubs", "grpc.experimental"),
    "encodings.idna",  # whoever looks up an address
    "numpy.ctypeslib",
    *("ina.torch", "ina.controller.embedded"),
    "sklearn.datasets",  # what examples train on
    *(
        "tests.worlds.processes.launch",
        "tests.worlds.processes.runs",
        "tests.worlds.processes.services",
    ),
):
    with suppress(ImportError):
        import_module(name)

# A rank 0 loads the build of one of these: so it has been read and checked already.
for values in (64, 256, 1024):
    program = compiled(values)
    default_target().read_and_build(program.bmv2_json)
    entities_of(program.p4info, program.bmv2_json)
make_config({"listen": "127.0.0.1:0"}, "a fork server's")
