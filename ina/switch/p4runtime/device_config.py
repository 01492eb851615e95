"""The two forms in which clients send a program in ``p4_device_config``.

P4Runtime leaves the bytes to the target. simple_switch_grpc takes BMv2 JSON as it is, and inside a
``p4.tmp.P4DeviceConfig``, which is what the controllers of p4lang/tutorials send.
"""

from __future__ import annotations

import functools
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from ina.switch.p4runtime.status import invalid

_FORMS = "BMv2 JSON, or a p4.tmp.P4DeviceConfig with BMv2 JSON in device_data"


def program_of(device_config: bytes) -> bytes:
    """The BMv2 JSON; INVALID_ARGUMENT for bytes that begin no JSON object and are no message."""
    if _is_object(device_config):
        return device_config
    message = _message_class()()
    try:
        message.ParseFromString(device_config)
    except DecodeError:
        raise invalid(f"p4_device_config: expected {_FORMS}") from None
    if not _is_object(message.device_data):
        raise invalid(f"p4_device_config, device_data: expected {_FORMS}")
    return bytes(message.device_data)


def _is_object(data: bytes) -> bool:
    """No protobuf message begins so: 0x7b opens a group that P4DeviceConfig does not have."""
    return data.lstrip()[:1] == b"{"


@functools.cache
def _message_class() -> Any:
    """P4DeviceConfig, of a pool of its own: programs beside us may have the original loaded."""
    file = descriptor_pb2.FileDescriptorProto(
        name="ina/p4_device_config.proto", package="p4.tmp", syntax="proto3"
    )
    message = file.message_type.add(name="P4DeviceConfig")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, number, kind in (
        ("reassign", 1, kinds.TYPE_BOOL),  # no matter: a program that is set again starts anew
        ("device_data", 3, kinds.TYPE_BYTES),
    ):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))
