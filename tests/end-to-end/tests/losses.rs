//! The loss ledger is exact: what has no times is counted there, and nothing else.

use gapscope_trace::optional::Optional;
use gapscope_trace::{LossKind, Trace};

/// Checks that the rows without times are as many as the ledger says. In `command-buffer` mode dispatches and transfers
/// have none by choice, which is not a loss.
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

/// The count of losses of some kind.
pub fn counted(trace: &Trace, kind: &LossKind) -> u64 {
    let losses = trace
        .manifest
        .losses
        .iter()
        .filter(|loss| loss.kind == *kind);
    losses.map(|loss| loss.count).sum()
}
