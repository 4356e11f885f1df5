"""Tells whether this process is recorded, and why a call did nothing."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """The result of a call. Only `DONE` is true; every other value says why nothing, or not everything, was done."""

    #: The call succeeded. From `status()`: this process is being recorded.
    DONE = 0
    NOT_RECORDED = 1
    OFF = 2
    ALREADY_CAPTURING = 3
    NOT_CAPTURING = 4
    BAD_TEXT = 5
    NO_LABEL = 6
    PENDING = 7
    NOT_WRITTEN = 8
    NO_SESSION = 9
    TIMED_OUT = 10
    INTERNAL = 11
    #: A hook that is newer than this package gave an unknown answer.
    UNKNOWN = -1
    NO_HOOK = -2
    WINDOW_CHOSEN = -3

    def __bool__(self) -> bool:
        return self is Status.DONE

    def __str__(self) -> str:
        return self.reason

    @property
    def reason(self) -> str:
        """The status as a sentence."""
        return _REASONS[self]

    @classmethod
    def from_code(cls, code: int) -> Status:
        """Returns the status for a number that a hook returned."""
        try:
            return cls(code)
        except ValueError:
            return cls.UNKNOWN


_REASONS = {
    Status.DONE: "done",
    Status.NOT_RECORDED: "this process is not recorded: start it with `gapscope record -- …`",
    Status.OFF: "this process is recorded, and recording is off at present",
    Status.ALREADY_CAPTURING: "another capture of this process is open",
    Status.NOT_CAPTURING: "no capture is open",
    Status.BAD_TEXT: "the text is longer than a hook takes",
    Status.NO_LABEL: "this thread has no open range",
    Status.PENDING: "the capture is still being written",
    Status.NOT_WRITTEN: "the capture could not be written; what gapscope printed says why",
    Status.NO_SESSION: "the gapscope that recorded this process is gone",
    Status.TIMED_OUT: "GPU work was still running when the time was over",
    Status.INTERNAL: "an internal error of the hook; nothing was changed",
    Status.UNKNOWN: "the hook gave an answer that this version of the package does not know",
    Status.NO_HOOK: "this process has not used a GPU through Vulkan or CUDA yet",
    Status.WINDOW_CHOSEN: "`gapscope capture` was told which window to capture: leave its option for the window out",
}


def status() -> Status:
    """Tells whether this process is being recorded.

    `DONE`: it is. `OFF`: it is, but not at this moment. `NO_HOOK`: it runs under `gapscope record` and has not used a GPU
    yet. `NOT_RECORDED`: it does not run under `gapscope record`. `WINDOW_CHOSEN`: it runs under `gapscope capture` with an
    option that chooses the window, so that the program cannot.
    """
    from ._hooks import hooks, session

    if not session:
        return Status.NOT_RECORDED
    found = {Status.from_code(hook.state()) for hook in hooks()}
    for best in (Status.DONE, Status.OFF):
        if best in found:
            return best
    return refusal(found.pop()) if found else Status.NO_HOOK


def refusal(status: Status) -> Status:
    """Returns the reason for a hook's answer. The hook of `gapscope capture` says that it does not record the program's windows."""
    from . import _hooks

    return Status.WINDOW_CHOSEN if status is Status.NOT_RECORDED and _hooks.capturing else status
