"""Ranges and marks, which label what the program is doing on the calling thread."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from types import TracebackType
from typing import Callable, ParamSpec, TypeVar

from . import _hooks
from ._status import Status

P = ParamSpec("P")
R = TypeVar("R")


class _Open:
    """An open range: the hooks that began it, and the ranges that are open on its thread."""

    __slots__ = ("hooks", "left_ns", "siblings", "text")

    def __init__(self, text: bytes, hooks: tuple[_hooks.Hook, ...], siblings: list[_Open]) -> None:
        self.text = text
        self.hooks = hooks
        self.siblings = siblings
        # When another thread left the range; its own thread tells the hooks when it is next in here.
        self.left_ns: int | None = None

    def push(self) -> None:
        self.hooks = tuple(hook for hook in self.hooks if hook.push_label(self.text, len(self.text)) == 0)

    def pop(self) -> None:
        for hook in self.hooks:
            if self.left_ns is not None and hook.pop_label_at is not None:
                hook.pop_label_at(self.left_ns)
            else:
                hook.pop_label()


class _Thread(threading.local):
    def __init__(self) -> None:
        #: The open ranges of the thread, the innermost last.
        self.open: list[_Open] = []


_thread = _Thread()


def _begin(text: bytes) -> _Open | None:
    """Begins a range on the calling thread; None where no hook records it."""
    siblings = _thread.open
    _end_of_other_threads(siblings)
    # A hook that appears later must not end a range that it did not begin.
    pushed = tuple(hook for hook in _hooks.hooks() if hook.push_label(text, len(text)) == 0)
    if not pushed:
        return None
    opened = _Open(text, pushed, siblings)
    siblings.append(opened)
    return opened


def _end(opened: _Open) -> None:
    siblings = _thread.open
    if opened.siblings is not siblings:
        opened.left_ns = time.monotonic_ns()
        return
    _end_of_other_threads(siblings)
    _close(opened, siblings)


def _close(opened: _Open, siblings: list[_Open]) -> None:
    if siblings and siblings[-1] is opened:
        siblings.pop()
        opened.pop()
    elif opened in siblings:
        # Hooks end the innermost range: ranges inside of this one, as of other tasks, end with it and begin again.
        place = siblings.index(opened)
        inner = siblings[place + 1 :]
        for other in reversed(inner):
            other.pop()
        opened.pop()
        del siblings[place]
        for other in inner:
            other.push()


def _end_of_other_threads(siblings: list[_Open]) -> None:
    """Ends ranges of this thread that other threads have left."""
    for opened in [opened for opened in siblings if opened.left_ns is not None]:
        _close(opened, siblings)


class range:
    """A range of the program, as a context manager or a decorator.

        with gapscope.range("step"):
            train_step()

        @gapscope.range("data")
        def next_batch(): ...

    The range is a marker on the calling thread. GPU work that the thread submits (Vulkan) or launches (CUDA) meanwhile carries
    its text as a label, in the nesting of the ranges: `gapscope report --label step` is about that work alone. `text` may be
    any object; its `str` is the label. Ranges of tasks that take turns on a thread may end in any order.

    Outside of `gapscope record` it does nothing.
    """

    __slots__ = ("_entered", "text")

    def __init__(self, text: object) -> None:
        self.text = text
        # The same object may be entered again inside of itself, and by several threads at once.
        self._entered: list[tuple[int, _Open | None]] = []

    def __enter__(self) -> range:
        if _hooks.session:
            self._entered.append((threading.get_ident(), _begin(_hooks.encoded(self.text))))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entered:
            entered, thread = self._entered, threading.get_ident()
            # The last that this thread has entered, or else the last of all.
            own = [place for place, (by, _) in enumerate(entered) if by == thread]
            opened = entered.pop(own[-1] if own else -1)[1]
            if opened is not None:
                _end(opened)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(
                f"{getattr(function, '__qualname__', function)} gives way to other code of its thread, to which the range "
                "would apply too: put `with gapscope.range(…)` around the part that does not"
            )

        @functools.wraps(function)
        def within(*arguments: P.args, **named: P.kwargs) -> R:
            # Each call has a range of its own, because calls may nest and run on several threads.
            with range(self.text):
                return function(*arguments, **named)

        return within

    def __repr__(self) -> str:
        return f"gapscope.range({self.text!r})"


def mark(text: object) -> Status:
    """Marks this moment on the calling thread. Outside of `gapscope record` it does nothing and returns why."""
    if not _hooks.session:
        return Status.NOT_RECORDED
    encoded = _hooks.encoded(text)
    answers = [Status.from_code(hook.instant_label(encoded, len(encoded))) for hook in _hooks.hooks()]
    if not answers:
        return Status.NO_HOOK
    return Status.DONE if Status.DONE in answers else answers[0]
