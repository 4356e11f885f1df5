//! Marks findings as unknown where tables that they are made from could not be read whole. Input are findings that
//! were computed from the rows that could be read, and the list of tables that lack rows or columns.

use super::Findings;
use crate::drift::Drift;
use crate::gaps::IdleTime;
use crate::unread::{
    CAUSES, CODE, COMMAND_BUFFERS, CONDITIONS, COUNTERS, KERNELS, LABELS, MEMORY, PROFILED,
    SAMPLED, STEPS, TRANSFERS, WORK,
};
use crate::verdict::{Bound, Evidence};
use crate::warm_up::WarmUp;
use gapscope_timeline::busy::{DeviceBusy, QueueBusy};
use gapscope_timeline::unknown_counts::Count;
use gapscope_trace::UnreadTable;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{CommandBuffers, Dispatches, Submissions, Table, Transfers};

impl Findings {
    /// Returns true where findings that rest on these tables are known, because all of the tables could be read.
    pub fn knows(&self, tables: &[&str]) -> bool {
        !self.unread.iter().any(|u| tables.contains(&u.table))
    }

    /// Returns true where all rows of a table could be read, so that their number is known.
    pub fn knows_rows(&self, table: &str) -> bool {
        let mut unread = self.unread.iter().filter(|u| u.table == table);
        !unread.any(UnreadTable::lacks_rows)
    }

    /// Returns true where at least parts of these tables could be read, so that counts of their rows are lower bounds.
    pub fn knows_some(&self, tables: &[&str]) -> bool {
        let mut unread = self.unread.iter().filter(|u| tables.contains(&u.table));
        unread.all(|u| u.rows_read > 0)
    }

    /// Withdraws the findings that were computed from tables that lack rows or columns.
    pub(super) fn without_unread(mut self, unread: &[UnreadTable]) -> Findings {
        self.unread = unread.to_vec();
        if !self.knows(WORK) {
            self.gpu_busy_ns = None;
            self.work_window = None;
            self.analysed_window = None;
            self.drift = Drift::default().into();
            for kernel in self.kernels.iter_mut() {
                kernel.busy_share = None;
            }
            self.devices = self.devices.into_iter().map(without_busy).collect();
        }
        if !self.knows(CAUSES) {
            let resting = self.unread.iter().filter(|u| CAUSES.contains(&u.table));
            let mut files: Vec<&str> = resting.map(|u| u.file.as_str()).collect();
            files.dedup();
            self.verdict = Bound::Unknown;
            self.verdict_evidence = Evidence {
                sentence: format!("It rests on what cannot be read: {}.", files.join(", ")),
                ..Evidence::default()
            };
            self.headline = Vec::new();
            self.phases = Vec::new();
            self.critical_paths = Vec::new();
            self.joint_critical_paths = Vec::new();
            self.contradictions = Vec::new();
            self.gaps = Vec::new().into();
            self.advice = Vec::new().into();
            self.idle_time = IdleTime::default().into();
            self.warm_up = WarmUp::default();
            self.latency = Vec::new().into();
            self.equal_work = None;
        }
        if !self.knows(CODE) {
            self.code = None;
        }
        if !self.knows(STEPS) {
            self.steps = Vec::new().into();
            self.step_summary = None;
        }
        // Marks the named fields as unknown where the condition does not hold.
        macro_rules! rest_on {
            ($is_known:expr => $($field:ident),+) => {
                let is_unknown = !$is_known;
                $(self.$field.is_unknown = is_unknown;)+
            };
        }
        rest_on!(self.knows_rows(Dispatches::NAME) => dispatch_count, timed_dispatch_count);
        rest_on!(self.knows_rows(CommandBuffers::NAME) => command_buffer_count);
        rest_on!(self.knows_rows(Submissions::NAME) => submission_count);
        rest_on!(self.knows_rows(Transfers::NAME) => transfer_count, transfer_bytes, transfer_unknown_bytes_count);
        rest_on!(self.knows(CAUSES) => gaps, advice, idle_time, latency);
        rest_on!(self.knows(STEPS) => steps);
        // Where nothing was timed, nobody knows how long devices idled.
        self.idle_time.is_unknown |= self.analysed_window.is_none();
        rest_on!(self.knows(WORK) => drift);
        rest_on!(self.knows(KERNELS) => fill, kernels);
        rest_on!(self.knows(PROFILED) => profiled_kernels);
        rest_on!(self.knows(SAMPLED) => sampled_kernels);
        rest_on!(self.knows(LABELS) => labels, folded_labels, operators);
        rest_on!(self.knows(COMMAND_BUFFERS) => command_buffers);
        rest_on!(self.knows(TRANSFERS) => transfers);
        rest_on!(self.knows(MEMORY) => memory);
        rest_on!(self.knows(COUNTERS) => counters);
        rest_on!(self.knows(CONDITIONS) => conditions);
        self.withdraw_unrecorded();
        self.with_reasons()
    }

    /// Marks the counts of what was not recorded at all as unknown, and the bytes of transfers that are all of unknown size.
    fn withdraw_unrecorded(&mut self) {
        let sizes_unknown = *self.transfer_unknown_bytes_count > 0
            && *self.transfer_unknown_bytes_count == *self.transfer_count;
        self.transfer_bytes.is_unknown |= sizes_unknown;
        let unrecorded = self
            .unknown_counts
            .iter()
            .filter(|unknown| unknown.at_least.is_none());
        for unknown in unrecorded {
            match unknown.count {
                Count::Dispatches => {
                    self.dispatch_count.is_unknown = true;
                    self.timed_dispatch_count.is_unknown = true;
                }
                Count::CommandBuffers => {
                    self.command_buffer_count.is_unknown = true;
                    self.command_buffers.is_unknown = true;
                }
                Count::Submissions => self.submission_count.is_unknown = true,
                Count::Transfers => {
                    self.transfer_count.is_unknown = true;
                    self.transfer_bytes.is_unknown = true;
                    self.transfer_unknown_bytes_count.is_unknown = true;
                }
            }
        }
    }

    /// Adds to the findings why the most important figures are not known.
    fn with_reasons(mut self) -> Findings {
        const NOT_TIMED: &str = "no work has known times; losses say why";
        let because = |known: bool, why: &'static str| (!known).then_some(why);
        self.clock_error_unknown_because = because(
            self.clock_error_ns.is_some(),
            "no device clock, or not every device's, could be mapped to the host's with a bound",
        );
        self.wall_unknown_because = because(
            self.wall_ns.is_some(),
            "the recording has no known end; `gapscope recover` completes it",
        );
        self.gpu_busy_unknown_because = because(
            self.gpu_busy_ns.is_some(),
            match self.knows(WORK) {
                true => NOT_TIMED,
                false => "tables of GPU work cannot be read; unread says which",
            },
        );
        let untimed = match self.sampling_mode {
            SamplingMode::CommandBuffer => "recorded in command-buffer mode",
            SamplingMode::Pass => "passes were timed as a whole",
            _ => NOT_TIMED,
        };
        for kernel in self.kernels.iter_mut() {
            kernel.times_unknown_because = because(kernel.durations.timed_count > 0, untimed);
        }
        self
    }
}

/// Returns a device's findings without the figures that its work would give.
fn without_busy(device: DeviceBusy) -> DeviceBusy {
    let without = |queue: QueueBusy| QueueBusy {
        queue_id: queue.queue_id,
        name: queue.name,
        capabilities: queue.capabilities,
        ..QueueBusy::default()
    };
    DeviceBusy {
        index: device.index,
        name: device.name,
        label: device.label,
        api: device.api,
        driver: device.driver,
        uuid: device.uuid,
        device_ids: device.device_ids,
        process_ids: device.process_ids,
        lost: device.lost,
        clock_method: device.clock_method,
        clock_tool: device.clock_tool,
        clock_error_ns: device.clock_error_ns,
        queues: device.queues.into_iter().map(without).collect(),
        ..DeviceBusy::default()
    }
}
