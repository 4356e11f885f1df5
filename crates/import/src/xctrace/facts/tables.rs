//! Lists the tables of an export of xctrace (Apple's recorder) that an import reads, with the columns that they must
//! have.

use crate::xctrace::table::Table;

/// Returns a table whose absence is not noted.
const fn table(schema: &'static str, gives: &'static str) -> Table {
    Table {
        schema,
        gives,
        needed: false,
    }
}

/// Returns a table whose absence the trace notes.
const fn needed(schema: &'static str, gives: &'static str) -> Table {
    Table {
        schema,
        gives,
        needed: true,
    }
}

/// The tables that an import reads, the most important ones first.
pub(crate) const TABLES: [Table; 21] = [
    needed("metal-gpu-intervals", "times of GPU work"),
    needed(
        "metal-application-command-buffer-submissions",
        "command buffers and their commits",
    ),
    table("time-info", "times on the machine's own clock"),
    table(
        "metal-application-encoders-list",
        "labels of command buffers and encoders",
    ),
    table(
        "metal-command-buffer-completed",
        "when command buffers were seen finished",
    ),
    table("metal-command-buffer-error", "command buffers that failed"),
    table("metal-gpu-info", "the name of the GPU"),
    table("device-gpu-info", "the name of the GPU"),
    table(
        "metal-application-event-interval",
        "debug groups and completion handlers",
    ),
    table("os-signpost", "labels of the SDK"),
    table("metal-driver-intervals", "the driver's work on the host"),
    table("graphics-compiler-activity-intervals", "shader compilation"),
    table("metal-shader-profiler-shader-list", "names of kernels"),
    table("metal-resource-allocations", "allocations of memory"),
    table("metal-gpu-state-intervals", "GPU use by other processes"),
    table(
        "gpu-performance-state-intervals",
        "the GPU's performance state",
    ),
    table("device-thermal-state-intervals", "the thermal state"),
    table(
        "metal-gpu-execution-points",
        "times of GPU work where intervals are missing",
    ),
    table(
        "metal-gpu-submission-to-command-buffer-id",
        "times of GPU work where intervals are missing",
    ),
    table("graphics-compiler-spill-events", "register spills"),
    table(
        "metal-shader-profiler-intervals",
        "samples of the shader profiler",
    ),
];

/// Returns the columns that a table must have; the rows of a table that lacks one are lost.
pub(super) fn columns(table: &str) -> &'static [&'static str] {
    match table {
        "metal-gpu-intervals" => &["start", "duration", "process"],
        "metal-application-command-buffer-submissions" => {
            &["start", "duration", "process", "cmdbuffer-id"]
        }
        "metal-application-encoders-list" => &["encoder-id", "process"],
        "metal-command-buffer-completed" => &["timestamp", "cmdbuffer-id"],
        "metal-command-buffer-error" => &["timestamp", "cmdbuffer-id", "error-code"],
        "metal-gpu-info" => &["gpu-name"],
        "device-gpu-info" => &["device-name"],
        "time-info" => &["mabs-epoch", "timebase-info"],
        "metal-application-event-interval" => &["start", "duration", "event-type", "event-label"],
        "os-signpost" => &[
            "time",
            "thread",
            "process",
            "event-type",
            "identifier",
            "subsystem",
            "message",
        ],
        "metal-driver-intervals" => &[
            "start",
            "duration",
            "gpu-driver-name",
            "event-depth",
            "event-label",
        ],
        "graphics-compiler-activity-intervals" => &["start", "duration", "program-type"],
        "metal-shader-profiler-shader-list" => &["name", "id"],
        "metal-resource-allocations" => {
            &["timestamp", "event-type", "resource-id", "resource-size"]
        }
        "metal-gpu-state-intervals" => &["start", "duration", "state"],
        "gpu-performance-state-intervals" => &["duration", "gpu-performance-state"],
        "device-thermal-state-intervals" => &["start", "duration", "thermal-state"],
        "metal-gpu-execution-points" => &["timestamp", "function", "gpu-submission-id"],
        "metal-gpu-submission-to-command-buffer-id" => &["cmdbuffer-id", "gpu-submission-id"],
        "graphics-compiler-spill-events" => &["spilled-bytes"],
        _ => &[],
    }
}
