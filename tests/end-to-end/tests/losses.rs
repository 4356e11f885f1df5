//! Checks that the loss ledger is exact: it counts all rows without times, and nothing else.

use gapscope_trace::optional::Optional;
use gapscope_trace::{LossKind, Trace};

/// Checks that the ledger counts as many rows without times as there are. In the mode `command-buffer`, dispatches
/// and transfers have no times by choice, which is not a loss.
pub fn assert_exact(trace: &Trace) {
    let tables = &trace.tables;
    let unknown = |times: &Optional<i64>| times.iter().filter(|time| time.is_none()).count() as u64;
    let rows = [
        (LossKind::DispatchTimes, &tables.dispatches.duration_ns),
        (LossKind::TransferTimes, &tables.transfers.duration_ns),
        (
            LossKind::CommandBufferTimes,
            &tables.command_buffers.duration_ns,
        ),
    ];
    let losses = &trace.manifest.losses;
    for (kind, times) in rows {
        assert_eq!(counted(trace, &kind), unknown(times), "{kind}: {losses:?}");
    }
}

/// Returns true if every row has its time.
pub fn all_known(times: &Optional<i64>) -> bool {
    times.iter().all(|time| time.is_some())
}

/// Returns the count of the losses of a kind.
pub fn counted(trace: &Trace, kind: &LossKind) -> u64 {
    let losses = trace.manifest.losses.iter();
    let of_kind = losses.filter(|loss| loss.kind == *kind);
    of_kind.map(|loss| loss.count).sum()
}
