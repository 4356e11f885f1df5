"""Captures the units of work, such as steps or tokens, that environment variables choose, as the Rust SDK does."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Callable

from ._capture import CaptureError, start_capture, stop_capture
from ._status import Status
from ._text import shown

#: The variables that ask for a capture and hold its path. The first one that is set counts; an empty one is not set.
_PATH_VARIABLES = ("GAPSCOPE_CAPTURE", "MLX_METAL_CAPTURE")
#: The greatest number of units, as in the Rust SDK.
_MOST_UNITS = 2**64 - 1
#: The most reasons that are said.
_MOST_REASONS = 64


class _NoCapture(Exception):
    """The reason why a unit is not captured; `expected` if the environment does not ask for this unit."""

    def __init__(self, sentence: str, *, expected: bool = False) -> None:
        super().__init__(sentence)
        self.expected = expected


class _Process:
    """The captures that the environment asks for: one in each process."""

    def __init__(self) -> None:
        # A program's `synchronize` may have units itself.
        self.lock = threading.RLock()
        #: The units that were counted.
        self.units = 0
        #: The units that are still to be captured, once the capture has started.
        self.left = 0
        #: The captured unit that has begun and not ended.
        self.captured: unit | None = None
        #: Whether the one capture has been made.
        self.spent = False
        self._said: set[str] = set()

    def begin(self, begun: unit, synchronize: Callable[[], object] | None) -> None:
        """Begins a unit; raises _NoCapture if it is not captured."""
        path = next((path for path in map(os.environ.get, _PATH_VARIABLES) if path), None)
        if path is None:
            raise _NoCapture("no capture was asked for: set GAPSCOPE_CAPTURE to the path of the capture", expected=True)
        skip, take = _count("GAPSCOPE_CAPTURE_SKIP", 0), _count("GAPSCOPE_CAPTURE_TAKE", 1)
        with self.lock:
            if self.spent:
                raise _NoCapture("the one capture of this process has been made", expected=True)
            if self.captured is not None:
                raise _NoCapture("another thread's unit is being captured", expected=True)
            if not self.left:
                self.units += 1
                if self.units <= skip:
                    raise _NoCapture(f"unit {self.units} is not captured: unit {skip + 1} is", expected=True)
                try:
                    started = start_capture(path, synchronize=synchronize)
                except CaptureError as error:
                    raise _NoCapture(str(error)) from None
                if not started:
                    raise _NoCapture(started.reason)
                self.left = take
            self.captured = begun

    def end(self, ended: unit, synchronize: Callable[[], object] | None) -> None:
        """Ends a unit, and the capture if this was its last unit; raises _NoCapture if that cannot be relied on."""
        with self.lock:
            if self.captured is not ended:
                return
            self.captured = None
            self.left -= 1
            if self.left:
                return
            try:
                stopped = stop_capture(synchronize=synchronize)
            except CaptureError as error:
                raise _NoCapture(str(error)) from None
            # Only a capture that succeeded is the one of the process.
            self.spent = stopped in (Status.DONE, Status.PENDING)
            if not stopped:
                raise _NoCapture(stopped.reason)

    def say(self, why: _NoCapture) -> None:
        """Says on standard error why there is no capture, unless none was asked for. Each reason is said once."""
        sentence = str(why)
        with self.lock:
            if why.expected or sentence in self._said or len(self._said) >= _MOST_REASONS:
                return
            self._said.add(sentence)
        # A program may have no standard error.
        if sys.stderr is not None:
            print(f"[gapscope] no capture: {sentence}", file=sys.stderr)


class _Thread(threading.local):
    def __init__(self) -> None:
        #: The units that the thread is in, the innermost last.
        self.units: list[unit] = []


_process = _Process()
_thread = _Thread()


class unit:
    """A unit of work, such as a step, that is captured if the environment asks for it.

        for batch in batches:
            with gapscope.unit(synchronize=torch.cuda.synchronize):
                train_step(batch)

    `GAPSCOPE_CAPTURE` (or `MLX_METAL_CAPTURE`) is the path of the capture. `GAPSCOPE_CAPTURE_SKIP` units pass first, and
    `GAPSCOPE_CAPTURE_TAKE` units are captured, by default one. A unit inside of another is a part of it. A process makes one
    such capture; after a failure the next unit is tried.

    `synchronize`: as for `start_capture`. `captured` says whether the unit is captured, and `reason` why it is not. The
    program goes on in any case: a reason that is not the environment's own choice is also said once on standard error.
    """

    __slots__ = ("_siblings", "_synchronize", "captured", "reason")

    def __init__(self, *, synchronize: Callable[[], object] | None = None) -> None:
        self._synchronize = synchronize
        self._siblings: list[unit] = []
        self.captured = False
        self.reason: str | None = "the unit has not begun"

    def __enter__(self) -> unit:
        self._siblings = _thread.units
        if self._siblings:
            outer = self._siblings[-1]
            self.captured, self.reason = outer.captured, outer.reason
        else:
            try:
                _process.begin(self, self._synchronize)
                self.captured, self.reason = True, None
            except _NoCapture as why:
                self._refuse(why)
        self._siblings.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self in self._siblings:
            self._siblings.remove(self)
        if self in self._siblings:
            # The same object was entered again inside of itself.
            return
        try:
            _process.end(self, self._synchronize)
        except _NoCapture as why:
            self._refuse(why)

    def _refuse(self, why: _NoCapture) -> None:
        self.captured, self.reason = False, str(why)
        _process.say(why)


def _count(variable: str, least: int) -> int:
    """Reads a number of units; a variable that is not set has the least."""
    value = os.environ.get(variable, "")
    if not value:
        return least
    digits = value.strip().removeprefix("+")
    if digits.isascii() and digits.isdigit() and least <= int(digits) <= _MOST_UNITS:
        return int(digits)
    raise _NoCapture(f"{variable}={shown(value)} is not understood: a whole number of units, {least} or more")
