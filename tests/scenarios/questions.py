"""Questions about programs whose answer is known: a command, and what it must and must not say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trace_writer import TraceWriter


@dataclass(frozen=True)
class Question:
    """A command about a program. Patterns are regular expressions, in any case."""

    name: str
    text: str
    """The right answer in a phrase, for the documentation."""
    write: Callable[[Path], None]
    """Writes the program as `program.gapscope`, and what else the command needs, into a folder."""
    arguments: tuple[str, ...]
    """The command and its options, before the program."""
    says: tuple[str, ...] = ()
    never_says: tuple[str, ...] = ()
    exit_code: int = 0

    def contradictions(self, code: int, answer: str) -> list[str]:
        """Returns what is wrong in the answer, in sentences."""
        answer = re.sub(r"\s+", " ", answer)
        wrong = [] if code == self.exit_code else [f"exit code {code}: {answer}"]
        wrong += [
            f"it does not say /{pattern}/: {answer}"
            for pattern in self.says
            if not re.search(pattern, answer, re.IGNORECASE)
        ]
        for pattern in self.never_says:
            if said := re.search(pattern, answer, re.IGNORECASE):
                wrong.append(f"it says {said[0]!r}")
        return wrong


def alone(trace: Callable[[], TraceWriter]) -> Callable[[Path], None]:
    """Returns a function that writes one program."""
    return lambda folder: trace().write(folder / "program.gapscope")
