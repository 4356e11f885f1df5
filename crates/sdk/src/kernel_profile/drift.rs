//! Compares the times of dispatches with those of their command buffers, by label. Dispatches that take longer than
//! the command buffers around them point to a wrong clock or to overlap; dispatches that take much less leave time of
//! which nothing is listed. Where only passes are timed, these are compared in place of dispatches.

use super::contents::ProfileContents;
use super::entry::{CommandBufferId, Sampling};
use super::shard::TimedKind;
use crate::interval::Interval;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::Arc;

/// An excess over the command buffers up to this share counts as noise.
const NOISE_SHARE: f64 = 0.05;
/// An excess from this share on is an error.
const WRONG_SHARE: f64 = 0.10;
/// Command buffers of which more than this share is not covered hold something else: the fences and the starts of
/// dispatches take less.
const UNCOVERED_SHARE: f64 = 0.10;

/// The comparison of a label's dispatches with its command buffers. Only command buffers count whose own time and all
/// of whose listed dispatches' times are known; without instances ([`super::CommandBufferId`]) the sums of the label are
/// compared.
///
/// ```
/// use gapscope_sdk::kernel_profile::{CommandBufferEntry, DispatchEntry, Drift, Profile, Verdict};
///
/// let profile = Profile::new();
/// let id = Some(profile.command_buffer());
/// let (start_ns, end_ns) = (Some(1_000), Some(2_000));
/// profile.record_command_buffer(CommandBufferEntry {
///     id, label: "step".into(), start_ns, end_ns, dispatches: 1, ..CommandBufferEntry::default()
/// });
/// profile.record_dispatch(DispatchEntry {
///     command_buffer: id,
///     cb_label: "step".into(),
///     start_gpu_ns: Some(1_100),
///     end_gpu_ns: Some(1_900),
///     ..DispatchEntry::default()
/// });
/// let Drift { difference_ns, uncovered_ns, verdict, .. } = &profile.snapshot().drift[0];
/// assert_eq!((*difference_ns, *uncovered_ns, *verdict), (-200, 200, Verdict::Uncovered));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// The label.
    pub label: String,
    /// The work that was compared with the command buffers: `dispatches`, or `passes` where only these were timed.
    pub compared: &'static str,
    /// The number of command buffers that were compared.
    pub command_buffers: u64,
    /// The time of these command buffers in nanoseconds.
    pub command_buffer_ns: u64,
    /// The sum of the times of their dispatches.
    pub dispatch_sum_ns: u64,
    /// The time in which any of these dispatches ran. It is no more than the command buffers' if the clocks are
    /// right; `None` without instances.
    pub dispatch_busy_ns: Option<u64>,
    /// `dispatch_sum_ns` less `command_buffer_ns`: positive if the dispatches are longer in sum.
    pub difference_ns: i64,
    /// The difference as a share of `command_buffer_ns`.
    pub share: f64,
    /// The part of `command_buffer_ns` in which none of the dispatches ran: waits between them, copies and render
    /// passes, and dispatches that are not listed. Without instances it may be more than this.
    pub uncovered_ns: u64,
    /// The meaning of the difference.
    pub verdict: Verdict,
}

impl Drift {
    /// Returns the share of the command buffers' time in which any of the dispatches ran, from 0 to 1.
    ///
    /// ```
    /// # fn example(drift: &gapscope_sdk::kernel_profile::Drift) {
    /// println!("dispatches cover {:.0} %", drift.covered_share() * 100.0);
    /// # }
    /// ```
    pub fn covered_share(&self) -> f64 {
        1.0 - self.uncovered_ns as f64 / (self.command_buffer_ns as f64).max(1.0)
    }
}

/// The meaning of a drift; [`Drift`] shows how to get one.
///
/// ```
/// # use gapscope_sdk::kernel_profile::Verdict;
/// fn is_to_be_relied_on(verdict: Verdict) -> bool {
///     verdict != Verdict::Inconsistent
/// }
/// # assert!(is_to_be_relied_on(Verdict::Overlapping));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// The dispatches fit into the command buffers and cover 90 % of them or more, or exceed them by no more than 5 %.
    Consistent,
    /// The dispatches leave more than 10 % of the command buffers uncovered: copies, render passes, waits, or dispatches
    /// that are not listed, such as those of helper functions that take wgpu's own encoder.
    Uncovered,
    /// The dispatches are longer in sum because they overlap; the time in which any ran fits.
    Overlapping,
    /// The dispatches are longer in sum by more than 5 %, and no instances tell whether they overlap. Dispatches that
    /// are timed one after another are an upper bound of what they take together.
    Unexplained,
    /// The time in which any dispatch ran exceeds the command buffers by more than 10 %, or with a barrier after each
    /// their sum does: a clock or sampling error.
    Inconsistent,
}

/// The sums of one label.
#[derive(Default)]
struct Sums {
    command_buffers: u64,
    command_buffer_ns: u64,
    dispatch_sum_ns: u64,
    /// The time in which any dispatch ran; `None` without instances.
    dispatch_busy_ns: Option<u64>,
}

/// The dispatches of a label that name no instance of a command buffer.
#[derive(Default)]
struct LabelDispatches {
    /// The sum of the known times.
    sum_ns: u64,
    /// The number of dispatches without a known time.
    untimed: u64,
}

/// What is known of the dispatches (or passes) of a command buffer: their intervals, `None` for unknown times.
type Intervals = Vec<Option<Interval>>;

/// Returns the drift of each label that can be compared, the one with most time first.
pub(super) fn drifts(contents: &ProfileContents) -> Vec<Drift> {
    let merged = &contents.merged;
    let sampling = contents.info.sampling;
    let by_passes = sampling == Sampling::Pass;
    let mut by_instance: FxHashMap<CommandBufferId, Intervals> = FxHashMap::default();
    let mut by_label: FxHashMap<Arc<str>, LabelDispatches> = FxHashMap::default();
    for row in merged.passes.iter().filter(|_| by_passes) {
        if let Some(id) = row.entry.command_buffer {
            by_instance.entry(id).or_default().push(row.interval());
        }
    }
    for row in merged.dispatches.iter().filter(|_| !by_passes) {
        match row.command_buffer {
            Some(id) => by_instance.entry(id).or_default().push(row.interval()),
            None => {
                let label = by_label.entry(Arc::clone(&row.cb_label)).or_default();
                match row.duration_ns() {
                    Some(ns) => label.sum_ns = label.sum_ns.saturating_add(ns),
                    None => label.untimed += 1,
                }
            }
        }
    }
    let times_work =
        by_passes || matches!(sampling, Sampling::Dispatch | Sampling::DispatchSerialised);
    let mut with_instances: FxHashMap<&str, Sums> = FxHashMap::default();
    for row in &merged.command_buffers {
        let (Some(id), Some(interval)) = (row.entry.id, row.interval()) else {
            continue;
        };
        let listed = match by_instance.get(&id) {
            Some(listed) => listed.as_slice(),
            None if times_work && row.has_dispatches => &[],
            None => continue,
        };
        let known: Option<Vec<Interval>> = listed.iter().copied().collect();
        let expected = match by_passes {
            true => listed.len() as u64,
            false => row.entry.dispatches.into(),
        };
        let Some(known) = known.filter(|known| known.len() as u64 == expected) else {
            continue;
        };
        let sums = with_instances.entry(&row.entry.label).or_default();
        sums.command_buffers += 1;
        sums.command_buffer_ns += interval.duration_ns();
        let durations = known.iter().map(|interval| interval.duration_ns());
        sums.dispatch_sum_ns += durations.sum::<u64>();
        let busy_ns = Interval::union_ns(known);
        *sums.dispatch_busy_ns.get_or_insert(0) += busy_ns;
    }
    let mut drifts: Vec<Drift> = with_instances
        .into_iter()
        .map(|(label, sums)| sums.drift(label, sampling))
        .collect();
    for (label, dispatches) in by_label.iter().filter(|(_, of)| of.untimed == 0) {
        let times = merged.times(TimedKind::Label).get(label);
        if let Some(entry) = times.and_then(|times| times.entry()) {
            let sums = Sums {
                command_buffers: entry.count,
                command_buffer_ns: entry.total_ns,
                dispatch_sum_ns: dispatches.sum_ns,
                dispatch_busy_ns: None,
            };
            drifts.push(sums.drift(label, sampling));
        }
    }
    drifts.sort_by(|a, b| {
        b.command_buffer_ns
            .cmp(&a.command_buffer_ns)
            .then(a.label.cmp(&b.label))
    });
    drifts
}

impl Sums {
    /// Compares the sums; with a barrier after each dispatch, no dispatches overlap.
    fn drift(&self, label: &str, sampling: Sampling) -> Drift {
        let serialised = sampling == Sampling::DispatchSerialised;
        let covered_ns = self.dispatch_busy_ns.unwrap_or(self.dispatch_sum_ns);
        let uncovered_ns = self.command_buffer_ns.saturating_sub(covered_ns);
        let difference = i128::from(self.dispatch_sum_ns) - i128::from(self.command_buffer_ns);
        let whole_ns = self.command_buffer_ns as f64;
        let over = |ns: u64| (ns as f64 - whole_ns) / whole_ns.max(1.0);
        let share = over(self.dispatch_sum_ns);
        let verdict = match self.dispatch_busy_ns {
            Some(busy_ns) if over(busy_ns) > WRONG_SHARE => Verdict::Inconsistent,
            _ if serialised && share > WRONG_SHARE => Verdict::Inconsistent,
            _ if uncovered_ns as f64 > whole_ns * UNCOVERED_SHARE => Verdict::Uncovered,
            _ if share <= NOISE_SHARE => Verdict::Consistent,
            Some(_) => Verdict::Overlapping,
            None => Verdict::Unexplained,
        };
        Drift {
            label: label.to_owned(),
            compared: match sampling {
                Sampling::Pass => "passes",
                _ => "dispatches",
            },
            command_buffers: self.command_buffers,
            command_buffer_ns: self.command_buffer_ns,
            dispatch_sum_ns: self.dispatch_sum_ns,
            dispatch_busy_ns: self.dispatch_busy_ns,
            difference_ns: i64::try_from(difference).unwrap_or(i64::MAX),
            share,
            uncovered_ns,
            verdict,
        }
    }
}
