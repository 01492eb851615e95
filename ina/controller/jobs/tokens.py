"""Secrets of a job: the join token that its owner chose, each member's key, and that of all.

Neither is kept: of a token there is a salted hash, and a member's key is computed from a seed of
its job. So whoever reads the store can forge no join; the seed is as secret as the store.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable

from ina.protocol.verify import CHECK_KEY_BYTES

_SALT_BYTES = 16
KEY_SEED_BYTES = 16
RandomBytes = Callable[[int], bytes]
"""So many bytes that nobody can guess."""


def hash_token(token: str, random_bytes: RandomBytes = secrets.token_bytes) -> bytes:
    """Salt and hash of a join token; of the empty token, which is none, nothing.

    The hash is a fast one: it keeps a random token secret, not a guessable one.
    """
    if not token:
        return b""
    salt = random_bytes(_SALT_BYTES)
    return salt + _digest(salt, token)


def token_matches(token: str, hashed: bytes) -> bool:
    """Whether :func:`hash_token` of this token gave ``hashed``; takes the same time for all."""
    if not hashed:
        return not token
    salt, digest = hashed[:_SALT_BYTES], hashed[_SALT_BYTES:]
    return hmac.compare_digest(_digest(salt, token), digest)


def new_key_seed(random_bytes: RandomBytes = secrets.token_bytes) -> bytes:
    """A random seed for the member keys of one incarnation of a job."""
    return random_bytes(KEY_SEED_BYTES)


def member_key(seed: bytes, epoch: int, rank: int) -> bytes:
    """What Heartbeat, Watch and Leave of this rank carry: 16 bytes."""
    return hashlib.blake2b(b"%d %d" % (epoch, rank), key=seed, digest_size=16).digest()


def check_key(seed: bytes, epoch: int) -> bytes:
    """What the job's workers verify its sums with, in this epoch: 16 bytes, the same for all."""
    return hashlib.blake2b(b"check %d" % epoch, key=seed, digest_size=CHECK_KEY_BYTES).digest()


def _digest(salt: bytes, token: str) -> bytes:
    return hashlib.blake2b(token.encode(), salt=salt, digest_size=32).digest()
