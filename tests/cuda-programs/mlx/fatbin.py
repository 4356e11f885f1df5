"""The GPU code in a library that nvcc made: the section `.nv_fatbin` of an ELF file.

It is a row of containers, each a header (magic, version, header size, payload size) and entries (kind 1: PTX, 2: machine
code; header size, payload size, architecture). The layout is not documented by NVIDIA; it was read off libraries.
"""

import struct

MAGIC = 0xBA55ED50
MACHINE_CODE = 2


def keep_architecture(library, architecture):
    """The library with the payload of every other entry zeroed, so that it packs small; and how many bytes that are."""
    out = bytearray(library)
    at, size = _section(library, b".nv_fatbin")
    end, dropped = at + size, 0
    while at + 16 <= end:
        magic, _, header, payload = struct.unpack_from("<IHHQ", library, at)
        if magic != MAGIC:
            # Containers start at multiples of 8.
            at += 8 - at % 8
            continue
        entry, at = at + header, at + header + payload
        while entry < at:
            kind, _, entry_header, entry_payload = struct.unpack_from("<HHIQ", library, entry)
            (built_for,) = struct.unpack_from("<I", library, entry + 0x1C)
            entry += entry_header
            if kind != MACHINE_CODE or built_for != architecture:
                out[entry : entry + entry_payload] = bytes(entry_payload)
                dropped += entry_payload
            entry += entry_payload
    return bytes(out), dropped


def _section(library, wanted):
    """Where a section of a 64-bit ELF file is, and its size."""
    if library[:5] != b"\x7fELF\x02":
        raise ValueError("this is not a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", library, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", library, 0x3A)

    def header(index):
        return struct.unpack_from("<IIQQQQ", library, table + index * entry_size)

    names = header(names_index)[4]
    for index in range(count):
        name, _, _, _, offset, size = header(index)
        start = names + name
        if library[start : library.index(b"\0", start)] == wanted:
            return offset, size
    raise ValueError("the library has no GPU code")
