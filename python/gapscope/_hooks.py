"""Finds the hooks that `gapscope record` has put into this process, and calls the C interface that they export.

The functions are those of `struct gapscope_table` in crates/recorder/spool/src/interface.rs. A hook is loaded by the Vulkan
loader or by the CUDA driver when the program first uses a GPU, so it may appear at any time.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

#: Whether the process runs under `gapscope record` or `gapscope capture`. Without them no hook is looked up.
session = bool(os.environ.get("GAPSCOPE_SPOOL") or os.environ.get("GAPSCOPE_CAPTURE_REQUEST"))
#: Whether that command is `gapscope capture`.
capturing = bool(os.environ.get("GAPSCOPE_CAPTURE_REQUEST"))

_VERSION = 1
_PREFIX = b"libgapscope_"
MAX_TEXT_BYTES = 64 * 1024

# Functions that return at once keep the interpreter's lock, because releasing it would take longer than the call.
_Quick = ctypes.PYFUNCTYPE(ctypes.c_int32)
_QuickText = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t)


class _Table(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("hook", ctypes.c_char_p),
        ("state", _Quick),
        (
            "start_capture",
            ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint32)),
        ),
        ("stop_capture", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint32)),
        ("capture_state", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint32)),
        ("push_label", _QuickText),
        ("pop_label", _Quick),
        ("instant_label", _QuickText),
        ("flush", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)),
        ("push_layer", ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)),
        ("pop_layer", ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_uint32)),
        ("own_time", ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int64)),
        ("pop_label_at", ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int64)),
    ]


# The least size of a table: all fields of the first version.
_MIN_TABLE_BYTES = _Table.push_layer.offset


class Hook:
    """A hook in this process. Every function returns the number of a `Status`."""

    def __init__(self, table: _Table, library: ctypes.CDLL) -> None:
        # The reference keeps the library mapped.
        self._library = library
        self.name: str = table.hook.decode("utf-8", "replace")
        self.state: Any = table.state
        self.start_capture: Any = table.start_capture
        self.stop_capture: Any = table.stop_capture
        self.capture_state: Any = table.capture_state
        self.push_label: Any = table.push_label
        self.pop_label: Any = table.pop_label
        self.instant_label: Any = table.instant_label
        self.flush: Any = table.flush
        layers = table.bytes >= _Table.own_time.offset
        self.push_layer: Any = table.push_layer if layers else None
        self.pop_layer: Any = table.pop_layer if layers else None
        self.own_time: Any = table.own_time if table.bytes >= _Table.pop_label_at.offset else None
        self.pop_label_at: Any = table.pop_label_at if table.bytes >= ctypes.sizeof(_Table) else None


class _LoadedLibrary(ctypes.Structure):
    # The first fields of struct dl_phdr_info.
    _fields_ = [
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("loaded_so_far", ctypes.c_uint64),
    ]


_Visit = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_LoadedLibrary), ctypes.c_size_t, ctypes.c_void_p)


class _Libraries:
    """The libraries that are loaded into this process."""

    def __init__(self) -> None:
        self._visit_all: Any = ctypes.PyDLL(None).dl_iterate_phdr
        self._visit_all.argtypes = [_Visit, ctypes.c_void_p]
        self._names: list[bytes] = []
        self._loaded_so_far = 0
        # The callbacks are made once, because ctypes takes long to make them.
        self._first = _Visit(self._see_count)
        self._every = _Visit(self._see_name)

    def _see_count(self, library: Any, _size: int, _data: Any) -> int:
        self._loaded_so_far = library.contents.loaded_so_far
        return 1

    def _see_name(self, library: Any, _size: int, _data: Any) -> int:
        name = library.contents.name
        if name:
            self._names.append(name)
        return 0

    def loaded_so_far(self) -> int:
        """Returns a counter that grows with each library that is loaded."""
        self._visit_all(self._first, None)
        return self._loaded_so_far

    def names(self) -> list[bytes]:
        self._names = []
        self._visit_all(self._every, None)
        return self._names


def _hook_in(path: bytes) -> Hook | None:
    try:
        # RTLD_NOLOAD opens only libraries that are loaded already.
        library = ctypes.CDLL(os.fsdecode(path), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        entry = library.gapscope_interface
    except (OSError, AttributeError):
        return None
    entry.argtypes = [ctypes.c_uint32]
    entry.restype = ctypes.POINTER(_Table)
    answer = entry(_VERSION)
    if not answer:
        return None
    table: _Table = answer.contents
    if table.version < _VERSION or table.bytes < _MIN_TABLE_BYTES:
        return None
    return Hook(table, library)


class _Finder:
    def __init__(self) -> None:
        self._libraries = _Libraries() if hasattr(ctypes.PyDLL(None), "dl_iterate_phdr") else None
        self._seen = 0
        self._hooks: tuple[Hook, ...] = ()

    def __call__(self) -> tuple[Hook, ...]:
        if self._libraries is None:
            return ()
        loaded = self._libraries.loaded_so_far()
        if loaded != self._seen:
            names = [name for name in self._libraries.names() if name.rsplit(b"/", 1)[-1].startswith(_PREFIX)]
            self._hooks = tuple(hook for hook in map(_hook_in, names) if hook is not None)
            self._seen = loaded
        return self._hooks


_finder: _Finder | None = None


def hooks() -> tuple[Hook, ...]:
    """Returns the hooks of this process. Takes a microsecond, and more when libraries were loaded since the last call."""
    global _finder
    if not session:
        return ()
    if _finder is None:
        _finder = _Finder()
    return _finder()


def encoded(name: object) -> bytes:
    """Encodes the name of a range, of any type, as hooks expect a text. A name that has no text gets its type's."""
    try:
        text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    except Exception:
        text = f"<{type(name).__name__}>"
    return text.replace("\0", "\ufffd").encode("utf-8", "replace")[:MAX_TEXT_BYTES]
