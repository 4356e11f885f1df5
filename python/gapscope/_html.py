"""Shows a trace in a notebook as HTML."""

from __future__ import annotations

from typing import Any, Iterable

from ._causes import COLOURS
from ._picture import OTHER, picture
from ._quantity import UNKNOWN, count, duration, share
from ._text import escaped

ROWS = 5
CELL = "padding:1px 10px 1px 0;text-align:right"
FIRST = "padding:1px 10px 1px 0;text-align:left"


def page(report: dict[str, Any], name: str) -> str:
    """Returns a page with verdict, facts, picture, the largest causes of idle time, the slowest kernels, and losses."""
    program, *arguments = map(str, report.get("command") or [name])
    # The folder of the program matters less than its arguments.
    command = " ".join([program.rsplit("/", 1)[-1], *arguments])
    parts = [
        f'<div style="font-family:sans-serif;max-width:900px"><div style="opacity:.7">{escaped(command)}</div>',
        _unread(report),
        f"<div><b>{escaped(str(report.get('verdict', UNKNOWN)).upper())}</b> "
        f"{escaped(str(report.get('verdict_sentence', '')), 400)}</div>",
        f'<div style="margin:4px 0">{_facts(report)}</div>',
        picture(report) or ("" if report.get("unread") else "<div>No GPU work has known times.</div>"),
        '<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start">',
        _causes(report),
        _kernels(report),
        "</div>",
        f'<div style="opacity:.7">{_losses(report)}</div></div>',
    ]
    return "".join(parts)


def failure(name: str, sentence: str) -> str:
    """Returns what to show when there are no findings."""
    return f"<div><b>{escaped(name)}</b>: {escaped(sentence, 400)}</div>"


def _unread(report: dict[str, Any]) -> str:
    unread = report.get("unread") or []
    if not unread:
        return ""
    sentences = [f"{escaped(str(table['file']))} cannot be read ({escaped(str(table['reason']), 300)})" for table in unread]
    return f"<div><b>{'; '.join(sentences)}. Figures that need this data are unknown.</b></div>"


def _facts(report: dict[str, Any]) -> str:
    error_ns = report.get("clock_error_ns")
    facts = [
        f"recorded {duration(report.get('wall_ns'))}",
        f"GPU busy {duration(report.get('gpu_busy_ns'))} ({share(report.get('gpu_busy_ns'), report.get('wall_ns'))})",
        f"{count(report.get('dispatch_count'))} dispatches",
        f"{escaped(str(report.get('sampling_mode', UNKNOWN)))} sampling",
        f"times ±{duration(error_ns)}" if error_ns is not None else "error of times unknown",
    ]
    return " · ".join(facts)


def _causes(report: dict[str, Any]) -> str:
    gaps = sorted(report.get("gaps") or [], key=lambda gap: -gap["total_ns"])[:ROWS]
    if not gaps:
        return ""
    idle_ns = sum(gap["total_ns"] for gap in report["gaps"])
    rows = [
        (_swatch(gap["cause"]) + escaped(str(gap["cause"])), duration(gap["total_ns"]), share(gap["total_ns"], idle_ns))
        for gap in gaps
    ]
    return _table(("idle by cause", "total", "of idle"), rows)


def _kernels(report: dict[str, Any]) -> str:
    slowest = sorted(report.get("kernels") or [], key=lambda kernel: -(kernel.get("total_ns") or 0))[:ROWS]
    if not slowest:
        return ""
    rows = [
        (
            _kernel(kernel),
            count(kernel.get("count")),
            duration(kernel.get("total_ns")),
            share(kernel.get("total_ns"), report.get("gpu_busy_ns")),
        )
        for kernel in slowest
    ]
    return _table(("kernel", "count", "total", "of busy"), rows)


def _kernel(kernel: dict[str, Any]) -> str:
    """Returns the whole name, since names may differ anywhere, with the name in the code as its tooltip."""
    name = escaped(str(kernel["name"]), 300)
    full_name = kernel.get("full_name")
    return f'<span title="{escaped(str(full_name), 2000)}">{name}</span>' if full_name else name


def _losses(report: dict[str, Any]) -> str:
    losses = report.get("losses", [])
    if not losses:
        return "No loss while recording is known." if report.get("unread") else "Nothing was lost."
    lost = [f"{count(loss['count'])} {escaped(str(loss['what']))}: {escaped(str(loss['reason']), 300)}" for loss in losses]
    return "Not recorded: " + "; ".join(lost) + "."


def _swatch(cause: str) -> str:
    colour = COLOURS.get(cause, OTHER)
    return f'<span style="display:inline-block;width:9px;height:9px;margin-right:5px;background:{colour}"></span>'


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a table of cells that are HTML already."""

    def line(cells: Iterable[str], tag: str) -> str:
        styled = (f'<{tag} style="{CELL if i else FIRST}">{cell}</{tag}>' for i, cell in enumerate(cells))
        return f"<tr>{''.join(styled)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f'<table style="border-collapse:collapse;margin:6px 0">{line(head, "th")}{body}</table>'
