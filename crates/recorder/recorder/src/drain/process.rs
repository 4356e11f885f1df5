//! The spool (the files into which a process of the program writes its events) of a recorded process, and how far it
//! has been drained (read into the trace). Both sides share the spool's control page, through which the session
//! switches recording and answers windows (captured parts of the run).

use crate::procfs;
use gapscope_spool::ProcessSpool;
use gapscope_spool::reader::Damage;
use gapscope_trace::ids::ProcessId;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

/// How many filters of system calls the session has, which the programs that it starts have too.
static OWN_FILTERS: LazyLock<Option<u32>> =
    LazyLock::new(|| procfs::system_call_filters(std::process::id()));

/// A process whose spool is drained.
#[derive(Debug)]
pub struct DrainedProcess {
    /// The id of the process in its trace.
    pub id: ProcessId,
    /// The index of the trace of its rank (a part of a distributed program); `None` for the recording's own trace.
    pub(super) trace: Option<usize>,
    pub(super) spool: ProcessSpool,
    /// Its id in this PID namespace; `None` when it had ended before it was found.
    pub(super) pid_here: Option<u32>,
    /// The damage that was counted before the session was last resumed.
    pub(super) earlier_damage: Damage,
    /// The process has ended and its spool has been drained to the end.
    pub(super) ended: bool,
}

impl DrainedProcess {
    /// Returns the id of the process in this PID namespace, or the id that it recorded when that is not known.
    pub fn pid(&self) -> u32 {
        self.pid_here.unwrap_or(self.spool.pid())
    }

    /// Returns true while the process runs.
    pub fn is_alive(&self) -> bool {
        (self.pid_here).is_some_and(|number| procfs::is_alive(number, self.spool.start_ns()))
    }

    /// Returns true while the process records.
    pub fn is_recording(&self) -> bool {
        self.spool.control().page().recording.load(Relaxed) != 0
    }

    /// Switches the recording of the process on or off.
    pub fn record(&self, on: bool) {
        self.spool.control().record(on);
    }

    /// Switches off the recording of a process that outlives it, and returns the note on that.
    pub fn leave_running(&self) -> String {
        self.record(false);
        let pid = self.pid();
        let name = procfs::name_for_user(pid);
        format!(
            "{name} (process {pid}) was still running when the recording ended; what it did later is not in the trace."
        )
    }

    /// Tells the process when it has begun to filter its system calls, which it cannot ask without one.
    pub(super) fn watch_filters(&self) {
        let filters = &self.spool.control().page().filters_system_calls;
        if filters.load(Relaxed) == 0
            && let Some(pid) = self.pid_here
            && procfs::system_call_filters(pid) > *OWN_FILTERS
        {
            filters.store(1, Relaxed);
        }
    }

    /// Tells the process that one of its windows is finished, and whether its trace could not be written.
    pub(super) fn window_done(&self, number: u32, failed: bool) {
        self.spool.control().finish_window(number, failed);
    }

    /// Returns the bytes of spool that the process has created and that are not deleted yet.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let page = self.spool.control().page();
        page.bytes_created
            .load(Relaxed)
            .saturating_sub(page.bytes_drained.load(Relaxed))
    }

    /// Returns the numbers of records that were lost, before and after the session was last resumed.
    pub(super) fn damage(&self) -> Damage {
        let new = self.spool.damage();
        Damage {
            missing_records: self.earlier_damage.missing_records + new.missing_records,
            undecodable_records: self.earlier_damage.undecodable_records + new.undecodable_records,
        }
    }
}
