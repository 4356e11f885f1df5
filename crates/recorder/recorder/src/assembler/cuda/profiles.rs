//! Joins the profile of a launch (metrics that were measured while its kernel ran) with the record of the kernel,
//! and writes the metrics as rows.
//!
//! A profile comes before the call of its launch, and waits for the record of the kernel. The kernel ran several
//! times, and each run may leave a record: the first record is the launch's.

use super::{Assembler, known_thread};
use gapscope_model::HostCallKind;
use gapscope_model::kernel_profile::{GRID, METRICS, PROFILING_CALL};
use gapscope_spool::event::Span;
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::{DeviceWorkKind, rows};
use gapscope_trace::ids::{KernelId, ProcessId, SubmissionId};
use gapscope_trace::tables::{KernelMetric, Table, Tables};
use serde::{Deserialize, Serialize};

/// The metrics of a launch.
#[derive(Debug, Serialize, Deserialize)]
pub struct Profile {
    /// The name of the kernel in the code.
    pub kernel: String,
    /// How often the kernel ran until all metrics were counted; 0 for a profile without values.
    pub passes: u32,
    /// Indices of [`METRICS`] with values.
    pub values: Vec<(u16, f64)>,
}

impl Assembler {
    /// Adds the profile of a launch, and a host call for the time by which profiling delayed the thread.
    pub(in crate::assembler) fn kernel_profiled(
        &mut self,
        process: ProcessId,
        (thread, correlation): (hook::Thread, hook::Correlation),
        span: Span,
        profile: Profile,
        tables: &mut Tables,
    ) {
        if let Some(span) = self.checked(Some(span)) {
            let function = Some(self.shared_text(PROFILING_CALL));
            let kind = HostCallKind::Recording;
            let row = rows::one_host_call(process, known_thread(thread), kind, span, function);
            rows::host_call(tables, row);
        }
        if profile.passes > 0 {
            let state = &mut self.processes[process];
            state.cuda.is_used = true;
            let Some(correlation) = state.cuda.correlations.widen(correlation.0) else {
                return self.write_profile_alone(process, profile, tables);
            };
            state.timeline.mark_profiled(correlation);
            let stale = state.cuda.profiles.insert(correlation, profile);
            if let Some(stale) = stale {
                self.write_profile_alone(process, stale, tables);
            }
        }
    }

    /// Writes the profiles of launches whose kernels were recorded.
    pub(super) fn write_profiled(&mut self, process: ProcessId, tables: &mut Tables) {
        for launch in self.processes[process].timeline.take_profiled() {
            let profiles = &mut self.processes[process].cuda.profiles;
            let profile = profiles.remove(&launch.correlation);
            if let (Some(profile), DeviceWorkKind::Kernel { kernel, groups }) =
                (profile, launch.work.kind)
            {
                let groups = groups.map(|groups| groups.unwrap_or(0));
                self.write_profile(
                    profile,
                    kernel,
                    Some(groups),
                    Some(launch.submission),
                    tables,
                );
            }
        }
    }

    /// Writes the rows of a profile; `groups` are the workgroups in x, y and z, `None` where they are unknown.
    pub(super) fn write_profile(
        &mut self,
        profile: Profile,
        kernel: KernelId,
        groups: Option<[u32; 3]>,
        submission: Option<SubmissionId>,
        tables: &mut Tables,
    ) {
        self.profiles = self.profiles.saturating_add(1);
        let groups = groups.map(|[x, y, z]| f64::from(x) * f64::from(y) * f64::from(z));
        let groups = groups.filter(|groups| *groups > 0.0);
        let measured = profile.values.into_iter();
        let measured = measured.filter_map(|(at, value)| {
            let metric = METRICS.get(usize::from(at))?;
            value.is_finite().then_some((metric, value))
        });
        for (metric, value) in measured.chain(groups.map(|groups| (&GRID, groups))) {
            tables.kernel_metrics.push(KernelMetric {
                profile: self.profiles,
                kernel,
                submission,
                section: metric.section,
                metric: self.shared_text(metric.name),
                value,
                unit: metric.unit(),
                passes: profile.passes,
            });
        }
    }

    /// Writes the rows of a profile whose kernel left no record.
    fn write_profile_alone(&mut self, process: ProcessId, profile: Profile, tables: &mut Tables) {
        let kernel = self.kernels.called(process, &profile.kernel);
        self.write_profile(profile, kernel, None, None, tables);
    }

    /// Writes the remaining profiles after the last event of a process.
    pub(super) fn finish_profiles(&mut self, process: ProcessId, tables: &mut Tables) {
        self.write_profiled(process, tables);
        let profiles = std::mem::take(&mut self.processes[process].cuda.profiles);
        let mut left: Vec<_> = profiles.into_iter().collect();
        left.sort_unstable_by_key(|(correlation, _)| correlation.0);
        for (_, profile) in left {
            self.write_profile_alone(process, profile, tables);
        }
    }
}
