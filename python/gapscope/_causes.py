"""Causes of idle time. Written from crates/analysis/src/gaps/cause.rs by a test of that crate."""

#: The colour of each cause; causes that belong together share a hue.
COLOURS = {
    "host-late": "#d26a1a",
    "host-compile": "#a5522c",
    "host-allocate": "#8b2b05",
    "submit-call": "#e0991c",
    "host-call": "#f0b27a",
    "host-function": "#c4803d",
    "after-host-wait": "#ae6fbf",
    "other-queue": "#115da5",
    "queue-handover": "#65b0ff",
    "host-signal": "#b3a6b6",
    "external-wait": "#7d4a8c",
    "launch-latency": "#409e76",
    "graph-launch": "#57e6bf",
    "within-command-buffer": "#ccd166",
    "recording": "#4a4e57",
    "unknown": "#716c79",
}
