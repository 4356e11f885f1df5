//! Checks the times of the work inside each command buffer against the command buffer's own time, which reveals wrong
//! clocks.
//!
//! Command buffers are compared whose own times and those of all their work are known. These bounds must hold:
//!
//! | mode | bound |
//! |---|---|
//! | `dispatch` | the union of the work is inside the command buffer: no work begins before it or ends after it |
//! | `dispatch-serialised` | the same, and the sum of the work is at most the command buffer's duration: nothing overlaps |
//! | `command-buffer` | nothing to compare: the work has no times |
//!
//! A CUDA graph has no times besides those of its nodes, and is not compared.
//!
//! In `dispatch` mode the sum may exceed the duration, since dispatches overlap: this is no fault. A union far below
//! the duration is no fault either: barriers, unrecorded commands and the sampling itself take the rest. A bound that
//! is broken by more than the tolerance means that clocks or timestamps are wrong.

use gapscope_timeline::Timeline;
use gapscope_timeline::quantity::Percent;
use gapscope_timeline::thresholds::{DRIFT_NS, DRIFT_SHARE};
use gapscope_trace::ids::{CommandBufferId, DeviceId, QueueId};
use gapscope_trace::manifest::{Api, SamplingMode};
use gapscope_trace::tables::Timing;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// Drift over all command buffers that have both times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Drift {
    /// Command buffers compared.
    pub count: u64,
    /// Sum of the durations of their work, over the sum of their own durations. Above 1 where work overlaps.
    pub sum_ratio: Option<f64>,
    /// Sum of the unions of their work, over the sum of their own durations: at most 1 where the clocks are right.
    pub union_ratio: Option<f64>,
    /// Median over command buffers of union / duration.
    pub p50_union_ratio: Option<f64>,
    /// The smallest such ratio.
    pub min_union_ratio: Option<f64>,
    /// The greatest such ratio.
    pub max_union_ratio: Option<f64>,
    /// Command buffers that break the bound of the mode by more than the tolerance: clock or sampling trouble.
    pub violation_count: u64,
    /// The worst command buffers, the worst first.
    pub worst: Vec<DriftRow>,
    /// Says in one sentence what was compared, in which direction, and what was found.
    pub sentence: String,
}

/// Drift of one command buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct DriftRow {
    /// Id of the command buffer.
    pub command_buffer: CommandBufferId,
    /// Its duration.
    pub duration_ns: i64,
    /// Sum of the durations of its work.
    pub sum_ns: i64,
    /// Union of its work.
    pub union_ns: i64,
    /// How far its work reaches out of its own interval.
    pub outside_ns: i64,
}

/// A command buffer, and the time by which it breaks the bound of the sampling mode.
struct Compared {
    /// 0 where the bound holds.
    over_ns: i64,
    row: DriftRow,
}

/// Checks all command buffers of the recording, and lists those that break their bounds most, `longest` at most.
pub fn drift(timeline: &Timeline, longest: usize) -> Drift {
    let manifest = &timeline.trace.manifest;
    let mode = manifest.sampling_mode;
    let of_cuda = manifest
        .devices
        .iter()
        .filter(|d| matches!(d.api, Api::Cuda | Api::Hip));
    let of_cuda: Vec<DeviceId> = of_cuda.map(|device| device.id).collect();
    if !of_cuda.is_empty() && of_cuda.len() == manifest.devices.len() {
        return Drift::default();
    }
    let on_cuda = manifest
        .queues
        .iter()
        .filter(|q| of_cuda.contains(&q.device));
    let on_cuda: Vec<QueueId> = on_cuda.map(|queue| queue.id).collect();
    if mode == SamplingMode::CommandBuffer {
        return Drift {
            sentence: "Only command buffers are timed in command-buffer mode: nothing to compare."
                .to_owned(),
            ..Drift::default()
        };
    }
    let table = &timeline.trace.tables.command_buffers;
    let mut compared: Vec<Compared> = Vec::new();
    let mut ratios: Vec<f64> = Vec::new();
    // Durations of the command buffers, and sums and unions (time in which anything ran) of the work in them.
    let (mut own, mut sum, mut union) = (0i128, 0i128, 0i128);
    let mut violation_count = 0;
    for (row, times) in timeline.command_buffers.iter().enumerate() {
        let measured =
            table.timing[row] == Timing::Measured && !on_cuda.contains(&table.queue[row]);
        let Some(interval) = times
            .own
            .filter(|_| measured && times.timed > 0 && times.untimed == 0)
        else {
            continue;
        };
        let duration_ns = interval.length_ns();
        let outside_ns = (interval.start_ns - times.ran.first_start_ns).max(0)
            + (times.ran.last_end_ns - interval.end_ns).max(0);
        let over_ns = match mode {
            SamplingMode::DispatchSerialised => {
                outside_ns.max(times.ran.sum_ns.saturating_sub(duration_ns))
            }
            _ => outside_ns,
        };
        own += i128::from(duration_ns);
        sum += i128::from(times.ran.sum_ns);
        union += i128::from(times.ran.union_ns);
        if duration_ns > 0 {
            ratios.push(times.ran.union_ns as f64 / duration_ns as f64);
        }
        let tolerance_ns = DRIFT_NS.max((duration_ns as f64 * DRIFT_SHARE) as i64);
        violation_count += u64::from(over_ns > tolerance_ns);
        compared.push(Compared {
            over_ns,
            row: DriftRow {
                command_buffer: table.id[row],
                duration_ns,
                sum_ns: times.ran.sum_ns,
                union_ns: times.ran.union_ns,
                outside_ns,
            },
        });
    }
    let count = compared.len() as u64;
    let worst = |Compared { over_ns, row }: &Compared| {
        (
            Reverse(*over_ns),
            row.union_ns - row.duration_ns,
            row.command_buffer,
        )
    };
    if longest < compared.len() {
        compared.select_nth_unstable_by_key(longest, worst);
        compared.truncate(longest);
    }
    compared.sort_by_key(worst);
    ratios.sort_by(f64::total_cmp);
    let ratio = |part: i128| (own > 0).then(|| part as f64 / own as f64);
    let bound = match mode {
        SamplingMode::DispatchSerialised => {
            "ends inside its command buffer and sums to at most its duration"
        }
        _ => "runs inside its command buffer",
    };
    let sentence = match (count, violation_count, ratio(union)) {
        (0, ..) => "No command buffer has both its own times and times of all its work.".to_owned(),
        (_, 0, Some(ratio)) => format!(
            "Work {bound} in all {count} command buffers compared, and covers {} of their time.",
            Percent(ratio)
        ),
        (_, 0, None) => format!("Work {bound} in all {count} command buffers compared."),
        _ => format!(
            "In {violation_count} of {count} command buffers work breaks the bound that it {bound}: do not trust these times."
        ),
    };
    Drift {
        count,
        sum_ratio: ratio(sum),
        union_ratio: ratio(union),
        p50_union_ratio: ratios
            .get(ratios.len().div_ceil(2).saturating_sub(1))
            .copied(),
        min_union_ratio: ratios.first().copied(),
        max_union_ratio: ratios.last().copied(),
        violation_count,
        worst: compared.into_iter().map(|compared| compared.row).collect(),
        sentence,
    }
}
