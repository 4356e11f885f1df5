"""Makes texts of programs, which may contain anything, harmless in HTML and in a terminal."""

from __future__ import annotations

import html
import unicodedata


def escaped(text: str, longest: int = 160) -> str:
    """Escapes markup, and replaces control and direction characters by �. A long text is cut."""
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    # Cc are control characters, Cf format characters, which may turn the direction of the text, Cs surrogates.
    harmless = "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in shown)
    return html.escape(harmless, quote=True)


def shown(text: str) -> str:
    """Replaces the characters of a text that would steer a terminal."""
    return "".join(c if c.isprintable() else "·" for c in text)
