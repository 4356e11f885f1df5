"""The program's own, which must run as it would without gapscope."""

SAID = "the program's own"
