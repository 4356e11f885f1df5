//! Makes slices (rows that a timeline draws) of the gaps of each GPU (times in which it runs nothing), by cause.

use crate::slice::{Slice, SliceKind};
use gapscope_analysis::gaps::{Cause, GapFinder};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::SubmissionId;

/// The part of a gap with one cause. A gap with several causes is drawn as several slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GapRow {
    pub cause: Cause,
    /// The length of the whole gap, with its other causes.
    pub gap_ns: i64,
    /// The submission whose work ends the gap.
    pub submission: Option<SubmissionId>,
}

/// The gaps by cause; empty when a trace does not allow the causes to be known.
#[derive(Debug, Default)]
pub(super) struct GapSlices {
    /// What the slices show, by the row of the slice.
    pub rows: Vec<GapRow>,
    /// The slices of each GPU.
    pub slices: Vec<Vec<Slice>>,
}

impl GapSlices {
    pub fn new(timeline: &Timeline) -> GapSlices {
        let mut gaps = GapSlices::default();
        // Missing work would look like gaps.
        if unknown_because(timeline.trace, CAUSES).is_some() {
            return gaps;
        }
        let rows = &mut gaps.rows;
        let finder = GapFinder::new(timeline);
        for gpu in 0..timeline.gpus.len() {
            let mut slices = Vec::new();
            finder.each_between(gpu, |gap, [_, work], parts| {
                for part in parts {
                    let end_ns = part.start_ns.saturating_add(part.duration_ns.max(0));
                    let interval = Interval::new(part.start_ns, end_ns);
                    slices.push(Slice::new(SliceKind::Gap, rows.len() as u32, interval));
                    rows.push(GapRow {
                        cause: part.cause,
                        gap_ns: gap.length_ns(),
                        submission: timeline.submission_id_of(work),
                    });
                }
            });
            gaps.slices.push(slices);
        }
        gaps
    }
}
