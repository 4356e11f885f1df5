//! What Linux says of itself: stalls (PSI), swap, memory of the program, and its control group.

use super::cgroup::Cgroup;
use super::{ConditionUpdate, Of, Reading};
use gapscope_trace::tables::Condition;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Machine and program, by the files of `/proc` and `/sys`.
pub struct MachineSampler {
    root: PathBuf,
    processes: Vec<u32>,
    /// Absent before there is a process.
    files: Option<MachineFiles>,
}

struct MachineFiles {
    stalls: Vec<PressureFile>,
    group: Option<Cgroup>,
    swap: Option<SwapCounts>,
    program: Arc<str>,
}

/// What is read of each process, and as what.
const PROCESS_VALUES: [(&str, Condition); 2] = [
    ("VmSwap:", Condition::ProgramSwap),
    ("VmRSS:", Condition::ProgramResident),
];

/// A file of pressure stall information.
pub struct PressureFile {
    path: PathBuf,
    source: Arc<str>,
    some: Condition,
    /// Of cpu it says nothing for a machine.
    full: Option<Condition>,
    last: Option<(i64, StallTotals)>,
}

#[derive(Clone, Copy)]
struct StallTotals {
    some_us: u64,
    full_us: Option<u64>,
}

/// Pages that went to and from swap.
struct SwapCounts {
    path: PathBuf,
    source: Arc<str>,
    page_bytes: f64,
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

    pub fn add_process(&mut self, pid: u32) {
        self.processes.push(pid);
    }

    /// Reads all that there is, once there is a process.
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
        let said = self.processes.iter().filter_map(|pid| {
            let status = self.root.join(format!("proc/{pid}/status"));
            let status = std::fs::read(status).ok()?;
            Some(String::from_utf8_lossy(&status).into_owned())
        });
        let said: Vec<String> = said.collect();
        for (key, condition) in PROCESS_VALUES {
            // Those that have ended have none.
            let of_each = said.iter().filter_map(|status| value_after(status, key));
            let kib = of_each.reduce(|a, b| a.saturating_add(b));
            if let Some(kib) = kib {
                updates.push(ConditionUpdate::Reading(Reading {
                    of: Of::Machine,
                    condition,
                    from_ns: now_ns,
                    seen_ns: now_ns,
                    value: Some(kib as f64 * 1024.0),
                    source: files.program.clone(),
                }));
            }
        }
    }
}

impl MachineFiles {
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

impl PressureFile {
    pub fn new(path: PathBuf, some: Condition, full: Option<Condition>) -> PressureFile {
        PressureFile {
            source: source(&path),
            path,
            some,
            full,
            last: None,
        }
    }

    /// The share of the time since the last reading that was lost. False: it cannot be read, which is said.
    pub fn read(&mut self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) -> bool {
        let totals = match std::fs::read_to_string(&self.path) {
            Ok(text) => StallTotals::parse(&text)
                .ok_or_else(|| format!("{} is not in a form that is known", self.path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound && self.last.is_some() => {
                // A control group goes with its program.
                self.push_unknown(now_ns, updates);
                return false;
            }
            Err(error) => Err(why(&self.path, &error)),
        };
        let totals = match totals {
            Ok(totals) => totals,
            Err(reason) => {
                self.push_unknown(now_ns, updates);
                updates.push(ConditionUpdate::unmeasured(self.some.as_str(), reason));
                return false;
            }
        };
        let Some((last_ns, last)) = self.last.replace((now_ns, totals)) else {
            return true;
        };
        let share = |now_us: u64, last_us: u64| {
            let ns = now_us.saturating_sub(last_us) as f64 * 1e3;
            (ns / (now_ns - last_ns).max(1) as f64 * 100.0).min(100.0)
        };
        let some = share(totals.some_us, last.some_us);
        self.push(self.some, last_ns, now_ns, Some(some), updates);
        if let (Some(full), Some(now_us), Some(last_us)) = (self.full, totals.full_us, last.full_us)
        {
            let lost = share(now_us, last_us);
            self.push(full, last_ns, now_ns, Some(lost), updates);
        }
        true
    }

    fn push_unknown(&self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) {
        for condition in [Some(self.some), self.full].into_iter().flatten() {
            self.push(condition, now_ns, now_ns, None, updates);
        }
    }

    fn push(
        &self,
        condition: Condition,
        from_ns: i64,
        seen_ns: i64,
        value: Option<f64>,
        updates: &mut Vec<ConditionUpdate>,
    ) {
        updates.push(ConditionUpdate::Reading(Reading {
            of: Of::Machine,
            condition,
            from_ns,
            seen_ns,
            value,
            source: self.source.clone(),
        }));
    }
}

impl StallTotals {
    /// Of lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=62`.
    fn parse(text: &str) -> Option<StallTotals> {
        let total = |kind: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
            line.split_once("total=")?.1.trim().parse().ok()
        };
        Some(StallTotals {
            some_us: total("some ")?,
            full_us: total("full "),
        })
    }
}

impl SwapCounts {
    fn read(&mut self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) -> Result<(), String> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| why(&self.path, &error))?;
        let pages = value_after(&text, "pswpin ").zip(value_after(&text, "pswpout "));
        let Some((pages_in, pages_out)) = pages else {
            return Err(format!("{} has no pswpin and pswpout", self.path.display()));
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
            updates.push(ConditionUpdate::Reading(Reading {
                of: Of::Machine,
                condition,
                from_ns: last_ns,
                seen_ns: now_ns,
                value: Some(bytes / seconds),
                source: self.source.clone(),
            }));
        }
        Ok(())
    }
}

/// The number behind a key at the start of a line.
pub fn value_after(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Why a file of the kernel cannot be read.
pub fn why(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    match error.kind() {
        ErrorKind::Unsupported => {
            format!("pressure stall information is switched off; boot with psi=1 to have {path}")
        }
        _ => format!("{path}: {error}"),
    }
}

/// A file as the source of a counter.
pub fn source(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

#[allow(unsafe_code)]
fn page_bytes() -> f64 {
    // SAFETY: the call takes a number and gives one.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes.max(1) as f64
}
