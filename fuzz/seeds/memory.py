"""What happens at a worker and in shared memory, as native/testing reads it."""

from __future__ import annotations

import struct

from fuzz.seeds.packets import Examples, contribution

INT32, FLOAT32, FLOAT16, BFLOAT16 = range(4)


def worker_core_inputs() -> Examples:
    """A worker, its tensors, and what a switch answers."""
    # By the numbers in worker_core_door.cpp.
    submit, wait, noise, answer, answer_apart, look = range(6)

    def worker(
        world_size: int = 2,
        rank: int = 0,
        slots: int = 2,
        values: int = 4,
        *,
        wraps: int = 0,
        first_tree: int = 0,
        second: int = 0,
        half: int = 0,
        keeps: int = 0,
    ) -> bytes:
        """`first_tree`: its lanes; 0: one switch. `second`, `half`: of which tree a share is."""
        child, below, bitmap, index = 3, b"\1\2", b"\5\0\0\0", 6
        tree = bytes([child]) + below + bitmap + bytes([index]) if first_tree else b""
        lanes = bytes([first_tree, second]) + tree + bytes([half])
        return bytes([world_size - 1, rank, slots, values - 1, wraps]) + lanes + bytes([keeps])

    def tensor(kind: int, elems: int, average: bool = False) -> bytes:
        size = 2 if kind in (FLOAT16, BFLOAT16) else 4
        formats = {INT32: "i", FLOAT32: "f", FLOAT16: "e", BFLOAT16: "h"}
        numbers = [i - elems // 3 if kind in (INT32, BFLOAT16) else i / 4 for i in range(elems)]
        data = struct.pack(f"<{elems}{formats[kind]}", *numbers)[:255]
        assert len(data) == min(255, elems * size)
        return bytes([kind, average, elems, len(data)]) + data

    def answers(rounds: int, lanes: int = 4, how: int = answer) -> bytes:
        return bytes([how, 0, 0]).join([b""]) + b"".join(
            bytes([how, lane, 0]) for _ in range(rounds) for lane in range(lanes)
        )

    floats = worker() + tensor(FLOAT32, 40)
    patched = b"".join(bytes([answer, 0, 1, at, 1 << at % 8]) for at in range(24))
    examples = {f"type-{kind}": worker() + tensor(kind, 40) + answers(6) for kind in range(4)} | {
        f"average-{kind}": worker(3, 2) + tensor(kind, 17, True) + answers(4) for kind in range(4)
    }
    return examples | {
        "apart": floats + answers(6, how=answer_apart),
        "guesses": worker() + (tensor(FLOAT32, 6) + answers(3) + bytes([submit])) * 4,
        "alone": worker(1) + tensor(INT32, 9) + answers(2),
        "wraps": worker(wraps=1) + tensor(INT32, 60) + answers(6),
        "share": worker(slots=3, half=1) + tensor(INT32, 60) + answers(4),
        "tree": worker(slots=3, first_tree=3) + tensor(INT32, 60) + answers(4),
        "tree-half": worker(slots=3, first_tree=3, second=1, half=1)
        + tensor(INT32, 60)
        + answers(4),
        "keeps": worker(keeps=1) + tensor(FLOAT32, 30) + answers(6) + bytes([look]),
        "queue": worker() + (tensor(FLOAT16, 20) + bytes([submit])) * 4 + answers(12),
        "empty-tensor": worker() + tensor(INT32, 0) + answers(1),
        "duplicates": floats + answers(2) * 2 + answers(2),
        "resends": floats + bytes([wait, 200, 0] * 3) + answers(4),
        "deadlines": floats + bytes([wait, 0, 0] * 5) + answers(6),
        "stall": floats + bytes([wait, 0, 9]) + answers(1),
        "patched": floats + patched + answers(4),
        "other-digest": floats + bytes([answer, 0, 1, 22, 255]) + answers(2),
        "noise": floats + _noise(noise) + answers(4),
    }


def _noise(kind: int) -> bytes:
    packets = [contribution(0, 0, 4), contribution(0, 0, 0), b"", b"\x21", bytes(24)]
    return b"".join(struct.pack("<BH", kind, len(data)) + data for data in packets)


def shm_switch_inputs() -> Examples:
    """A worker that attaches, and what it does then; by the numbers in shm_switch_door.cpp."""
    attached = bytes([1, 0, 16])
    receive, receive_scribbled = bytes([5, 32, 0]), bytes([5, 32, 1, 0, 9, 0, 4, 1, 2, 3, 4])
    reclaim, hang_up, wake, sleep = bytes([7]), bytes([8, 0]), bytes([8, 1, 0]), bytes([9, 1, 3])
    hello = struct.pack("<4I", 0x696E6173, 2, 16, 56)

    def put(payload: bytes, frame: int = 0) -> bytes:
        return bytes([4, len(payload)]) + payload + bytes([frame])

    def send(head: int, tail: int) -> bytes:
        return struct.pack("<BBHB", 6, head, tail, 3)

    def control(ring: int, number: int, change: int) -> bytes:
        return bytes([1 + ring, number, 64 + change])

    def control_to(ring: int, number: int, value: int) -> bytes:
        return bytes([1 + ring, number, 255]) + struct.pack("<I", value)

    def cell(position: int, length: int, rest_at: int) -> bytes:
        return struct.pack("<BBHBBI", 3, position, length, 0, 1, rest_at)

    one = put(contribution(0, 0, 8))
    return {
        "one": attached + one + receive,
        "header-only": attached + put(contribution(0, 0, 0)) + receive,
        "short": attached + put(b"\x21\x00") + receive,
        "many": attached + one * 20 + receive * 2,
        "scribbled": attached + one + receive_scribbled,
        "hello-in-parts": bytes([1, 0, 7]) + one + receive,
        "hello-written": bytes([0, 0]) + hello + bytes([16]) + one + receive,
        "hello-wrong": bytes([0, 0]) + hello[:8] + bytes(8) + bytes([16]),
        "results": attached + send(24, 32) * 20 + reclaim,
        "results-whole": attached + send(56, 0) * 4 + send(10, 0),
        "results-elsewhere": attached + send(30, 26) + send(0, 0),
        "results-released": attached + send(24, 32) * 4 + control(1, 2, 4) + send(24, 32) * 4,
        "published-far": attached + control_to(0, 0, 1 << 31) + receive,
        "published-back": attached + one + receive + control(0, 0, -1) + receive,
        "released-far": attached + send(24, 32) + control_to(1, 2, 77) + reclaim + send(24, 32),
        "cell-too-long": attached + one + cell(0, 60000, 0) + receive,
        "cell-outside": attached + one + cell(0, 56, 1 << 30) + receive,
        "cell-at-the-end": attached + one + cell(0, 56, 16 * 128 - 31) + receive,
        "cell-own-frame": attached + one + struct.pack("<BBHBB", 3, 0, 56, 0, 0) + receive,
        "wanted": attached + control_to(1, 3, 1) + send(24, 32) + sleep + wake,
        "gone": attached + one + hang_up,
    }


def shm_worker_inputs() -> Examples:
    """A switch's side of the rings; by the numbers in shm_worker_door.cpp."""
    begin = bytes([0, 0, 0])
    receive, send, sleep = bytes([6]), bytes([7, 0, 56]), bytes([8, 1, 0, 4])
    gone = bytes([8, 0, 4])

    def put(payload: bytes, marked: bool = False) -> bytes:
        return bytes([5, len(payload)]) + payload + bytes([marked])

    def control(ring: int, number: int, change: int) -> bytes:
        return bytes([2 + ring, number, 64 + change])

    def control_to(ring: int, number: int, value: int) -> bytes:
        return bytes([2 + ring, number, 255]) + struct.pack("<I", value)

    def cell(length: int, rest_at: int) -> bytes:
        return struct.pack("<BBHBBI", 4, 0, length, 0, 1, rest_at)

    one = put(contribution(0, 0, 8))
    return {
        "one": begin + send + one + receive,
        "marked": begin + send + put(contribution(0, 0, 8), True) + receive,
        "header-only": begin + put(contribution(0, 0, 0)) + receive,
        "short": begin + put(b"\x21\x00") + receive,
        "many": begin + one * 20 + receive * 2,
        "in-the-area": begin + one + cell(56, 64) + receive,
        "at-the-area-s-end": begin + one + cell(56, 4096 - 32) + receive,
        "outside-the-area": begin + one + cell(56, 4096 - 31) + receive,
        "too-long": begin + one + cell(60000, 0) + receive,
        "area-written": begin + bytes([1, 0, 0, 0, 8]) + b"resultss" + one + receive,
        "segment-written": begin + bytes([0, 0, 2, 0, 8]) + b"segments" + one + receive,
        "published-far": begin + control_to(1, 0, 1 << 31) + receive,
        "published-back": begin + one + receive + control(1, 0, -1) + receive,
        "released-far": begin + send * 3 + control_to(0, 2, 99) + send * 20,
        "leave-a-core": begin + control_to(1, 1, 1) + sleep + control_to(1, 1, 1 << 30) + sleep,
        "sleeps": begin + sleep + one + receive + sleep,
        "gone": begin + gone + sleep + send + receive,
        "other-size": bytes([0, 0, 255]),
        "large": bytes([2, 3, 0]) + one * 8 + receive,
    }
