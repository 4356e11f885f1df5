//! Reads the machine's stalls (PSI, the time in which processes waited for a resource) and swapping, the memory of
//! the program's processes, and the program's control group. [`MachineSampler::add_process`] names the processes;
//! [`MachineSampler::read`], called in each round, reports the values as [`ConditionUpdate`]s.

use super::ConditionUpdate;
use super::cgroup::Cgroup;
use super::kernel_files::{FileError, PressureFile, source, value_after};
use gapscope_trace::tables::Condition;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads `/proc` and `/sys` for the machine and the program.
pub struct MachineSampler {
    root: PathBuf,
    /// The program's processes, by their ids in `proc`.
    processes: Vec<u32>,
    /// Absent before there is a process.
    files: Option<MachineFiles>,
}

/// The files that are read, and the source of the values of the program's processes, as readings name it.
struct MachineFiles {
    stalls: Vec<PressureFile>,
    group: Option<Cgroup>,
    swap: Option<SwapCounts>,
    program: Arc<str>,
}

/// The values in `/proc/PID/status`, in KiB, and their conditions.
const PROCESS_VALUES: [(&str, Condition); 2] = [
    ("VmSwap:", Condition::ProgramSwap),
    ("VmRSS:", Condition::ProgramResident),
];

/// The counts of pages that went to and from swap.
struct SwapCounts {
    path: PathBuf,
    source: Arc<str>,
    page_bytes: f64,
    /// The time of the last reading, and the pages so far that came in and went out.
    last: Option<(i64, u64, u64)>,
}

impl MachineSampler {
    pub fn new(root: PathBuf) -> MachineSampler {
        MachineSampler {
            root,
            processes: Vec::new(),
            files: None,
        }
    }

    /// Includes the memory of a process from now on.
    pub fn add_process(&mut self, pid: u32) {
        self.processes.push(pid);
    }

    /// Reads everything, once there is a process; the control group is that of the first process. A file that fails
    /// is reported and not read again.
    pub fn read(&mut self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) {
        let Some(first) = self.processes.first() else {
            return;
        };
        let files =
            (self.files).get_or_insert_with(|| MachineFiles::find(&self.root, *first, updates));
        files.stalls.retain_mut(|stall| stall.read(now_ns, updates));
        if let Some(group) = &mut files.group {
            group.read(now_ns, updates);
        }
        if let Some(swap) = &mut files.swap
            && let Err(reason) = swap.read(now_ns, updates)
        {
            updates.push(ConditionUpdate::unmeasured(
                "swapping of the machine",
                reason,
            ));
            files.swap = None;
        }
        let statuses = self.processes.iter().filter_map(|pid| {
            let status = self.root.join(format!("proc/{pid}/status"));
            let status = std::fs::read(status).ok()?;
            Some(String::from_utf8_lossy(&status).into_owned())
        });
        let statuses: Vec<String> = statuses.collect();
        for (key, condition) in PROCESS_VALUES {
            // Processes that have ended have no values.
            let of_each = statuses
                .iter()
                .filter_map(|status| value_after(status, key));
            let kib = of_each.reduce(|a, b| a.saturating_add(b));
            if let Some(kib) = kib {
                updates.push(ConditionUpdate::of_machine(
                    condition,
                    [now_ns, now_ns],
                    Some(kib as f64 * 1024.0),
                    &files.program,
                ));
            }
        }
    }
}

impl MachineFiles {
    /// Finds the files below `root`, with the control group of process `pid`, and reports those that are missing.
    fn find(root: &Path, pid: u32, updates: &mut Vec<ConditionUpdate>) -> MachineFiles {
        let stalls = [
            ("cpu", Condition::CpuStall, None),
            (
                "memory",
                Condition::MemoryStall,
                Some(Condition::MemoryStallFull),
            ),
            ("io", Condition::IoStall, Some(Condition::IoStallFull)),
        ];
        let folder = root.join("proc/pressure");
        let stalls = match folder.is_dir() {
            true => stalls
                .map(|(name, some, full)| PressureFile::new(folder.join(name), some, full))
                .into(),
            false => {
                let reason = "this kernel has no pressure stall information (/proc/pressure); it is there with CONFIG_PSI";
                let what = "stalls of the machine on cpu, memory and io";
                updates.push(ConditionUpdate::unmeasured(what, reason));
                Vec::new()
            }
        };
        let group = Cgroup::find(root, pid).map_err(|reason| {
            let what = "stalls, memory and memory limits of the program's cgroup";
            updates.push(ConditionUpdate::unmeasured(what, reason));
        });
        if let Ok(group) = &group
            && !group.has_memory()
        {
            let reason =
                "it has no memory.current: its memory is not counted apart from that of others";
            updates.push(ConditionUpdate::unmeasured(
                "memory of the program's cgroup",
                reason,
            ));
        }
        let vmstat = root.join("proc/vmstat");
        MachineFiles {
            stalls,
            group: group.ok(),
            swap: Some(SwapCounts {
                source: source(&vmstat),
                path: vmstat,
                page_bytes: page_bytes(),
                last: None,
            }),
            program: "/proc/PID/status".into(),
        }
    }
}

impl SwapCounts {
    /// Reports the bytes a second that went in and out since the last reading; the first reading reports nothing.
    fn read(&mut self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) -> Result<(), FileError> {
        let text = std::fs::read_to_string(&self.path)
            .map_err(|error| FileError::new(&self.path, error))?;
        let pages = value_after(&text, "pswpin ").zip(value_after(&text, "pswpout "));
        let Some((pages_in, pages_out)) = pages else {
            return Err(FileError::NoSwapCounts(self.path.clone()));
        };
        let Some((last_ns, last_in, last_out)) = self.last.replace((now_ns, pages_in, pages_out))
        else {
            return Ok(());
        };
        let seconds = (now_ns - last_ns).max(1) as f64 / 1e9;
        for (condition, now, last) in [
            (Condition::SwapIn, pages_in, last_in),
            (Condition::SwapOut, pages_out, last_out),
        ] {
            let bytes = now.saturating_sub(last) as f64 * self.page_bytes;
            updates.push(ConditionUpdate::of_machine(
                condition,
                [last_ns, now_ns],
                Some(bytes / seconds),
                &self.source,
            ));
        }
        Ok(())
    }
}

#[allow(unsafe_code)]
fn page_bytes() -> f64 {
    // SAFETY: the call takes a number and returns one.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes.max(1) as f64
}
