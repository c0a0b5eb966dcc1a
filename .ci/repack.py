#!/usr/bin/env python3
"""Recompresses a wheel to the smallest size: repack.py WHEEL OUT. Needs `deflate` (libdeflate) from PyPI."""

import sys
import zipfile

import deflate


class Whole:
    """A compressor for zipfile, which compresses all data at the end."""

    def __init__(self) -> None:
        self.parts = []

    def compress(self, data: bytes) -> bytes:
        self.parts.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        return bytes(deflate.deflate_compress(b"".join(self.parts), 12))


def main(wheel: str, out: str) -> None:
    zipfile._get_compressor = lambda *_: Whole()
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, data)
    with zipfile.ZipFile(out) as packed:
        damaged = packed.testzip()
    if damaged:
        raise SystemExit(f"{damaged} does not unpack to what was packed")


main(*sys.argv[1:])
