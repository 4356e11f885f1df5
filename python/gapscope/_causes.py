"""Causes of idle time. Written from crates/analysis/src/gaps/cause.rs by a test of that crate."""

#: The colour of each cause; causes that belong together share a hue.
COLOURS = {
    "host-late": "#c15b11",
    "host-compile": "#9d3e07",
    "host-allocate": "#7a2203",
    "submit-call": "#f5a60f",
    "host-call": "#cab890",
    "process-start": "#410c17",
    "host-function": "#dc8012",
    "after-host-wait": "#a26ecd",
    "other-queue": "#0d56c0",
    "display": "#c51cfc",
    "queue-handover": "#25bbff",
    "host-signal": "#97a6bb",
    "external-wait": "#610f87",
    "page-move": "#fcffae",
    "launch-latency": "#44977e",
    "context-switch": "#250554",
    "graph-launch": "#26f4e1",
    "within-command-buffer": "#d5e37e",
    "recording": "#30474e",
    "unknown": "#745d79",
}
