//! Finds, from the order of submissions, which submissions wait for others because of CUDA's default stream.
//!
//! A submission to the default stream waits for all earlier submissions to blocking streams of its device, and a submission to
//! a blocking stream waits for all earlier ones to the default stream. Non-blocking streams are independent.
//!
//! Only effective waits are kept: for the last submission of each stream, if it came after the previous one on the
//! waiting stream (which waited for everything older), and if it had not finished when the call began. So each
//! submission is in at most one pair with each default stream, however many streams there are. A stream is a queue of
//! CUDA.

use gapscope_timeline::{Standing, Timeline};
use gapscope_trace::ids::DeviceId;
use gapscope_trace::tables::StreamKind;
use std::collections::BTreeMap;

/// The rows of two submissions, of which one waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamWait {
    pub(super) submission: u32,
    /// The row of the submission that is awaited.
    pub(super) waits_for: u32,
}

/// The streams of a device that take part in the order, as indices of queues.
#[derive(Default)]
struct Streams {
    default: Vec<u32>,
    blocking: Vec<u32>,
}

/// The last submission to a stream.
#[derive(Clone, Copy)]
struct Last {
    row: u32,
    /// The submission's position in the order of all calls.
    place: usize,
}

/// Returns the waits by the order of the default stream, sorted.
pub(super) fn stream_waits(timeline: &Timeline) -> Vec<StreamWait> {
    let mut devices: BTreeMap<DeviceId, Streams> = BTreeMap::new();
    for (index, queue) in timeline.queues.iter().enumerate() {
        let rows = &timeline.trace.manifest.queues;
        let Some(row) = queue.row.and_then(|row| rows.get(row as usize)) else {
            continue;
        };
        let streams = devices.entry(row.device).or_default();
        match row.kind.as_deref() {
            Some(kind) if kind == StreamKind::Default.as_str() => {
                streams.default.push(index as u32)
            }
            Some(kind) if kind == StreamKind::Blocking.as_str() => {
                streams.blocking.push(index as u32)
            }
            _ => {}
        }
    }
    devices.retain(|_, streams| !streams.default.is_empty() && !streams.blocking.is_empty());
    let mut all = Vec::new();
    for streams in devices.values() {
        add_device(timeline, streams, &mut all);
    }
    all.sort_unstable();
    all
}

/// Adds the waits on one device to `all`, from its submissions in the order of their calls.
fn add_device(timeline: &Timeline, streams: &Streams, all: &mut Vec<StreamWait>) {
    let mut is_default = vec![None; timeline.queues.len()];
    for queue in &streams.default {
        is_default[*queue as usize] = Some(true);
    }
    for queue in &streams.blocking {
        is_default[*queue as usize] = Some(false);
    }
    // The queue of a submission.
    let of = |row: &u32| timeline.submissions[*row as usize].queue as usize;
    let rows = 0..timeline.submissions.len() as u32;
    let mut rows: Vec<u32> = rows.filter(|row| is_default[of(row)].is_some()).collect();
    let ran = |default| rows.iter().any(|row| is_default[of(row)] == Some(default));
    if !ran(true) || !ran(false) {
        return;
    }
    rows.sort_unstable_by_key(|row| timeline.call_order(*row));

    let calls_ns = &timeline.trace.tables.submissions.start_ns;
    let holds = |by: u32, row: u32| match timeline.standing(by) {
        Standing::Timed(work) => work.end_ns > calls_ns[row as usize],
        Standing::Untimed | Standing::NoWork(_) => true,
    };
    let mut lasts = vec![None::<Last>; timeline.queues.len()];
    // For each default stream: the blocking streams that got something since it last did.
    let mut fresh: Vec<Vec<u32>> = vec![Vec::new(); streams.default.len()];
    for (place, row) in rows.into_iter().enumerate() {
        let queue = of(&row);
        let mut hold = |last: Last| {
            if holds(last.row, row) {
                all.push(StreamWait {
                    submission: row,
                    waits_for: last.row,
                });
            }
        };
        if is_default[queue] == Some(true) {
            let at = (streams.default.iter()).position(|default| *default as usize == queue);
            for blocking in at.map(|at| fresh[at].drain(..)).into_iter().flatten() {
                lasts[blocking as usize].into_iter().for_each(&mut hold);
            }
        } else {
            let since = lasts[queue].map_or(0, |last| last.place);
            let newer = |last: &Last| lasts[queue].is_none() || last.place > since;
            let defaults = streams.default.iter();
            let defaults = defaults.filter_map(|default| lasts[*default as usize]);
            defaults.filter(newer).for_each(&mut hold);
            for (default, fresh) in streams.default.iter().zip(&mut fresh) {
                // The queue is in `fresh` already where its last submission came after the default stream's.
                let known = match (lasts[queue], lasts[*default as usize]) {
                    (Some(mine), Some(default)) => mine.place > default.place,
                    (Some(_), None) => true,
                    (None, _) => false,
                };
                if !known {
                    fresh.push(queue as u32);
                }
            }
        }
        lasts[queue] = Some(Last { row, place });
    }
}
