"""Damages traces of programs with known verdicts: rows get lost, repeated, moved, or lose their sense.

A damage must not lead to another confident verdict: the answer is that of the whole trace, or it is open, or the report says that
the trace is damaged. Waits that are gone leave nothing behind that could tell, so that they are dropped together with their loss.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from trace_writer import TraceWriter

Rows = list[dict[str, Any]]
Damage = Callable[[TraceWriter, random.Random], None]

DAMAGES: dict[str, Damage] = {}

WORK = ("dispatches", "transfers")
MOVE_NS = 2_000_000
WAITS = ("wait-queue-idle", "wait-device-idle", "wait-event", "wait-fences", "wait-semaphores", "copy-and-wait")


def damage(change: Damage) -> Damage:
    """Adds a kind of damage."""
    DAMAGES[change.__name__] = change
    return change


def drop(trace: TraceWriter, table: str, is_lost: Callable[[dict[str, Any]], bool]) -> None:
    """Drops the rows of a table that are lost."""
    trace.rows[table] = [row for row in trace.rows[table] if not is_lost(row)]


def timed(trace: TraceWriter) -> Rows:
    """Returns the rows of work with known times, in order of time."""
    rows = [row for table in WORK for row in trace.rows[table] if row.get("start_ns") is not None]
    return sorted(rows, key=lambda row: row["start_ns"])


def middle(trace: TraceWriter) -> int:
    """Returns the median start of work."""
    rows = timed(trace)
    return rows[len(rows) // 2]["start_ns"]


def busiest_queue(trace: TraceWriter) -> int:
    """Returns the queue with most work."""
    queues = [row["queue"] for row in timed(trace)]
    return max(set(queues), key=queues.count)


def is_in(part: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], bool]:
    """Returns whether a row with times is in a part; rows without times are in none."""
    return lambda row: row.get("start_ns") is not None and part(row)


@damage
def work_lost_at_random(trace: TraceWriter, random_numbers: random.Random) -> None:
    for table in WORK:
        drop(trace, table, lambda row: random_numbers.random() < 0.4)


@damage
def work_of_a_stream_lost(trace: TraceWriter, _: random.Random) -> None:
    queue = busiest_queue(trace)
    for table in WORK:
        drop(trace, table, lambda row: row["queue"] == queue)


@damage
def last_work_lost(trace: TraceWriter, _: random.Random) -> None:
    from_ns = middle(trace)
    for table in WORK:
        drop(trace, table, is_in(lambda row: row["start_ns"] >= from_ns))


@damage
def first_work_lost(trace: TraceWriter, _: random.Random) -> None:
    until_ns = middle(trace)
    for table in WORK:
        drop(trace, table, is_in(lambda row: row["start_ns"] < until_ns))


@damage
def launches_lost(trace: TraceWriter, random_numbers: random.Random) -> None:
    drop(trace, "submissions", lambda row: random_numbers.random() < 0.6)


@damage
def waits_lost(trace: TraceWriter, random_numbers: random.Random) -> None:
    before = len(trace.rows["host_calls"])
    drop(trace, "host_calls", lambda row: row["call"] in WAITS and random_numbers.random() < 0.7)
    lost = before - len(trace.rows["host_calls"])
    if lost > 0:
        trace.losses.append({"what": "host calls", "count": lost, "reason": "the log was full"})


@damage
def clock_of_a_stream_late(trace: TraceWriter, _: random.Random) -> None:
    queue = busiest_queue(trace)
    for row in timed(trace):
        row["start_ns"] += MOVE_NS if row["queue"] == queue else 0


@damage
def clock_of_a_device_early(trace: TraceWriter, _: random.Random) -> None:
    device = dict(trace.queues)[busiest_queue(trace)]
    for row in timed(trace):
        row["start_ns"] -= MOVE_NS if dict(trace.queues)[row["queue"]] == device else 0


@damage
def rows_repeated(trace: TraceWriter, random_numbers: random.Random) -> None:
    for table in WORK:
        rows = trace.rows[table]
        rows += [dict(row) for row in rows if random_numbers.random() < 0.5]


@damage
def times_of_zero(trace: TraceWriter, random_numbers: random.Random) -> None:
    for row in timed(trace):
        if random_numbers.random() < 0.4:
            row["start_ns"], row["duration_ns"] = 0, 0


@damage
def huge_durations(trace: TraceWriter, random_numbers: random.Random) -> None:
    for row in timed(trace):
        if random_numbers.random() < 0.05:
            row["duration_ns"] *= 1000


@damage
def launches_exchanged(trace: TraceWriter, random_numbers: random.Random) -> None:
    rows = [row for row in timed(trace) if row.get("submission") is not None]
    submissions = [row["submission"] for row in rows]
    random_numbers.shuffle(submissions)
    for row, submission in zip(rows, submissions):
        row["submission"] = submission


def is_open(findings: dict[str, Any]) -> bool:
    """Returns whether findings leave their verdict open, or say first what is wrong with the trace."""
    sentence = findings["verdict_sentence"]
    notes = {note["kind"] for note in findings.get("headline", [])}
    says = ("at least", "at most", "possible", "may be", "not known", "trace does not say")
    scope = " ".join(note["sentence"] for note in findings.get("headline", []) if note["kind"] == "scope")
    return (
        findings["verdict"] == "unknown"
        or (findings["verdict"] == "mixed" and "unknown" in sentence)
        or "without known times" in scope
        or any(words in sentence for words in says)
        or bool(notes & {"contradiction", "untimed-work", "part-of-file", "lost-calls"})
    )
