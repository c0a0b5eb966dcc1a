"""XXH3 hashes of 128 bits, with the seed 0 and the default secret: those of the files of a checkpoint.

The package `xxhash` computes them where it is installed, which is faster.
"""

from __future__ import annotations

import struct
from typing import Any, List, Tuple

PREFIX = "xxh3-128:"
# Fewer bytes have other formulas; no file of a checkpoint is that short.
SHORTEST = 17

_ALL = (1 << 64) - 1
_32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE = 64
_BLOCK = 16 * _STRIPE
# Blocks that are summed at once.
_PART = 4096


def digest(data: Any) -> str:
    """The hash of a buffer of at least 17 bytes: the prefix and 32 hexadecimal digits."""
    try:
        import xxhash
    except ImportError:
        low, high = _hash(memoryview(data).cast("B"))
        return f"{PREFIX}{high:016x}{low:016x}"
    return PREFIX + str(xxhash.xxh3_128_hexdigest(data))


def _hash(data: memoryview) -> Tuple[int, int]:
    if len(data) < SHORTEST:
        raise ValueError(f"the hash of {len(data)} bytes: at least {SHORTEST} are needed")
    return _long(data) if len(data) > 240 else _short(bytes(data))


def _word(data: Any, at: int) -> int:
    word: int = struct.unpack_from("<Q", data, at)[0]
    return word


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product ^ product >> 64) & _ALL


def _mixed(h: int) -> int:
    h = (h ^ h >> 37) * 0x165667919E3779F9 & _ALL
    return h ^ h >> 32


def _short(data: bytes) -> Tuple[int, int]:
    """The hash of 17 to 240 bytes."""
    n = len(data)
    sums = [n * _64[0] & _ALL, 0]

    def add(first: int, second: int, secret: int) -> None:
        for side, (own, other, key) in enumerate(((first, second, secret), (second, first, secret + 16))):
            product = _fold(_word(data, own) ^ _word(_SECRET, key), _word(data, own + 8) ^ _word(_SECRET, key + 8))
            sums[side] = (sums[side] + product & _ALL) ^ (_word(data, other) + _word(data, other + 8) & _ALL)

    if n <= 128:
        for pair in reversed(range((n - 1) // 32 + 1)):
            add(16 * pair, n - 16 * (pair + 1), 32 * pair)
    else:
        for at in range(4):
            add(32 * at, 32 * at + 16, 32 * at)
        sums[:] = map(_mixed, sums)
        for at in range(4, n // 32):
            add(32 * at, 32 * at + 16, 3 + 32 * (at - 4))
        add(n - 16, n - 32, 103)
    low = sums[0] + sums[1] & _ALL
    high = sums[0] * _64[0] + sums[1] * _64[3] + n * _64[1] & _ALL
    return _mixed(low), -_mixed(high) & _ALL


def _long(data: memoryview) -> Tuple[int, int]:
    """The hash of more than 240 bytes: sums of stripes of 64 bytes, scrambled after each block of 16."""
    n = len(data)
    sums = [_32[2], *_64[:4], _32[1], _64[4], _32[0]]
    blocks = (n - 1) // _BLOCK
    keys = [_word(_SECRET, 128 + 8 * lane) for lane in range(8)]
    for first in range(0, blocks, _PART):
        count = min(_PART, blocks - first)
        for block in _blocks(data[first * _BLOCK : (first + count) * _BLOCK]):
            for lane in range(8):
                total = sums[lane] + block[lane] & _ALL
                sums[lane] = (total ^ total >> 47 ^ keys[lane]) * _32[0] & _ALL
    for stripe in range((n - 1) // _STRIPE - 16 * blocks):
        _stripe(sums, data, blocks * _BLOCK + stripe * _STRIPE, 8 * stripe)
    _stripe(sums, data, n - _STRIPE, 121)
    return _merged(sums, 11, n * _64[0] & _ALL), _merged(sums, 117, ~(n * _64[1]) & _ALL)


def _stripe(sums: List[int], data: memoryview, at: int, secret: int) -> None:
    for lane in range(8):
        word = _word(data, at + 8 * lane)
        key = word ^ _word(_SECRET, secret + 8 * lane)
        sums[lane ^ 1] = sums[lane ^ 1] + word & _ALL
        sums[lane] = sums[lane] + (key & 0xFFFFFFFF) * (key >> 32) & _ALL


def _blocks(data: memoryview) -> List[List[int]]:
    """What each whole block adds to the eight sums, modulo 2^64."""
    import torch

    words = torch.frombuffer(bytearray(data), dtype=torch.int64).view(-1, 16, 8)
    secret = torch.tensor([struct.unpack_from("<8q", _SECRET, 8 * stripe) for stripe in range(16)])
    key = words ^ secret
    added = ((key & 0xFFFFFFFF) * (key >> 32 & 0xFFFFFFFF)).sum(1) + words.sum(1)[:, [1, 0, 3, 2, 5, 4, 7, 6]]
    found: List[List[int]] = added.tolist()
    return found


def _merged(sums: List[int], secret: int, start: int) -> int:
    pairs = ((sums[at] ^ _word(_SECRET, secret + 8 * at), sums[at + 1] ^ _word(_SECRET, secret + 8 * at + 8)) for at in range(0, 8, 2))
    return _mixed(start + sum(_fold(a, b) for a, b in pairs) & _ALL)
