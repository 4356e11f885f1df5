//! The tables that take a builder's rows, and the ids, labels and losses that all builders of a trace share.

use crate::input::{ApiCall, Correlation};
use gapscope_model::{Ledger, Span};
use gapscope_trace::build::Labels;
use gapscope_trace::ids::{CommandBufferId, ProcessId, QueueId, SubmissionId};
use gapscope_trace::tables::Tables;
use serde::{Deserialize, Serialize};

/// Numbers the submissions and command buffers of a trace, from 0, and counts its dispatches.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Ids {
    /// The number of submissions so far, and so the id of the next.
    submissions: u64,
    /// The number of command buffers so far, and so the id of the next.
    command_buffers: u64,
    /// Dispatches that have become rows.
    pub dispatches: u64,
    /// When the first submission started.
    pub first_submit_ns: Option<i64>,
}

impl Ids {
    /// Returns the id of a new submission, by a call that started then.
    pub fn next_submission(&mut self, start_ns: i64) -> SubmissionId {
        let first = self.first_submit_ns.unwrap_or(start_ns);
        self.first_submit_ns = Some(first.min(start_ns));
        self.submissions += 1;
        SubmissionId(self.submissions - 1)
    }

    /// Returns the id of a new command buffer.
    pub fn next_command_buffer(&mut self) -> CommandBufferId {
        self.command_buffers += 1;
        CommandBufferId(self.command_buffers - 1)
    }

    /// Returns how many submissions there are.
    pub fn submissions(&self) -> u64 {
        self.submissions
    }
}

/// Where the rows of a process go, and what all builders of a trace share.
pub struct Output<'a> {
    /// The process.
    pub process: ProcessId,
    /// The rows.
    pub tables: &'a mut Tables,
    /// The labels of the trace.
    pub labels: &'a mut Labels,
    /// The losses of the trace.
    pub ledger: &'a mut Ledger,
    /// The ids of the trace.
    pub ids: &'a mut Ids,
    /// Hears of work.
    pub observer: &'a mut dyn Observer,
    /// The latest time that the producer has seen.
    pub now_ns: i64,
    /// Why times and calls are missing, where they are.
    pub reasons: Reasons,
}

impl Output<'_> {
    /// Returns where the rows of labels go.
    pub fn label_rows(&mut self) -> LabelRows<'_> {
        LabelRows {
            process: self.process,
            labels: self.labels,
            tables: self.tables,
        }
    }
}

/// Where the rows of a process's labels go.
pub struct LabelRows<'a> {
    /// The process.
    pub process: ProcessId,
    /// The labels of the trace.
    pub labels: &'a mut Labels,
    /// The rows.
    pub tables: &'a mut Tables,
}

/// The reasons of losses, which differ by producer.
#[derive(Debug, Clone, Copy)]
pub struct Reasons {
    /// Why work has no times.
    pub untimed: &'static str,
    /// Why work has no call.
    pub without_call: &'static str,
}

/// Hears of work as its rows are written.
pub trait Observer {
    /// A piece of work ran.
    fn ran(&mut self, _span: Span) {}
    /// A piece of work with times was joined to its call.
    fn joined(&mut self, _joined: Joined<'_>) {}
}

/// A piece of work and the call that launched it.
#[derive(Debug, Clone, Copy)]
pub struct Joined<'a> {
    /// The call.
    pub call: &'a ApiCall,
    /// Its correlation.
    pub correlation: Correlation,
    /// The call returned only when the work had ended.
    pub is_awaited: bool,
    /// The queue that ran the work.
    pub queue: QueueId,
    /// When the work ran.
    pub span: Span,
}
