//! Drops what a file has more than once, as files do that were joined from overlapping parts: work, calls and ranges that agree in
//! everything, their times included. Rows of a [`Profile`] go in; each stays once, and the rest is counted as a loss.
//!
//! Work and calls that are no longer than what profilers round may be alike. Nodes of graphs that run side by side may be, too.

use super::ROUNDING_NS;
use crate::profile::{DeviceWork, DeviceWorkKind, Profile, Span};
use gapscope_model::LossKind;
use rustc_hash::FxHashSet;

impl Profile {
    /// Drops repetitions of work and calls, and of ranges where there are any of these.
    pub(super) fn drop_repeated(&mut self) {
        let is_long = |span: Span| span.duration_ns > ROUNDING_NS;
        let graph_launches = self.graph_launches();
        let recorded = &mut self.recorded;
        let rows = |calls: usize, work: usize, ranges: usize| calls + work + ranges;
        let before = rows(
            recorded.calls.len(),
            recorded.work.len(),
            recorded.ranges.len(),
        );
        let mut seen = FxHashSet::default();
        (recorded.work).retain(|(process, correlation, work)| match work.span {
            _ if work.of_graph => true,
            _ if correlation.is_some_and(|call| graph_launches.contains(&(*process, call))) => true,
            Some(span) if is_long(span) => seen.insert((
                *process,
                *correlation,
                work.queue,
                span.start_ns,
                span.duration_ns,
                kind_of(work),
            )),
            _ => true,
        });
        let mut seen = FxHashSet::default();
        recorded.calls.retain(|(process, call)| {
            !is_long(call.span)
                || seen.insert((
                    *process,
                    call.thread,
                    call.correlation,
                    call.function,
                    call.span.start_ns,
                    call.span.duration_ns,
                ))
        });
        let after = rows(
            recorded.calls.len(),
            recorded.work.len(),
            recorded.ranges.len(),
        );
        if before == after {
            return;
        }
        let mut seen = FxHashSet::default();
        recorded.ranges.retain(|range| {
            seen.insert((
                range.process,
                range.thread,
                range.text,
                range.start_ns,
                range.end_ns,
            ))
        });
        let after = rows(
            recorded.calls.len(),
            recorded.work.len(),
            recorded.ranges.len(),
        );
        self.inventory.lose(
            LossKind::RepeatedEvents,
            before.saturating_sub(after) as u64,
            "the file has them more than once",
        );
    }
}

/// Returns what tells the kinds of work apart.
fn kind_of(work: &DeviceWork) -> (u8, u64) {
    match work.kind {
        DeviceWorkKind::Kernel { kernel, .. } => (0, u64::from(kernel.0)),
        DeviceWorkKind::Transfer { kind, bytes, .. } => (1 + kind as u8, bytes.unwrap_or(u64::MAX)),
        DeviceWorkKind::PageMove { kind, bytes } => (64 + kind as u8, bytes.unwrap_or(u64::MAX)),
        DeviceWorkKind::Graph => (128, 0),
    }
}
