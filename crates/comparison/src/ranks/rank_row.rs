//! The types of the findings on one rank (a process of a distributed program), a row of the report's table.

use gapscope_analysis::gaps::Cause;
use gapscope_analysis::verdict::{Bound, VerdictPart};
use gapscope_trace::UnreadTable;
use gapscope_trace::ids::DeviceId;
use schemars::JsonSchema;
use serde::Serialize;

/// One rank.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RankRow {
    /// The number of the rank.
    pub rank: u32,
    /// The number of the rank on its machine.
    pub local_rank: Option<u32>,
    /// The machine, by the boot that the trace names: ranks of one machine have the same. Absent where the trace names none.
    pub machine: Option<String>,
    /// The names of the rank's devices.
    pub devices: Vec<String>,
    /// The ids of the rank's devices in its trace.
    pub device_ids: Vec<DeviceId>,
    /// What bounds the rank. Unknown where nothing of it was timed.
    pub verdict: Bound,
    /// The verdict in a sentence.
    pub verdict_sentence: String,
    /// The parts of the devices' time, the largest first.
    pub verdict_evidence: Vec<VerdictPart>,
    /// The idle time of the devices. Absent where nothing was timed, or where work without known times may have run in much of that
    /// time.
    pub idle: Option<Idle>,
    /// The length of the recording.
    pub wall_ns: Option<i64>,
    /// Time in which a device of the rank ran something, collectives included.
    pub gpu_busy_ns: Option<i64>,
    /// Time in which a device of the rank ran a collective.
    pub collective_ns: Option<i64>,
    /// Tables of the trace that could not be read. Figures that need them are unknown.
    pub unread: Vec<UnreadTable>,
    /// The number of kernel executions. Absent where not all could be read.
    pub dispatch_count: Option<u64>,
    /// The number of collectives on the device. Absent where not all could be read.
    pub collective_count: Option<u64>,
    /// Time from the rank's arrivals at collectives to the last arrivals there, as far as that is more than the clocks' error. Absent where
    /// no arrivals can be compared.
    pub waited_ns: Option<i64>,
    /// The number of collectives at which the rank arrived last, later than each other rank by more than the clocks' error. Absent where no
    /// arrivals can be compared.
    pub last_count: Option<u64>,
    /// The skew of those: what the first rank there waited for this one.
    pub last_skew_ns: Option<i64>,
}

/// Idle time of a rank's devices in the analysed window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Idle {
    /// The device time that was judged.
    pub window_ns: i64,
    /// The idle part of it.
    pub total_ns: i64,
    /// The cause of the most of the idle time.
    pub cause: Option<Cause>,
    /// The idle time with this cause.
    pub cause_ns: Option<i64>,
}
