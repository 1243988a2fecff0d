"""The key behind stand-ins: what a fingerprint is, and the one key that is public.

A fingerprint tells two keys apart without telling either: it goes into the methods lock and the manifest.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from corpusforge.errors import MissingKey

# Everyone has this key: stand-ins made with it can be linked to the values they replace by anyone who guesses those.
PUBLIC_DEMO_KEY: Final = b"corpusforge public demo key: not secret, never use it for real data"
PUBLIC_DEMO: Final = "public-demo"
MINIMUM_BYTES: Final = 16


def fingerprint(key: bytes) -> str:
    """First 16 hex digits of SHA-256 over a domain prefix and the key."""
    return hashlib.sha256(b"corpusforge-key-fingerprint\0" + key).hexdigest()[:16]


def check_key(key: bytes, where: str) -> bytes:
    """The key, if it is long enough. Raises MissingKey naming where it came from."""
    if len(key) < MINIMUM_BYTES:
        raise MissingKey(
            f"the scrubbing key from {where} has {len(key)} bytes, at least {MINIMUM_BYTES} are needed",
            hint="make one with `corpusforge key new`",
        )
    return key


def digest(key: bytes, *parts: str) -> bytes:
    """HMAC-SHA256 over the parts, each preceded by its length, so that no two lists of parts collide."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.digest()
