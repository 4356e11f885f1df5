"""Ranges and marks, which label what the program is doing on the calling thread."""

from __future__ import annotations

import functools
import inspect
from types import TracebackType
from typing import Callable, ParamSpec, TypeVar

from . import _hooks
from ._status import Status

P = ParamSpec("P")
R = TypeVar("R")


class range:
    """A range of the program, as a context manager or a decorator.

        with gapscope.range("step"):
            train_step()

        @gapscope.range("data")
        def next_batch(): ...

    The range is a marker on the calling thread. GPU work that the thread submits (Vulkan) or launches (CUDA) meanwhile carries
    its text as a label, in the nesting of the ranges: `gapscope report --label step` is about that work alone.

    Outside of `gapscope record` it does nothing.
    """

    __slots__ = ("_pushed", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._pushed: tuple[_hooks.Hook, ...] = ()

    def __enter__(self) -> range:
        if _hooks.session:
            text = _hooks.encoded(self.text)
            # A hook that appears later must not end a range that it did not begin.
            self._pushed = tuple(hook for hook in _hooks.hooks() if hook.push_label(text, len(text)) == 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._pushed:
            for hook in self._pushed:
                hook.pop_label()
            self._pushed = ()

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


def mark(text: str) -> Status:
    """Marks this moment on the calling thread. Outside of `gapscope record` it does nothing and returns why."""
    if not _hooks.session:
        return Status.NOT_RECORDED
    encoded = _hooks.encoded(text)
    answers = [Status.from_code(hook.instant_label(encoded, len(encoded))) for hook in _hooks.hooks()]
    if not answers:
        return Status.NO_HOOK
    return Status.DONE if Status.DONE in answers else answers[0]
