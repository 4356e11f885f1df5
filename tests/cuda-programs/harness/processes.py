"""Runs programs, with a limit, and reads the facts that they print."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PROGRAMS = HERE / "programs"


class Failed(Exception):
    """Something that a part needs did not work; the sentence says what."""


@dataclass
class Ran:
    """A program that has ended."""

    command: list
    status: int
    seconds: float
    stdout: str
    stderr: str
    # When it ended, on CLOCK_MONOTONIC, as seen by the parent that waited for it directly.
    ended_ns: int
    # What the program says that it did.
    facts: dict = field(default_factory=dict)

    def need(self, status=0):
        """Itself, when it ended with this status (negative: by a signal)."""
        if self.status != status:
            end = " | ".join((self.stderr or self.stdout).strip().splitlines()[-4:])
            raise Failed(f"{shown(self.command)} ended with {self.status}, not {status}: {end[-700:]}")
        return self


def shown(command):
    return " ".join(Path(word).name if word.startswith("/") else word for word in map(str, command))


def program(name, *arguments):
    """The command of a Python program of this folder."""
    return [sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]


def run(command, limit_s, environment=None, folder=None):
    """Runs a command with its own process group, which is killed at the limit."""
    command = [str(word) for word in command]
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in variables.items() if value is not None},
        cwd=folder,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        stdout, stderr = process.communicate(timeout=max(limit_s, 1))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, stderr = process.communicate()
        end = " | ".join(stderr.strip().splitlines()[-3:])
        raise Failed(f"{shown(command)} ran longer than {limit_s:.0f} s and was killed: {end[-500:]}") from None
    ended_ns = time.monotonic_ns()
    return Ran(command, process.returncode, time.monotonic() - start, stdout, stderr, ended_ns, _facts(stdout))


def _facts(stdout):
    """The last line of JSON, as region.py and the programs in C print it."""
    for line in reversed(stdout.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return {}
