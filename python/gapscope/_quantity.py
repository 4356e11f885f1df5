"""Formats numbers with their units."""

from __future__ import annotations

UNKNOWN = "unknown"


def duration(nanoseconds: int | float | None) -> str:
    """Formats a duration with three significant digits, such as `12.3 ms`."""
    if nanoseconds is None:
        return UNKNOWN
    value = float(nanoseconds)
    # From 999.5 ns on, the rounded number would be 1000.
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if abs(value) < 999.5 * size:
            return f"{_figures(value / size)} {unit}"
    return f"{_figures(value / 1e9)} s"


def share(part: int | float | None, whole: int | float | None) -> str:
    """Formats a share, such as `12.3 %`."""
    if part is None or not whole:
        return UNKNOWN
    return f"{100 * part / whole:.1f} %"


def count(number: int | None) -> str:
    """Formats a count, such as `12,345`."""
    return UNKNOWN if number is None else f"{number:,}"


def _figures(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    if value == int(value) and abs(value) < 1000:
        digits = 0
    return f"{value:,.{digits}f}"
