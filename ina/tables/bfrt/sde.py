"""Finds and imports the SDE's client, ``bfrt_grpc.client``, under ``SDE_INSTALL``."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ina.errors import MissingToolError

VARIABLE = "SDE_INSTALL"
_PATTERN = "lib/python3*/site-packages/tofino"
_MODULE = "bfrt_grpc.client"
_LOGGERS = ("bfruntime_grpc_client", "bfruntime_parse")


def client_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that ``bfrt_grpc`` is in.

    Raises :class:`~ina.errors.MissingToolError`: ``SDE_INSTALL`` is not set, or has no client.
    """
    root = environment.get(VARIABLE, "")
    if not root:
        raise MissingToolError(
            f"BFRuntime needs the SDE's Python client: set {VARIABLE} to the SDE's install folder"
        )
    for folder in sorted(Path(root).glob(_PATTERN), reverse=True):
        if (folder / "bfrt_grpc" / "client.py").is_file():
            return folder
    raise MissingToolError(
        f"{VARIABLE}={root}: no {_PATTERN}/bfrt_grpc/client.py there: is that an SDE, built with"
        " its BFRuntime gRPC client?"
    )


def load_client(environment: Mapping[str, str] = os.environ) -> Any:
    """Imports the SDE's ``bfrt_grpc.client``.

    Its folder goes to the end of ``sys.path``: the SDE brings gRPC and protobuf as well, and ours
    must stay the ones in use. Raises :class:`~ina.errors.MissingToolError`.
    """
    folder = client_folder(environment)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        client = importlib.import_module(_MODULE)
    except ModuleNotFoundError as error:
        hint = ""
        if (error.name or "").startswith("google"):
            hint = ": pip install googleapis-common-protos"
        raise MissingToolError(f"{folder}: {_MODULE} needs {error.name}{hint}") from None
    except TypeError as error:  # protobuf: "Descriptors cannot be created directly"
        reason = str(error).partition("\n")[0]
        raise MissingToolError(
            f"{folder}: {_MODULE} was generated for an older protobuf ({reason}): set"
            " PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python"
        ) from None
    except ImportError as error:
        raise MissingToolError(f"{folder}: {_MODULE}: {error}") from None
    for name in _LOGGERS:  # it tells each step of connecting, and we tell what matters
        logging.getLogger(name).setLevel(logging.WARNING)
    return client
