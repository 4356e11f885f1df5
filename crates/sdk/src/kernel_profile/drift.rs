//! Dispatches against their command buffers.

use super::entry::{CommandBufferId, Sampling};
use super::profile::Gathered;
use super::shard::Of;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::Arc;

/// Up to this share more than the command buffers is taken for noise.
const NOISE: f64 = 0.05;
/// From this share on something is wrong.
const WRONG: f64 = 0.10;

/// The dispatches of a label against its command buffers. Only command buffers count whose own time and all of whose
/// dispatches' times are known; without instances ([`super::CommandBufferId`]) the sums of the label are compared.
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
/// let Drift { difference_ns, verdict, .. } = &profile.snapshot().drift[0];
/// assert_eq!((*difference_ns, *verdict), (-200, Verdict::Consistent));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// The label.
    pub label: String,
    /// Command buffers that were compared.
    pub command_buffers: u64,
    /// Time of these command buffers, in nanoseconds.
    pub command_buffer_ns: u64,
    /// Sum of the times of their dispatches.
    pub dispatch_sum_ns: u64,
    /// Time in which any of these dispatches ran: no more than the command buffers', if the clocks are right. `None`
    /// without instances.
    pub dispatch_busy_ns: Option<u64>,
    /// `dispatch_sum_ns` less `command_buffer_ns`: positive when the dispatches are longer in sum.
    pub difference_ns: i64,
    /// The difference as a share of `command_buffer_ns`.
    pub share: f64,
    /// What it means.
    pub verdict: Verdict,
}

/// What a drift means; [`Drift`] shows how one is had.
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
    /// The dispatches fit into the command buffers, or exceed them by no more than 5 %.
    Consistent,
    /// They are longer in sum, because they overlap; the time in which any ran fits.
    Overlapping,
    /// They are longer in sum by more than 5 %, and no instances say whether they overlap. Dispatches that are timed
    /// one after another are an upper bound of what they take together.
    Unexplained,
    /// The time in which any dispatch ran exceeds the command buffers by more than 10 %, or with a barrier after each
    /// their sum does: a clock or sampling error.
    Inconsistent,
}

/// One label's share.
#[derive(Default)]
struct Sums {
    command_buffers: u64,
    command_buffer_ns: u64,
    dispatch_sum_ns: u64,
    busy_ns: u64,
}

pub(super) fn drifts(gathered: &Gathered) -> Vec<Drift> {
    let merged = &gathered.merged;
    let serialised = gathered.about.sampling == Sampling::DispatchSerialised;
    let mut by_instance: FxHashMap<CommandBufferId, Vec<Option<(u64, u64)>>> = FxHashMap::default();
    let mut by_label: FxHashMap<Arc<str>, (u64, u64)> = FxHashMap::default();
    for row in &merged.dispatches {
        match row.command_buffer {
            Some(id) => by_instance.entry(id).or_default().push(row.interval()),
            None => {
                let (known, unknown) = by_label.entry(Arc::clone(&row.cb_label)).or_default();
                match row.duration_ns() {
                    Some(ns) => *known = known.saturating_add(ns),
                    None => *unknown += 1,
                }
            }
        }
    }
    let mut with_instances: FxHashMap<&str, Sums> = FxHashMap::default();
    for row in &merged.command_buffers {
        let (Some(id), Some((start, end))) = (row.entry.id, row.interval()) else {
            continue;
        };
        let Some(dispatches) = by_instance.get(&id) else {
            continue;
        };
        let known: Option<Vec<(u64, u64)>> = dispatches.iter().copied().collect();
        let Some(mut known) = known.filter(|k| k.len() as u64 == u64::from(row.entry.dispatches))
        else {
            continue;
        };
        let sums = with_instances.entry(&row.entry.label).or_default();
        sums.command_buffers += 1;
        sums.command_buffer_ns += end.saturating_sub(start);
        sums.dispatch_sum_ns += known.iter().map(|(start, end)| end - start).sum::<u64>();
        sums.busy_ns += union_ns(&mut known);
    }
    let mut drifts: Vec<Drift> = with_instances
        .into_iter()
        .map(|(label, sums)| {
            let busy = Some(sums.busy_ns);
            drift(
                label,
                sums.command_buffers,
                sums.command_buffer_ns,
                sums.dispatch_sum_ns,
                busy,
                serialised,
            )
        })
        .collect();
    for (label, (sum_ns, unknown)) in &by_label {
        if let (0, Some(entry)) = (
            *unknown,
            merged.times(Of::Label).get(label).and_then(|a| a.entry()),
        ) {
            drifts.push(drift(
                label,
                entry.count,
                entry.total_ns,
                *sum_ns,
                None,
                serialised,
            ));
        }
    }
    drifts.sort_by(|a, b| {
        b.command_buffer_ns
            .cmp(&a.command_buffer_ns)
            .then(a.label.cmp(&b.label))
    });
    drifts
}

fn drift(
    label: &str,
    command_buffers: u64,
    command_buffer_ns: u64,
    dispatch_sum_ns: u64,
    dispatch_busy_ns: Option<u64>,
    serialised: bool,
) -> Drift {
    let difference = i128::from(dispatch_sum_ns) - i128::from(command_buffer_ns);
    let over =
        |ns: u64| (ns as f64 - command_buffer_ns as f64) / (command_buffer_ns as f64).max(1.0);
    let share = over(dispatch_sum_ns);
    let verdict = match dispatch_busy_ns {
        Some(busy) if over(busy) > WRONG => Verdict::Inconsistent,
        _ if serialised && share > WRONG => Verdict::Inconsistent,
        _ if share <= NOISE => Verdict::Consistent,
        Some(_) => Verdict::Overlapping,
        None => Verdict::Unexplained,
    };
    Drift {
        label: label.to_owned(),
        command_buffers,
        command_buffer_ns,
        dispatch_sum_ns,
        dispatch_busy_ns,
        difference_ns: i64::try_from(difference).unwrap_or(i64::MAX),
        share,
        verdict,
    }
}

/// The time that intervals cover together.
fn union_ns(intervals: &mut [(u64, u64)]) -> u64 {
    intervals.sort_unstable();
    let mut covered = 0;
    let mut until = 0;
    for &(start, end) in intervals.iter() {
        if end > until {
            covered += end - start.max(until);
            until = end;
        }
    }
    covered
}
