"""The parts by name."""

from dataclasses import dataclass
from typing import Callable

PARTS = {}


@dataclass
class Part:
    name: str
    run: Callable
    # Limit in seconds.
    limit_s: int
    # Python modules without which it cannot run.
    needs: tuple
    # GPUs for which it is made; with fewer it does what it can.
    gpus: int
    help: str


def part(name, limit_s=120, needs=(), gpus=1):
    """Registers a part: a function of a Workbench and a Result."""

    def register(function):
        help_text = function.__doc__.strip().splitlines()[0]
        PARTS[name] = Part(name, function, limit_s, tuple(needs), gpus, help_text)
        return function

    return register
