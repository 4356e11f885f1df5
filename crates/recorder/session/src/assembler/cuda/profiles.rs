//! Launches that were profiled.
//!
//! A profile comes before the call that it is of, and waits for the record of the kernel. The kernel ran several times, and each run
//! may leave a record: one of them is the launch's.

use super::call::known_thread;
use super::{Assembler, Cuda};
use gapscope_model::HostCallKind;
use gapscope_model::kernel_profile::{GRID, METRICS, PROFILING_CALL};
use gapscope_spool::event::Span;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{KernelId, ProcessId, SubmissionId};
use gapscope_trace::tables::{HostCall, KernelMetric, Table, Tables};
use serde::{Deserialize, Serialize};

/// What was measured of a launch.
#[derive(Debug, Serialize, Deserialize)]
pub struct Profile {
    /// The kernel, as the code calls it.
    pub kernel: String,
    pub passes: u32,
    /// Places in [`METRICS`], with values.
    pub values: Vec<(u16, f64)>,
}

impl Assembler {
    /// A launch was profiled, which held the thread up.
    pub(in crate::assembler) fn kernel_profiled(
        &mut self,
        process: ProcessId,
        (thread, correlation): (hook::Thread, hook::Correlation),
        span: Span,
        profile: Profile,
        tables: &mut Tables,
    ) {
        if let Some(span) = self.checked(Some(span)) {
            tables.host_calls.push(HostCall {
                process,
                thread: known_thread(thread),
                call: HostCallKind::Recording,
                start_ns: span.start_ns,
                duration_ns: span.duration_ns,
                count: 1,
                busy_ns: span.duration_ns,
                queue: None,
                bytes: None,
                result: 0,
                function: Some(self.shared_text(PROFILING_CALL)),
            });
        }
        if profile.passes > 0 {
            let cuda = &mut self.processes[process].cuda;
            cuda.is_used = true;
            let stale = cuda.profiles.insert(correlation, profile);
            if let Some(stale) = stale {
                self.write_profile_alone(process, stale, tables);
            }
        }
    }

    /// The rows of a profile.
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

    /// The rows of a profile whose kernel left no record.
    fn write_profile_alone(&mut self, process: ProcessId, profile: Profile, tables: &mut Tables) {
        let kernel = self.kernels.called(process, &profile.kernel);
        self.write_profile(profile, kernel, None, None, tables);
    }

    /// Nothing more comes from a process.
    pub(super) fn finish_profiles(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        tables: &mut Tables,
    ) {
        let mut left: Vec<_> = std::mem::take(&mut cuda.profiles).into_iter().collect();
        left.sort_unstable_by_key(|(correlation, _)| correlation.0);
        for (_, profile) in left {
            self.write_profile_alone(process, profile, tables);
        }
    }
}
