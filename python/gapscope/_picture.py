"""Draws the timeline as SVG: for each device a bar for each slice of time, as high as its busy share, and below it a strip
in the colour of the cause of its idle time."""

from __future__ import annotations

from typing import Any

from ._causes import COLOURS
from ._quantity import duration, share
from ._text import escaped

WIDTH, LEFT, BAR, STRIP, BETWEEN, AXIS = 880, 150, 26, 5, 9, 16

BUSY, OTHER = "#0072b2", "#888888"


def picture(report: dict[str, Any]) -> str:
    """Returns the SVG, or an empty text when no work has times."""
    activity = report.get("activity") or {}
    rows = [row for row in activity.get("rows", []) if row.get("slices")]
    if not rows:
        return ""
    window_ns = activity["window"]["end_ns"] - activity["window"]["start_ns"]
    height = len(rows) * (BAR + STRIP + BETWEEN) + AXIS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'style="width:100%;max-width:{WIDTH}px;font:11px sans-serif" fill="currentColor">'
        f"<title>When the GPU was busy</title>"
    ]
    for index, row in enumerate(rows):
        parts.append(_row(report, row, index * (BAR + STRIP + BETWEEN)))
    start_ns = activity["window"]["start_ns"] - report.get("start_ns", 0)
    y = height - 3
    parts.append(f'<text x="{LEFT}" y="{y}">{duration(start_ns)}</text>')
    parts.append(f'<text x="{WIDTH}" y="{y}" text-anchor="end">{duration(start_ns + window_ns)}</text>')
    return "".join(parts) + "</svg>"


def _row(report: dict[str, Any], row: dict[str, Any], top: int) -> str:
    slices = row["slices"]
    step = (WIDTH - LEFT) / len(slices)
    base = top + BAR
    name = _name(report, row)
    parts = [
        f'<text x="{LEFT - 6}" y="{base - 8}" text-anchor="end">{escaped(name, 24)}<title>{escaped(name)}</title></text>',
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT}" height="{BAR}" opacity="0.07"/>',
    ]
    for index, piece in enumerate(slices):
        x = LEFT + index * step
        # Bars overlap slightly, so that no hairlines show between them.
        wide = f'x="{x:.2f}" width="{step + 0.2:.2f}"'
        if piece["busy_ns"] > 0 and piece["length_ns"] > 0:
            part = min(piece["busy_ns"] / piece["length_ns"], 1.0)
            # Any work at all is visible.
            tall = max(part * BAR, 0.8)
            text = f"busy {share(piece['busy_ns'], piece['length_ns'])} of {duration(piece['length_ns'])}"
            parts.append(
                f'<rect {wide} y="{base - tall:.2f}" height="{tall:.2f}" fill="{BUSY}"><title>{text}</title></rect>'
            )
        cause = piece.get("idle_cause")
        if cause:
            colour = COLOURS.get(cause, OTHER)
            text = f"idle: {escaped(str(cause))}"
            parts.append(f'<rect {wide} y="{base + 1}" height="{STRIP}" fill="{colour}"><title>{text}</title></rect>')
    return "".join(parts)


def _name(report: dict[str, Any], row: dict[str, Any]) -> str:
    devices = report.get("devices", [])
    index = row.get("device", -1)
    device = devices[index] if 0 <= index < len(devices) else {}
    queue = row.get("queue_id")
    if queue is None:
        return str(device.get("name", "device"))
    names = [found.get("name") for found in device.get("queues", []) if found.get("queue_id") == queue]
    return str(names[0] if names and names[0] else f"queue {queue}")
