"""What gRPC's synchronous streams leave behind when they fail."""

from __future__ import annotations

import grpc


def let_go(error: grpc.RpcError) -> None:
    """Undo what would keep a stream alive that gRPC has raised. Call it where the error ends.

    The error of a stream is the stream itself; its traceback holds the frames in which the stream
    is a local, so that only the garbage collector ends it. At the interpreter's end that is too
    late: the stream's destructor takes a lock, with which gRPC's daemon thread may have been
    stopped, and the program never ends. Keep the new error in no local of such a frame, either.
    """
    error.__traceback__ = None
    error.__context__ = None
