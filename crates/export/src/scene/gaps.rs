//! The gaps of each GPU, as the analyses find them.

use super::Group;
use crate::lanes::Sharing;
use crate::slice::{Kind, Slice};
use gapscope_analysis::Timeline;
use gapscope_analysis::gaps::{Cause, idle_time};

/// One cause of a gap: a gap with several is drawn as several slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GapRow {
    pub cause: Cause,
    /// Length of the whole gap.
    pub gap_ns: i64,
    /// Id of the submission whose work ends it.
    pub submission: Option<u64>,
}

/// Draws the gaps by cause on a track of each GPU's group.
pub(super) fn draw(timeline: &Timeline, groups: &mut [Group]) -> Vec<GapRow> {
    let mut rows = Vec::new();
    let Some(window) = timeline.work_window() else {
        return rows;
    };
    let mut slices: Vec<Vec<Slice>> = groups.iter().map(|_| Vec::new()).collect();
    for gap in idle_time(timeline, window, 0, usize::MAX).longest {
        for part in &gap.parts {
            slices[gap.device as usize].push(Slice {
                start_ns: part.start_ns,
                end_ns: part.start_ns.saturating_add(part.duration_ns.max(0)),
                row: rows.len() as u32,
                flow: 0,
                kind: Kind::Gap,
            });
            rows.push(GapRow {
                cause: part.cause,
                gap_ns: gap.duration_ns,
                submission: gap.submission,
            });
        }
    }
    for (group, slices) in groups.iter_mut().zip(slices) {
        group.add("gaps by cause".to_owned(), None, slices, Sharing::Apart);
    }
    rows
}
