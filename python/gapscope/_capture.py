"""Captures a window of the GPU work as a trace of its own, with function names as in MLX."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from pathlib import Path
from typing import Callable

from . import _hooks
from ._hooks import Hook, hooks, session
from ._status import Status, refusal
from ._text import shown

#: How long the hook may take to receive the times of finished work, in nanoseconds.
_ARRIVES_WITHIN_NS = 10_000_000_000
#: The pause between two checks whether the capture is written, in seconds.
_PAUSE = 0.002


class CaptureError(RuntimeError):
    """A capture could not be started or written; `status` says why where a hook said so."""

    def __init__(self, sentence: str, status: Status | None = None) -> None:
        super().__init__(sentence)
        self.status = status


_lock = threading.Lock()
# The hooks of the open capture with its numbers there; the first hook has the path.
_open: list[tuple[Hook, int]] = []
# The path of the open capture, and that of the last one that was written.
_path: Path | None = None
_last: Path | None = None

#: What the hooks and the recorder may add to the name of a capture while they write it, in bytes.
_NAME_SPARE_BYTES = 16


def start_capture(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], *, synchronize: Callable[[], object] | None = None) -> Status:
    """Starts a capture: from here to `stop_capture` the GPU work of this process is also written as a trace of its own.

    `path`: folder to write, named NAME.gapscope; it must not exist. With `""` the window is only marked in the trace. Under
    `gapscope capture` the window becomes a capture, NAME.gapcapture; `last_capture` returns the path that was written.
    `synchronize`: a function that waits for the device, such as `torch.cuda.synchronize`, `mx.synchronize`. With it
    the window holds the work that is launched in it and no other; without it, work that was launched before and is
    still running belongs to the window, too, as far as it is recorded there.

    Outside of `gapscope record` it does nothing and returns why: `Status.NOT_RECORDED` or `Status.NO_HOOK`, and under a
    `gapscope capture` that was told the window, `Status.WINDOW_CHOSEN`. Under `gapscope record` it raises CaptureError, a RuntimeError as in MLX, when it cannot start.
    """
    global _path
    if not session:
        return Status.NOT_RECORDED
    found = hooks()
    if not found:
        return Status.NO_HOOK
    with _lock:
        if _open:
            raise CaptureError(f"cannot start a capture: {Status.ALREADY_CAPTURING}", Status.ALREADY_CAPTURING)
        checked = _checked(os.fsdecode(path)) if os.fspath(path) else ""
        name = os.fsencode(checked)
        since = time.monotonic_ns()
        if synchronize is not None:
            synchronize()
        for hook in found:
            number = ctypes.c_uint32()
            given = b"" if _open else name
            answer = Status.from_code(hook.start_capture(given, len(given), ctypes.byref(number)))
            if answer is Status.NOT_RECORDED:
                continue
            if not answer:
                _stop_all()
                raise CaptureError(f"cannot start a capture: {answer}", answer)
            _open.append((hook, number.value))
        _path = Path(checked) if checked else None
        _waited_since(since)
        return Status.DONE if _open else refusal(Status.NOT_RECORDED)


def stop_capture(*, synchronize: Callable[[], object] | None = None, timeout: float = 60.0) -> Status:
    """Ends the capture and waits until its trace is written, so that `load` can open it.

    `synchronize`: as for `start_capture`; give the same. `timeout`: seconds to wait; then it returns `Status.PENDING`, and
    the trace is complete later.

    Without an open capture it does nothing and returns why. Raises CaptureError when the trace could not be written.
    """
    global _last
    if not session:
        return Status.NOT_RECORDED
    with _lock:
        if not _open:
            return Status.NOT_CAPTURING
        (hook, number), path = _open[0], _path
        since = time.monotonic_ns()
        try:
            if synchronize is not None:
                synchronize()
        finally:
            # Nothing is recorded any more after the stop, if only windows are.
            _waited_since(since)
            since = time.monotonic_ns()
            answer = _stop_all()
    if not answer:
        raise CaptureError(f"the capture cannot be relied on: {answer}", answer)
    end = time.monotonic() + timeout
    while True:
        answer = Status.from_code(hook.capture_state(number))
        if answer is not Status.PENDING or time.monotonic() >= end:
            break
        time.sleep(_PAUSE)
    _waited_since(since)
    if answer not in (Status.DONE, Status.PENDING):
        raise CaptureError(f"the capture was not written: {answer}", answer)
    _last = path
    return answer


def last_capture() -> Path | None:
    """Returns the path of the last capture that `stop_capture` ended; None without one, or if it had no path."""
    return _last


def _waited_since(start_ns: int) -> None:
    """Tells the recording that this thread has waited because of a capture, so that this time is not the program's."""
    for hook in hooks()[:1]:
        if hook.own_time is not None:
            hook.own_time(start_ns)


def _stop_all() -> Status:
    """Ends the open capture and returns the first answer that is not DONE."""
    answers = [Status.from_code(hook.flush(_ARRIVES_WITHIN_NS)) for hook, _ in _open]
    # The hook with the path comes last, when the recorder has seen the ends of the others.
    while _open:
        hook, number = _open.pop()
        answers.append(Status.from_code(hook.stop_capture(number)))
    return next((answer for answer in answers if answer is not Status.DONE), Status.DONE)


def _checked(path: str) -> str:
    """Checks the path and makes it absolute, because the program may change its working directory."""
    if "\0" in path:
        raise CaptureError("the path of the capture holds a NUL byte: choose another name")
    absolute = os.path.abspath(path)
    parent, name = os.path.split(absolute)
    stem, extension = os.path.splitext(absolute)
    if _hooks.capturing and extension in (".gapscope", ".gapcapture"):
        absolute = f"{stem}.gapcapture"
    elif extension != ".gapscope":
        names = ".gapscope or .gapcapture" if _hooks.capturing else ".gapscope"
        raise CaptureError(f"{shown(absolute)} is not a name for a capture: end it with {names}")
    try:
        os.lstat(absolute)
        raise CaptureError(
            f"{shown(absolute)} is there already, and nothing is overwritten: choose another name, or remove it"
        )
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
            raise CaptureError(
                f"{shown(absolute)} has a part that is longer than the file system allows, or holds characters that it refuses: "
                "choose another name"
            ) from None
    if not os.path.isdir(parent):
        raise CaptureError(f"{shown(parent)} is not a folder: make it first")
    most = os.pathconf(parent, "PC_NAME_MAX") - _NAME_SPARE_BYTES
    if len(os.fsencode(name)) > most:
        raise CaptureError(f"the name of the capture has {len(os.fsencode(name))} bytes: it may have {most} here")
    if not os.access(parent, os.W_OK):
        raise CaptureError(f"{shown(parent)} cannot be written: choose another folder")
    return absolute

