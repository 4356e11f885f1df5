//! Snapshots of profiles (GPU times by label, pass and kernel): the content at one moment, as a table or as JSON.

use super::contents::ProfileContents;
use super::drift::drifts;
use super::shard::{TimedKind, Times};
use super::{DeviceInfo, Drift, KernelEntry, Loss, ProfileEntry, Sampling, Verdict, host_now_ns};
use crate::text::shown;
use serde::Serialize;
use std::fmt;

/// The maximum number of rows in a printed table.
const MAX_PRINTED_ROWS: usize = 20;

/// The content of a profile at one moment. It prints as a table; [`Snapshot::to_json`] has all of it.
///
/// ```
/// let profile = gapscope_sdk::kernel_profile::Profile::new();
/// profile.record("step", 1_500_000);
/// let snapshot = profile.snapshot();
/// assert!(snapshot.to_string().contains("1.50 ms"));
/// assert_eq!(snapshot.clock_error_ns, None, "what is not known is not 0");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The sampling mode of the GPU.
    pub sampling: Sampling,
    /// The device.
    pub device: DeviceInfo,
    /// The time for which the profile has been recording, in nanoseconds.
    pub elapsed_ns: u64,
    /// The labels with their times; the greatest sum is first, and equal sums are ordered by name.
    pub labels: Vec<(String, ProfileEntry)>,
    /// The kernels with their times, in the same order.
    pub kernels: Vec<KernelEntry>,
    /// The passes with their times, by their labels, in the same order.
    pub passes: Vec<(String, ProfileEntry)>,
    /// The scopes with their times, by the labels of the scopes around them and their own, in the same order.
    pub scopes: Vec<(String, ProfileEntry)>,
    /// The number of command buffers that are kept as rows.
    pub command_buffers: u64,
    /// The number of dispatches that are kept as rows.
    pub dispatches: u64,
    /// The comparisons of dispatches with their command buffers, by label.
    pub drift: Vec<Drift>,
    /// The number of clock samples.
    pub clock_samples: u64,
    /// The greatest error of a time that was mapped to the host's clock, in nanoseconds; `None` if unknown.
    pub clock_error_ns: Option<u64>,
    /// The entries that were not recorded.
    pub losses: Vec<Loss>,
    /// The notes that belong to every result.
    pub notes: Vec<String>,
}

impl Snapshot {
    pub(super) fn new(contents: &ProfileContents) -> Snapshot {
        let (info, merged) = (&contents.info, &contents.merged);
        let kernel = |(name, times)| KernelEntry { name, times };
        Snapshot {
            sampling: info.sampling,
            device: info.device.clone(),
            elapsed_ns: host_now_ns().saturating_sub(info.since_ns),
            labels: entries(merged.times(TimedKind::Label)),
            kernels: entries(merged.times(TimedKind::Kernel))
                .into_iter()
                .map(kernel)
                .collect(),
            passes: entries(merged.times(TimedKind::Pass)),
            scopes: entries(merged.times(TimedKind::Scope)),
            command_buffers: merged.command_buffers.len() as u64,
            dispatches: merged.dispatches.len() as u64,
            drift: drifts(contents),
            clock_samples: info.clock_samples(),
            clock_error_ns: info.clock_error_ns(),
            losses: merged.ledger.losses(),
            notes: info.notes.clone(),
        }
    }

    /// Returns every field of this structure as JSON, with times in nanoseconds.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// let profile = Profile::new();
    /// profile.record("step", 1_500);
    /// let json = profile.snapshot().to_json();
    /// assert!(json.contains("\"total_ns\": 1500"));
    /// ```
    pub fn to_json(&self) -> String {
        // The conversion cannot fail, because keys are texts and numbers are finite.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Returns the names with their times; the greatest sum is first, and equal sums are ordered by name.
pub(super) fn entries(of: &Times) -> Vec<(String, ProfileEntry)> {
    let mut entries: Vec<(String, ProfileEntry)> = of
        .iter()
        .filter_map(|(name, times)| Some((name.to_string(), times.entry()?)))
        .collect();
    entries.sort_by(|(a, x), (b, y)| y.total_ns.cmp(&x.total_ns).then_with(|| a.cmp(b)));
    entries
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU times (sampling mode {}", self.sampling.as_str())?;
        if !self.device.name.is_empty() {
            write!(f, ", {}", shown(&self.device.name))?;
        }
        writeln!(f, ")")?;
        table(f, "label", self.labels.iter().map(|(n, t)| (n.as_str(), t)))?;
        table(f, "pass", self.passes.iter().map(|(n, t)| (n.as_str(), t)))?;
        table(f, "scope", self.scopes.iter().map(|(n, t)| (n.as_str(), t)))?;
        table(
            f,
            "kernel",
            self.kernels.iter().map(|k| (k.name.as_str(), &k.times)),
        )?;
        for drift in &self.drift {
            let share = drift.share * 100.0;
            let (label, compared) = (shown(&drift.label), drift.compared);
            let meaning = match drift.verdict {
                Verdict::Uncovered => {
                    let (covered, rest) = (drift.covered_share() * 100.0, time(drift.uncovered_ns));
                    writeln!(
                        f,
                        "  {compared} cover {covered:.0} % of the command buffers `{label}`; the other {rest} are copies, render passes, {compared} that are not listed, or waits"
                    )?;
                    continue;
                }
                Verdict::Consistent => "they fit",
                Verdict::Overlapping => "they overlap",
                Verdict::Unexplained => "whether they overlap is not known",
                Verdict::Inconsistent => "a clock or sampling error: do not rely on these times",
            };
            writeln!(
                f,
                "  {compared} of `{label}` less its command buffers: {share:+.1} %; {meaning}"
            )?;
        }
        match self.clock_error_ns {
            _ if self.clock_samples == 0 => {}
            Some(error) => writeln!(f, "  times are within {} of the host's clock", time(error))?,
            None => writeln!(f, "  how exact times are on the host's clock is not known")?,
        }
        for loss in &self.losses {
            writeln!(f, "  not recorded: {}", shown(&loss.to_string()))?;
        }
        for note in &self.notes {
            writeln!(f, "  {}", shown(note))?;
        }
        Ok(())
    }
}

/// Prints the names with the greatest sums; `what` is the title of the column of names. Nothing without rows.
fn table<'a>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    rows: impl ExactSizeIterator<Item = (&'a str, &'a ProfileEntry)> + Clone,
) -> fmt::Result {
    let count = rows.len();
    if count == 0 {
        return Ok(());
    }
    let totals = rows.clone().map(|(_, times)| u128::from(times.total_ns));
    let all: u128 = totals.sum();
    writeln!(
        f,
        "  {:>6} {:>10} {:>9} {:>10} {:>10} {:>10} {:>10}  {what}",
        "share", "total", "count", "mean", "median", "p99", "max"
    )?;
    for (name, times) in rows.take(MAX_PRINTED_ROWS) {
        let name = shown(name);
        let share = times.total_ns as f64 / (all as f64).max(1.0) * 100.0;
        let mean = times.mean_ns().unwrap_or(0.0) as u64;
        writeln!(
            f,
            "  {share:>5.1}% {:>10} {:>9} {:>10} {:>10} {:>10} {:>10}  {name}",
            time(times.total_ns),
            times.count,
            time(mean),
            time(times.p50_ns),
            time(times.p99_ns),
            time(times.max_ns),
        )?;
    }
    if count > MAX_PRINTED_ROWS {
        writeln!(f, "  … and {} more", count - MAX_PRINTED_ROWS)?;
    }
    Ok(())
}

/// Formats a time with its unit, with three digits or more.
fn time(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}
