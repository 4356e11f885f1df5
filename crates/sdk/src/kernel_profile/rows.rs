//! The stored rows of command buffers, passes and dispatches, as shards (parts of a profile, by thread) keep them.

use super::entry::{CommandBufferEntry, CommandBufferId, DispatchEntry, PassEntry};
use crate::interval::Interval;
use std::borrow::Cow;
use std::sync::Arc;

/// Stands for an unknown time; an `Option` would take more space.
const UNKNOWN: u64 = u64::MAX;

/// A dispatch with shared texts.
#[derive(Debug, Clone)]
pub(super) struct DispatchRow {
    /// The order of the row: exact within a thread, and nearly so between threads ([`super::sequence`]).
    pub sequence: u64,
    pub cb_label: Arc<str>,
    pub kernel: Arc<str>,
    pub op_kind: Arc<str>,
    pub command_buffer: Option<CommandBufferId>,
    pub dispatch_index: u32,
    pub groups: Option<[u32; 3]>,
    pub group_size: Option<[u32; 3]>,
    start_ns: u64,
    duration_ns: u64,
}

impl DispatchRow {
    /// Makes the row of an entry whose times have been checked.
    pub fn new(
        sequence: u64,
        entry: &DispatchEntry,
        [cb_label, kernel, op_kind]: [Arc<str>; 3],
        start_ns: Option<u64>,
        duration_ns: Option<u64>,
    ) -> DispatchRow {
        DispatchRow {
            sequence,
            cb_label,
            kernel,
            op_kind,
            command_buffer: entry.command_buffer,
            dispatch_index: entry.dispatch_index,
            groups: entry.groups,
            group_size: entry.group_size,
            start_ns: start_ns.unwrap_or(UNKNOWN),
            duration_ns: duration_ns.unwrap_or(UNKNOWN),
        }
    }

    pub fn start_ns(&self) -> Option<u64> {
        (self.start_ns != UNKNOWN).then_some(self.start_ns)
    }

    pub fn duration_ns(&self) -> Option<u64> {
        (self.duration_ns != UNKNOWN).then_some(self.duration_ns)
    }

    /// Returns the interval if both ends are known.
    pub fn interval(&self) -> Option<Interval> {
        let start_ns = self.start_ns()?;
        let end_ns = start_ns.saturating_add(self.duration_ns()?);
        Some(Interval { start_ns, end_ns })
    }

    /// Returns the name of the kernel, or else the kind of the operation.
    #[cfg_attr(not(feature = "trace"), allow(dead_code))]
    pub fn name(&self) -> &Arc<str> {
        if self.kernel.is_empty() {
            &self.op_kind
        } else {
            &self.kernel
        }
    }

    /// Returns the row as the program gave it, without the reason for unknown times.
    pub fn entry(&self) -> DispatchEntry {
        let text = |text: &Arc<str>| Cow::Owned(text.to_string());
        DispatchEntry {
            cb_label: text(&self.cb_label),
            command_buffer: self.command_buffer,
            op_kind: text(&self.op_kind),
            kernel: text(&self.kernel),
            dispatch_index: self.dispatch_index,
            groups: self.groups,
            group_size: self.group_size,
            gpu_ns: self.duration_ns(),
            start_gpu_ns: self.start_ns(),
            end_gpu_ns: self.interval().map(|interval| interval.end_ns),
            unknown_because: Cow::Borrowed(""),
            ..DispatchEntry::default()
        }
    }
}

/// A pass.
#[derive(Debug, Clone)]
pub(super) struct PassRow {
    /// The order of the row, as in [`DispatchRow`].
    pub sequence: u64,
    pub entry: PassEntry,
}

impl PassRow {
    /// Returns the interval if both ends are known.
    #[cfg_attr(not(feature = "trace"), allow(dead_code))]
    pub fn interval(&self) -> Option<Interval> {
        Some(Interval {
            start_ns: self.entry.start_gpu_ns?,
            end_ns: self.entry.end_gpu_ns?,
        })
    }
}

/// A part of a command buffer that the program has timed by a scope.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "trace"), allow(dead_code))]
pub(crate) struct ScopeEntry {
    pub cb_label: Cow<'static, str>,
    pub command_buffer: CommandBufferId,
    /// The labels of the scopes around it and its own, outermost first.
    pub path: Arc<[Arc<str>]>,
    pub gpu_ns: Option<u64>,
    /// The interval on the host's clock.
    pub placed: Option<Interval>,
    pub unknown_because: Cow<'static, str>,
}

/// A scope.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "trace"), allow(dead_code))]
pub(super) struct ScopeRow {
    /// The order of the row, as in [`DispatchRow`].
    pub sequence: u64,
    pub entry: ScopeEntry,
}

/// A command buffer.
#[derive(Debug, Clone)]
pub(super) struct CommandBufferRow {
    /// The order of the row, as in [`DispatchRow`].
    pub sequence: u64,
    pub entry: CommandBufferEntry,
    /// The command buffer holds dispatches, listed or not.
    pub has_dispatches: bool,
}

impl CommandBufferRow {
    /// Returns the interval if both ends are known.
    pub fn interval(&self) -> Option<Interval> {
        Some(Interval {
            start_ns: self.entry.start_ns?,
            end_ns: self.entry.end_ns?,
        })
    }
}
