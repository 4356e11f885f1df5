//! The gaps of each GPU, as the analyses find them.

use crate::slice::{Kind, Slice};
use gapscope_analysis::gaps::{Cause, each_gap_between};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_timeline::Timeline;
use gapscope_trace::ids::SubmissionId;

/// One cause of a gap: a gap with several is drawn as several slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GapRow {
    pub cause: Cause,
    /// Length of the whole gap.
    pub gap_ns: i64,
    /// Id of the submission whose work ends it.
    pub submission: Option<SubmissionId>,
}

/// The gaps by cause.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    pub rows: Vec<GapRow>,
    /// By GPU.
    pub slices: Vec<Vec<Slice>>,
}

impl Gaps {
    pub fn of(timeline: &Timeline) -> Gaps {
        let mut gaps = Gaps::default();
        // Where work is missing, there would be gaps that were none.
        if unknown_because(timeline.trace, CAUSES).is_some() {
            return gaps;
        }
        let rows = &mut gaps.rows;
        for gpu in 0..timeline.gpus.len() {
            let mut slices = Vec::new();
            each_gap_between(timeline, gpu, |gap, [_, work], parts| {
                for part in parts {
                    slices.push(Slice {
                        start_ns: part.start_ns,
                        end_ns: part.start_ns.saturating_add(part.duration_ns.max(0)),
                        row: rows.len() as u32,
                        flow: 0,
                        kind: Kind::Gap,
                    });
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
