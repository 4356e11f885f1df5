//! The loss ledger is exact: what has no times is counted there, and nothing else.

use gapscope_trace::Trace;

/// Rows without times, as (dispatches, command buffers).
pub fn untimed(trace: &Trace) -> (u64, u64) {
    let unknown = |times: &[Option<i64>]| times.iter().filter(|time| time.is_none()).count() as u64;
    (
        unknown(&trace.tables.dispatches.duration_ns),
        unknown(&trace.tables.command_buffers.duration_ns),
    )
}

/// The count of losses of some kind.
pub fn counted(trace: &Trace, what: &str) -> u64 {
    let losses = trace
        .manifest
        .losses
        .iter()
        .filter(|loss| loss.what.contains(what));
    losses.map(|loss| loss.count).sum()
}
