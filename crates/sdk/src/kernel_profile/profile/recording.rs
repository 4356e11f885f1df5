//! Adds entries to a profile.

use super::super::entry::{
    AgreedTimes, CommandBufferEntry, CommandBufferId, DispatchEntry, PassEntry, because,
};
use super::super::rows::{CommandBufferRow, PassRow, ScopeEntry, ScopeRow};
use super::super::shard::TimedKind;
use super::Profile;
use gapscope_model::LossKind;
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

/// The reason for missing rows.
const NOT_KEPT: &str = "past the limit of rows; their times are added up";

impl Profile {
    /// Adds the GPU time of one command buffer (or of any piece of work) under a label.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::Profile;
    /// # let profile = Profile::new();
    /// profile.record("prefill", 3_000_000); // nanoseconds
    /// ```
    #[inline]
    pub fn record(&self, label: &str, gpu_ns: u64) {
        self.shard()
            .add(TimedKind::Label, label, gpu_ns, &self.names);
    }

    /// Returns the id of a new command buffer. Dispatches that name it are distinguished from those of other command
    /// buffers with the same label.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{DispatchEntry, Profile};
    /// # let profile = Profile::new();
    /// let id = profile.command_buffer();
    /// profile.record_dispatch(DispatchEntry { command_buffer: Some(id), ..DispatchEntry::default() });
    /// ```
    pub fn command_buffer(&self) -> CommandBufferId {
        CommandBufferId(self.ids.fetch_add(1, Relaxed))
    }

    /// Adds a command buffer: its time counts under its label, and it is kept as a row.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile::{CommandBufferEntry, Profile};
    ///
    /// let profile = Profile::new();
    /// profile.record_command_buffer(CommandBufferEntry {
    ///     id: Some(profile.command_buffer()),
    ///     label: "layer 3".into(),
    ///     start_ns: Some(1_000),
    ///     end_ns: Some(251_000),
    ///     dispatches: 12,
    ///     ..CommandBufferEntry::default()
    /// });
    /// assert_eq!(profile.dump()[0].1.total_ns, 250_000);
    /// ```
    pub fn record_command_buffer(&self, entry: CommandBufferEntry) {
        let has_dispatches = entry.dispatches > 0;
        self.record_listed_command_buffer(entry, has_dispatches);
    }

    /// Adds a command buffer as [`Self::record_command_buffer`] does. `has_dispatches` says that it holds dispatches,
    /// listed or not, so that these are compared with its time.
    pub(crate) fn record_listed_command_buffer(
        &self,
        mut entry: CommandBufferEntry,
        has_dispatches: bool,
    ) {
        let mut shard = self.shard();
        match AgreedTimes::new(entry.start_ns, entry.end_ns, None) {
            Ok(times) => {
                let ns = times.duration_ns;
                shard.add(TimedKind::Label, &entry.label, ns, &self.names);
            }
            Err(reason) => {
                (entry.start_ns, entry.end_ns) = (None, None);
                let because = because(&mut entry.unknown_because, reason);
                shard.ledger.add(LossKind::CommandBufferTimes, 1, because);
            }
        }
        let limit = self.limits.command_buffers;
        let numbers = &mut shard.command_buffer_numbers;
        if let Some(sequence) = self.command_buffers.next(numbers, limit) {
            let row = CommandBufferRow {
                sequence,
                entry,
                has_dispatches,
            };
            shard.command_buffers.push(row);
        } else {
            shard.ledger.add(LossKind::CommandBufferRows, 1, NOT_KEPT);
        }
    }

    /// Adds a pass: its time counts under its label, among the passes, and it is kept as a row.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{PassEntry, Profile};
    /// # let profile = Profile::new();
    /// profile.record_pass(PassEntry { label: "attention".into(), gpu_ns: Some(40_000), ..PassEntry::default() });
    /// assert!(profile.dump().is_empty(), "passes are not command buffers");
    /// ```
    pub fn record_pass(&self, mut entry: PassEntry) {
        let mut shard = self.shard();
        match AgreedTimes::new(entry.start_gpu_ns, entry.end_gpu_ns, entry.gpu_ns) {
            Ok(times) => {
                let ns = times.duration_ns;
                entry.gpu_ns = Some(ns);
                (entry.start_gpu_ns, entry.end_gpu_ns) = (times.start_ns, times.end_ns());
                shard.add(TimedKind::Pass, &entry.label, ns, &self.names);
            }
            Err(reason) => {
                (entry.start_gpu_ns, entry.end_gpu_ns) = (None, None);
                entry.gpu_ns = None;
                let because = because(&mut entry.unknown_because, reason);
                shard.ledger.add(LossKind::PassTimes, 1, because);
            }
        }
        let limit = self.limits.dispatches;
        let numbers = &mut shard.dispatch_numbers;
        if let Some(sequence) = self.dispatches.next(numbers, limit) {
            shard.passes.push(PassRow { sequence, entry });
        } else {
            shard.ledger.add(LossKind::PassRows, 1, NOT_KEPT);
        }
    }

    /// Adds a scope: its time counts under its path, and it is kept as a row.
    #[cfg_attr(not(feature = "wgpu"), allow(dead_code))]
    pub(crate) fn record_scope(&self, entry: ScopeEntry) {
        let mut shard = self.shard();
        match entry.gpu_ns {
            Some(ns) => shard.add(TimedKind::Scope, &entry.path.join(" > "), ns, &self.names),
            None => {
                let because = entry.unknown_because.clone();
                shard.ledger.add(LossKind::ScopeTimes, 1, because);
            }
        }
        let limit = self.limits.dispatches;
        let numbers = &mut shard.dispatch_numbers;
        if let Some(sequence) = self.dispatches.next(numbers, limit) {
            shard.scopes.push(ScopeRow { sequence, entry });
        } else {
            shard.ledger.add(LossKind::ScopeRows, 1, NOT_KEPT);
        }
    }

    /// Adds a dispatch: its time counts under its kernel's name, and it is kept as a row.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{DispatchEntry, Profile};
    /// # let profile = Profile::new();
    /// profile.record_dispatch(DispatchEntry { kernel: "gemm".into(), gpu_ns: Some(9_000), ..DispatchEntry::default() });
    /// assert_eq!(profile.snapshot().kernels[0].times.total_ns, 9_000);
    /// ```
    pub fn record_dispatch(&self, mut entry: DispatchEntry) {
        let mut shard = self.shard();
        let (start_ns, duration_ns) =
            match AgreedTimes::new(entry.start_gpu_ns, entry.end_gpu_ns, entry.gpu_ns) {
                Ok(AgreedTimes {
                    start_ns,
                    duration_ns: ns,
                }) => {
                    let name = match entry.kernel.is_empty() {
                        true => &entry.op_kind,
                        false => &entry.kernel,
                    };
                    shard.add(TimedKind::Kernel, name, ns, &self.names);
                    (start_ns, Some(ns))
                }
                Err(reason) => {
                    let because = because(&mut entry.unknown_because, reason);
                    shard.ledger.add(LossKind::DispatchTimes, 1, because);
                    (None, None)
                }
            };
        let limit = self.limits.dispatches;
        let numbers = &mut shard.dispatch_numbers;
        if let Some(sequence) = self.dispatches.next(numbers, limit) {
            shard.keep_dispatch(sequence, &entry, start_ns, duration_ns);
        } else {
            shard.ledger.add(LossKind::DispatchRows, 1, NOT_KEPT);
        }
    }

    /// Counts entries that were not recorded, with their kind as a [`LossKind`] or a text in the plural, and the
    /// reason.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile::{Loss, LossKind, Profile};
    ///
    /// let profile = Profile::new();
    /// profile.lose("dispatch times", 2, "the sample buffer was full");
    /// let Loss { kind, count, reason, .. } = &profile.snapshot().losses[0];
    /// assert_eq!(*kind, LossKind::DispatchTimes);
    /// assert_eq!(format!("{count} {kind}: {reason}"), "2 dispatch times: the sample buffer was full");
    /// ```
    pub fn lose(
        &self,
        what: impl Into<LossKind>,
        count: u64,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.shard().ledger.add(what.into(), count, reason);
    }
}
