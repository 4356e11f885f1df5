"""Texts of recorded programs in HTML: they may hold anything."""

from __future__ import annotations

import html
import unicodedata


def escaped(text: str, longest: int = 160) -> str:
    """A text without effect on the page: markup is escaped; control and direction characters are shown as �."""
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    # Cc: control, Cf: format, which turns the direction of what follows, Cs: half of a character.
    harmless = "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in shown)
    return html.escape(harmless, quote=True)
