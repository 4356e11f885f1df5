//! A recorded process: its spool, and how far it has been drained.

use crate::procfs;
use gapscope_spool::ProcessSpool;
use gapscope_spool::reader::Damage;
use gapscope_trace::ids::ProcessId;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A process whose spool is drained.
#[derive(Debug)]
pub struct DrainedProcess {
    /// Its id in its trace.
    pub id: ProcessId,
    /// Index of its rank's trace; `None` for the recording's own.
    pub(super) trace: Option<usize>,
    pub(super) spool: ProcessSpool,
    /// Its number here; `None` where it had ended before it was found.
    pub(super) pid_here: Option<u32>,
    /// What was missing before the last resumption.
    pub(super) earlier_damage: Damage,
    /// It has ended and has been drained to its end.
    pub(super) ended: bool,
}

impl DrainedProcess {
    /// The system's id, as it is here.
    pub fn pid(&self) -> u32 {
        self.pid_here.unwrap_or(self.spool.pid())
    }

    /// True while it runs.
    pub fn is_alive(&self) -> bool {
        (self.pid_here).is_some_and(|number| procfs::is_alive(number, self.spool.start_ns()))
    }

    /// True while it records.
    pub fn is_recording(&self) -> bool {
        self.spool.control().page().recording.load(Relaxed) != 0
    }

    /// Switches its recording on or off.
    pub fn record(&self, on: bool) {
        self.spool
            .control()
            .page()
            .recording
            .store(u32::from(on), Relaxed);
    }

    pub(super) fn capture_done(&self, number: u32, failed: bool) {
        let page = self.spool.control().page();
        if failed {
            page.captures_failed.fetch_or(1 << (number % 64), Relaxed);
        }
        page.captures_finished.fetch_max(number, Release);
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        let page = self.spool.control().page();
        page.bytes_created
            .load(Relaxed)
            .saturating_sub(page.bytes_drained.load(Relaxed))
    }

    pub(super) fn damage(&self) -> Damage {
        let new = self.spool.damage();
        Damage {
            missing_records: self.earlier_damage.missing_records + new.missing_records,
            undecodable_records: self.earlier_damage.undecodable_records + new.undecodable_records,
        }
    }
}
