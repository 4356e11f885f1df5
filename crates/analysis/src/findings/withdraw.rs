//! Withdraws findings that rest on tables which could not be read: they are unknown, however much of the tables there is.

use super::Findings;
use crate::drift::Drift;
use crate::gaps::IdleTime;
use crate::unread::{CAUSES, CODE, WORK};
use crate::verdict::{Bound, Evidence};
use crate::warm_up::WarmUp;
use gapscope_timeline::busy::{DeviceBusy, QueueBusy};
use gapscope_trace::UnreadTable;

impl Findings {
    /// True where findings that rest on these tables are known, because all of the tables could be read.
    pub fn knows(&self, tables: &[&str]) -> bool {
        !self.unread.iter().any(|u| tables.contains(&u.table))
    }

    /// True where all rows of a table could be read, so that their number is known.
    pub fn knows_rows(&self, table: &str) -> bool {
        let mut unread = self.unread.iter().filter(|u| u.table == table);
        !unread.any(UnreadTable::lacks_rows)
    }

    /// True where at least parts of these tables could be read, so that counts of their rows are lower bounds.
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
            self.drift = Drift::default();
            for kernel in &mut self.kernels {
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
            self.gaps = Vec::new();
            self.idle_time = IdleTime::default();
            self.warm_up = WarmUp::default();
            self.latency = Vec::new();
            self.equal_work = None;
        }
        if !self.knows(CODE) {
            self.code = None;
        }
        self
    }
}

/// Returns what is known of a device without its work.
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
