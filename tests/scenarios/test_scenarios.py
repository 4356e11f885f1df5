"""Writes each scenario as a trace, asks the built command, and compares its answer with the right one.

`python -m unittest` runs from this folder; `GAPSCOPE` names the command, else that of `target/debug` is taken.
`python test_scenarios.py --write-docs` writes the table of `docs/accuracy.md`.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from comparisons import COMPARISONS, Comparison
from damage import DAMAGES, is_open, timed
from joint_paths import JOINT_PATHS, JOINT_PROGRAMS
import other_programs  # noqa: F401  (adds its programs to those of the table)
import unrecorded_waits  # noqa: F401  (adds its ranks and programs to those of joint paths)
import unseen_programs  # noqa: F401  (adds to all of them)
from other_ranks import OTHER_RANKS
from programs import SCENARIOS, Answer, Scenario
from questions import Question
from several_ranks import RANKS, RanksScenario
from shared_blame import QUESTIONS
from trace_writer import TraceWriter

ROOT = Path(__file__).parents[2]
GAPSCOPE = os.environ.get("GAPSCOPE", str(ROOT / "target" / "debug" / "gapscope"))
DOCS = ROOT / "docs" / "accuracy.md"
TABLE_BEGINS = "<!-- scenarios: written by tests/scenarios/test_scenarios.py -->\n"
TABLE_ENDS = "<!-- end of scenarios -->\n"


def ask(*arguments: str) -> tuple[int, str]:
    """Returns the exit code and the output of the command. A message of an error is part of the output."""
    done = subprocess.run(
        [GAPSCOPE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return done.returncode, done.stdout or done.stderr


def contradictions(answer: Answer, findings: dict[str, Any], report: str) -> list[str]:
    """Returns what is wrong in the findings and the report of a program, in sentences."""
    wrong = []
    if findings["verdict"] not in answer.verdicts:
        wrong.append(f"the verdict is {findings['verdict']}, not {' or '.join(sorted(answer.verdicts))}")
    idle = {cause["cause"]: cause["total_ns"] for cause in findings["gaps"]}
    total = sum(idle.values())
    if answer.causes:
        first = max(idle, key=lambda cause: idle[cause], default="no cause")
        if first not in answer.causes:
            wrong.append(f"most idle time is {first}, not {' or '.join(sorted(answer.causes))}")
    for cause in answer.never_causes:
        if idle.get(cause, 0) * 10 > total:
            wrong.append(f"{cause} has {idle[cause] / total:.0%} of the idle time")
    advice = [f"{given['cause']}: {given['text']}" for given in findings.get("advice", [])]
    # The report breaks lines where the terminal ends.
    report = re.sub(r"\s+", " ", report)
    head = report.split(" Recorded ", 1)[0]
    for pattern in answer.headline:
        if not re.search(pattern, head, re.IGNORECASE):
            wrong.append(f"the headline does not say /{pattern}/: {head}")
    for pattern in answer.says:
        if not re.search(pattern, report, re.IGNORECASE):
            wrong.append(f"the report does not say /{pattern}/")
    for pattern in answer.never_says:
        if said := re.search(pattern, report, re.IGNORECASE):
            wrong.append(f"the report says {said[0]!r}")
    for pattern in answer.advises:
        if not any(re.search(pattern, given, re.IGNORECASE) for given in advice):
            wrong.append(f"no advice says /{pattern}/: {advice}")
    for pattern in answer.never_advises:
        wrong += [f"an advice is {given!r}" for given in advice if re.search(pattern, given, re.IGNORECASE)]
    return wrong


def check_program(program: Scenario) -> list[str]:
    """Returns what is wrong in the answer to a program."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "program.gapscope"
        program.write().write(trace)
        code, text = ask("report", "--json", str(trace))
        if code != 0:
            return [f"exit code {code}: {text}"]
        _, report = ask("report", "--full", str(trace))
        return contradictions(program.answer, json.loads(text), report)


def check_comparison(comparison: Comparison) -> list[str]:
    """Returns what is wrong in the comparison of two programs."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.gapscope", Path(folder) / "after.gapscope"
        comparison.before().write(before)
        comparison.after().write(after)
        code, text = ask("diff", "--json", *comparison.arguments, str(before), str(after))
        _, report = ask("diff", *comparison.arguments, str(before), str(after))
        return comparison.contradictions(code, json.loads(text), re.sub(r"\s+", " ", report))


def check_ranks(ranks: RanksScenario) -> list[str]:
    """Returns what is wrong in the report on a program of several ranks."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "program.gapscope"
        ranks.write(trace)
        code, report = ask("report", "--full", str(trace))
        report = re.sub(r"\s+", " ", report)
        wrong = [f"exit code {code}"] if code != 0 else []
        wrong += [
            f"it does not say /{pattern}/" for pattern in ranks.says if not re.search(pattern, report, re.I)
        ]
        for pattern in ranks.never_says:
            if said := re.search(pattern, report, re.I):
                wrong.append(f"it says {said[0]!r}")
        return wrong


def check_question(question: Question) -> list[str]:
    """Returns what is wrong in the answer to a question."""
    with tempfile.TemporaryDirectory() as folder:
        question.write(Path(folder))
        arguments = [argument.replace("FOLDER", folder) for argument in question.arguments]
        return question.contradictions(*ask(*arguments, str(Path(folder) / "program.gapscope")))


DAMAGED = (
    "two_processes_in_turns",
    "kernels_wait_for_copies",
    "layers_wait_for_their_weights",
    "four_workgroups",
    "allocation_in_each_step",
    "each_launch_takes_long",
    "read_back_each_token",
    "results_to_pageable_memory",
    "waits_that_return_5_us_early",
)
"""Programs of each verdict, which are damaged in each way."""


def find(trace: TraceWriter) -> dict[str, Any]:
    """Returns the findings on a trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.gapscope"
        trace.write(path)
        code, text = ask("report", "--json", str(path))
        if code not in (0, 3):
            raise AssertionError(f"exit code {code}: {text}")
        return json.loads(text)


def check_damaged(program: Scenario) -> list[str]:
    """Returns which damages to the trace of a program lead to another confident verdict."""
    whole = find(program.write())["verdict"]
    wrong = []
    for kind, change in DAMAGES.items():
        trace = program.write()
        change(trace, random.Random(4))
        if not timed(trace):
            continue
        findings = find(trace)
        if findings["verdict"] != whole and not is_open(findings):
            wrong.append(f"{kind}: {findings['verdict']}, not {whole}: {findings['verdict_sentence']}")
    return wrong


def table() -> str:
    """Returns the table of the documentation."""
    lines = ["| scenario | right answer |", "|---|---|"]
    lines += [f"| `{program.name}` | {program.answer.text} |" for program in [*SCENARIOS, *JOINT_PROGRAMS]]
    lines += [f"| `{comparison.name}` | {comparison.text} |" for comparison in COMPARISONS]
    lines += [f"| `{ranks.name}` | {ranks.text} |" for ranks in [*RANKS, *OTHER_RANKS, *JOINT_PATHS]]
    lines += [f"| `{question.name}` | {question.text} |" for question in QUESTIONS]
    return "\n".join(lines) + "\n"


class Scenarios(unittest.TestCase):
    """The answers of the command under test."""

    def check(self, check: Any, cases: list[Any]) -> None:
        """Runs `check` on each case, two at a time, and reports each wrong answer."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, wrong in zip(cases, pool.map(check, cases)):
                with self.subTest(case.name):
                    self.assertEqual(wrong, [])

    def test_programs(self) -> None:
        """Each program has its verdict, causes and advice."""
        self.check(check_program, [*SCENARIOS, *JOINT_PROGRAMS])

    def test_comparisons(self) -> None:
        """Each pair of programs is told apart as far as its work differs."""
        self.check(check_comparison, COMPARISONS)

    def test_ranks(self) -> None:
        """A rank is blamed only where it is late, with the reason."""
        self.check(check_ranks, [*RANKS, *OTHER_RANKS, *JOINT_PATHS])

    def test_questions(self) -> None:
        """Each question has its answer."""
        self.check(check_question, QUESTIONS)

    def test_damages(self) -> None:
        """A damaged trace has the verdict of the whole one, an open one, or a report that says so."""
        self.check(check_damaged, [program for program in SCENARIOS if program.name in DAMAGED])

    def test_documentation(self) -> None:
        """The table of the documentation is that of the scenarios."""
        text = DOCS.read_text(encoding="utf-8")
        written = text.split(TABLE_BEGINS, 1)[1].split(TABLE_ENDS, 1)[0]
        self.assertEqual(written, table(), "run test_scenarios.py --write-docs")


def write_docs() -> None:
    """Writes the table into the documentation."""
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(TABLE_BEGINS, 1)
    after = rest.split(TABLE_ENDS, 1)[1]
    DOCS.write_text(before + TABLE_BEGINS + table() + TABLE_ENDS + after, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write-docs"]:
        write_docs()
    else:
        unittest.main()
