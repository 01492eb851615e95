"""A forwarding pipeline configuration from the two files that p4c writes."""

from __future__ import annotations

from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ina.errors import InvalidInputError


def config_from_files(p4info: Path, program: Path) -> p4r.ForwardingPipelineConfig:
    """``p4info``: P4Info as text protobuf (``.bin`` or ``.pb``: binary); ``program``: BMv2 JSON.

    Raises :class:`InvalidInputError` naming the file.
    """
    return p4r.ForwardingPipelineConfig(
        p4info=_read_p4info(p4info), p4_device_config=_read(program, "BMv2 JSON")
    )


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{what} {path}: {error.strerror}") from None


def _read_p4info(path: Path) -> p4i.P4Info:
    data = _read(path, "P4Info")
    try:
        if path.suffix in (".bin", ".pb"):
            return p4i.P4Info.FromString(data)
        return text_format.Parse(data.decode(), p4i.P4Info())
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"P4Info {path}: {error}") from None
