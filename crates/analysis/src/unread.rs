//! Lists the tables that each finding is made from, and makes the reason why a finding is unknown whose tables could
//! not be read. A table that could not be read whole is in the trace's `unread`. Each constant lists names of tables.

use gapscope_trace::Trace;
use gapscope_trace::tables::{
    Bindings, Buffers, CommandBuffers, CounterValues, Counters, Dependencies, Dispatches, Frames,
    HostCalls, KernelMetrics, Kernels, Labels, Markers, Memory, OpaqueWork, PcSamples, Samples,
    Stacks, Submissions, Table, Transfers,
};

/// The tables of the devices' work, on which busy time and the judged window rest.
pub const WORK: &[&str] = &[
    Dispatches::NAME,
    Transfers::NAME,
    OpaqueWork::NAME,
    CommandBuffers::NAME,
];

/// The tables on which the causes of idle time and the verdict rest. Kernels are among them, since collectives are recognised by
/// their names.
pub const CAUSES: &[&str] = &[
    Dispatches::NAME,
    Transfers::NAME,
    OpaqueWork::NAME,
    CommandBuffers::NAME,
    Submissions::NAME,
    Dependencies::NAME,
    HostCalls::NAME,
    Kernels::NAME,
];

/// The tables on which the code behind idle time rests: those of [`CAUSES`], and those that hold code and its labels.
pub const CODE: &[&str] = &joined::<{ CAUSES.len() + CODE_TABLES.len() }>(CAUSES, CODE_TABLES);

const CODE_TABLES: &[&str] = &[
    Samples::NAME,
    Stacks::NAME,
    Frames::NAME,
    Markers::NAME,
    Labels::NAME,
];

/// The tables on which the steps and their parts rest: those of [`CAUSES`], and those that name steps.
pub const STEPS: &[&str] = &joined::<{ CAUSES.len() + STEP_NAMES.len() }>(CAUSES, STEP_NAMES);

const STEP_NAMES: &[&str] = &[Markers::NAME, Labels::NAME];

/// Puts two lists one after the other. `N` is the sum of their lengths.
const fn joined<const N: usize>(
    first: &[&'static str],
    second: &[&'static str],
) -> [&'static str; N] {
    assert!(N == first.len() + second.len());
    let mut all = [""; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() {
            first[at]
        } else {
            second[at - first.len()]
        };
        at += 1;
    }
    all
}

/// The tables on which the findings on kernels rest.
pub const KERNELS: &[&str] = &[Dispatches::NAME, Kernels::NAME];

/// The tables on which the profiles of single launches rest.
pub const PROFILED: &[&str] = &[KernelMetrics::NAME, Kernels::NAME];

/// The tables on which samples of instructions rest.
pub const SAMPLED: &[&str] = &[PcSamples::NAME, Kernels::NAME];

/// The tables on which the findings on labels rest.
pub const LABELS: &[&str] = &[
    Labels::NAME,
    Dispatches::NAME,
    Transfers::NAME,
    OpaqueWork::NAME,
    CommandBuffers::NAME,
];

/// The tables on which the findings on command buffers rest.
pub const COMMAND_BUFFERS: &[&str] = &[CommandBuffers::NAME, Submissions::NAME, OpaqueWork::NAME];

/// The tables on which the findings on transfers rest.
pub const TRANSFERS: &[&str] = &[Transfers::NAME];

/// The tables on which the findings on device memory rest.
pub const MEMORY: &[&str] = &[Memory::NAME];

/// The tables on which counters rest, including those that are added up.
pub const COUNTERS: &[&str] = &[
    Counters::NAME,
    CounterValues::NAME,
    Memory::NAME,
    Submissions::NAME,
];

/// The tables on which notes on conditions rest.
pub const CONDITIONS: &[&str] = &[Counters::NAME, CounterValues::NAME];

/// The tables on which the dependencies between kernels and transfers rest.
pub const DATAFLOW: &[&str] = &[
    Dispatches::NAME,
    Transfers::NAME,
    CommandBuffers::NAME,
    Submissions::NAME,
    Dependencies::NAME,
    Bindings::NAME,
    Buffers::NAME,
    Kernels::NAME,
];

/// Returns why findings that rest on `tables` are unknown, in a sentence, or `None` where they are known.
pub fn unknown_because(trace: &Trace, tables: &[&str]) -> Option<String> {
    let unread = trace.unread.iter().filter(|u| tables.contains(&u.table));
    let unread: Vec<String> = unread.map(ToString::to_string).collect();
    (!unread.is_empty()).then(|| format!("Unknown, because {}.", unread.join(", ")))
}
