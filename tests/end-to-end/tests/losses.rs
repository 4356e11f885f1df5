//! Checks that the loss ledger is exact: it counts all rows without times, and nothing else.

use gapscope_trace::optional::Optional;
use gapscope_trace::{LossKind, Trace};

/// Checks that the ledger counts as many rows without times as there are. In the mode `command-buffer`, dispatches
/// and transfers have no times by choice, which is not a loss.
pub fn assert_exact(trace: &Trace) {
    let tables = &trace.tables;
    let unknown = |times: &Optional<i64>| times.iter().filter(|time| time.is_none()).count() as u64;
    let rows = [
        (
            LossKind::DispatchTimes,
            unknown(&tables.dispatches.duration_ns),
        ),
        (
            LossKind::TransferTimes,
            unknown(&tables.transfers.duration_ns),
        ),
        (
            LossKind::CommandBufferTimes,
            unknown(&tables.command_buffers.duration_ns),
        ),
    ];
    for (kind, untimed) in rows {
        assert_eq!(
            counted(trace, &kind),
            untimed,
            "{kind}: {:?}",
            trace.manifest.losses
        );
    }
}

/// Returns the count of the losses of a kind.
pub fn counted(trace: &Trace, kind: &LossKind) -> u64 {
    let losses = trace
        .manifest
        .losses
        .iter()
        .filter(|loss| loss.kind == *kind);
    losses.map(|loss| loss.count).sum()
}
