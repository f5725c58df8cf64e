#!/usr/bin/env python3
"""Empties what a fat binary holds for other GPUs: thin-fatbin.py ARCH FILE ...; ARCH as in 90 for sm_90.

The parts stay listed, as zeros, so that nothing moves and the file loads as before; zeros compress to nothing. A
container is a header (magic, version, size of the header, size of the rest) and entries, each with its own header
(kind, version, size of the header, size of what follows, ..., the architecture as the eighth word).
"""

import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)


def main():
    arch = int(sys.argv[1])
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            raw = bytearray(file.read())
        kept, emptied = thin(raw, arch)
        if kept == 0:
            raise SystemExit(f"{path} holds nothing for sm_{arch}")
        with open(path, "r+b") as file:
            file.write(raw)
        print(f"{path}: {kept >> 20} MiB kept, {emptied >> 20} MiB emptied")


def thin(raw, arch):
    kept = emptied = 0
    at = raw.find(MAGIC)
    while at >= 0:
        _, _, size, rest = struct.unpack_from("<IHHQ", raw, at)
        end = at + size + rest
        if size != 16 or end > len(raw):
            at = raw.find(MAGIC, at + 4)
            continue
        entry = at + size
        while entry < end:
            _, _, header, length = struct.unpack_from("<HHIQ", raw, entry)
            (entry_arch,) = struct.unpack_from("<I", raw, entry + 28)
            body = entry + header
            if entry_arch == arch:
                kept += length
            else:
                emptied += length
                raw[body : body + length] = bytes(length)
            entry = body + length
        at = raw.find(MAGIC, end)
    return kept, emptied


main()
