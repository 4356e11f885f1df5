//! Adds up the work and the gaps of a window by slices of time and by labels.
//!
//! A timeline goes in; a [`Walk`] comes out, with a [`Sum`] for each slice and for each label.

use super::{PhaseLabels, Sum};
use crate::gaps::explain::Explainer;
use crate::gaps::visit::visit_gaps;
use crate::gaps::{Cause, GapPart};
use crate::slices::{Unions, cut, slice_of};
use gapscope_timeline::intervals::Interval;

/// The number of slices of the window: each is well below the share that a phase has.
pub(super) const SLICES: usize = 256;

/// The sums of one walk over all devices.
pub(super) struct Walk {
    pub(super) slices: Vec<Sum>,
    /// The sums of each of [`PhaseLabels::texts`], and of what is under none of these.
    pub(super) labels: Vec<Sum>,
}

impl Walk {
    pub(super) fn new(explainer: &Explainer, window: Interval, labels: &PhaseLabels) -> Walk {
        let timeline = explainer.timeline;
        let bounds = bounds_ns(window, SLICES);
        let mut walk = Walk {
            slices: vec![Sum::default(); SLICES],
            labels: vec![Sum::default(); labels.texts.len() + 1],
        };
        let (mut most_compute_ns, mut devices) = (0i64, 0u32);
        for (device, gpu) in timeline.gpus.iter().enumerate() {
            let mut slices = vec![Unions::default(); SLICES];
            let mut by_label = vec![Unions::default(); walk.labels.len()];
            let mut first_start_ns = vec![None; walk.labels.len()];
            let mut place = 0;
            for work in &gpu.works {
                let inside = work.interval.intersection(window);
                if inside.is_empty() {
                    continue;
                }
                let content = timeline.content(&work);
                let label = labels.index(timeline, &work);
                first_start_ns[label].get_or_insert(work.interval.start_ns);
                by_label[label].add(inside, content);
                walk.labels[label].works += 1;
                walk.labels[label].add_hull(inside);
                walk.slices[cut(&bounds, &mut place, inside, |slice, piece| {
                    slices[slice].add(piece, content);
                })]
                .works += 1;
            }
            let compute_ns = slices.iter().map(|unions| unions.compute.length_ns).sum();
            let computes_most = compute_ns > most_compute_ns;
            most_compute_ns = most_compute_ns.max(compute_ns);
            devices += u32::from(!gpu.works.is_empty());
            let slices = walk.slices.iter_mut().zip(&slices);
            for (sum, unions) in slices.chain(walk.labels.iter_mut().zip(&by_label)) {
                let parts = unions.parts();
                sum.busy = sum.busy.plus(parts);
                if computes_most {
                    sum.most_compute_ns = parts.compute_ns;
                }
            }
            let mut place = 0;
            visit_gaps(explainer, device, |gap, [_, after], parts| {
                let gap_ns = gap.intersection(window).length_ns();
                let label = labels.index(timeline, after);
                // The time until the first work of a label is no part of its phase.
                let is_before = first_start_ns[label]
                    .is_none_or(|first_start_ns| after.interval.start_ns <= first_start_ns);
                let label = Some(label).filter(|_| !is_before || labels.texts.is_empty());
                if let Some(label) = label {
                    let longest_ns = &mut walk.labels[label].longest_gap_ns;
                    *longest_ns = (*longest_ns).max(gap_ns);
                }
                for part in parts.iter().filter(|part| part.cause != Cause::Recording) {
                    walk.add_idle(&bounds, &mut place, part, label, window);
                }
                if gap_ns > 0 {
                    let slice = slice_of(&bounds, gap.intersection(window).start_ns);
                    let longest_ns = &mut walk.slices[slice].longest_gap_ns;
                    *longest_ns = (*longest_ns).max(gap_ns);
                }
            });
        }
        for sum in walk.slices.iter_mut().chain(&mut walk.labels) {
            sum.devices = devices;
        }
        walk
    }

    /// Adds idle time with a cause to its slices, and to its label where it has one.
    fn add_idle(
        &mut self,
        bounds: &[i64],
        place: &mut usize,
        part: &GapPart,
        label: Option<usize>,
        window: Interval,
    ) {
        let inside = part.interval().intersection(window);
        if inside.is_empty() {
            return;
        }
        let side = part.cause.side() as usize;
        let slices = &mut self.slices;
        cut(bounds, place, inside, |slice, piece| {
            slices[slice].sides[side] += piece.length_ns();
        });
        if let Some(label) = label {
            self.labels[label].sides[side] += inside.length_ns();
        }
    }
}

/// Returns the start of each of so many slices, and the end of the last.
pub(super) fn bounds_ns(window: Interval, slices: usize) -> Vec<i64> {
    let bound = |slice: usize| {
        let offset = i128::from(window.length_ns()) * slice as i128 / slices as i128;
        window.start_ns + offset as i64
    };
    (0..=slices).map(bound).collect()
}
