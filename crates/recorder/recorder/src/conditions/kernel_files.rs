//! Reads files of the kernel in `/proc` and of control groups: pressure stall information (PSI, the time in which
//! processes waited for a resource), and lines of keys and numbers. The modules `machine` and `cgroup` read their
//! conditions with this.

use super::ConditionUpdate;
use gapscope_trace::tables::Condition;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reason why a file of the kernel cannot be read or understood.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("pressure stall information is switched off; boot with psi=1 to have {}", .0.display())]
    StallsSwitchedOff(PathBuf),
    #[error("{}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is not in a form that is known", .0.display())]
    UnknownForm(PathBuf),
    #[error("{} is not a number", .0.display())]
    NoNumber(PathBuf),
    #[error("{} has no pswpin and pswpout", .0.display())]
    NoSwapCounts(PathBuf),
}

impl FileError {
    /// Names the cause: opening a file of pressure stalls is "unsupported" where the kernel has them switched off.
    pub fn new(path: &Path, source: std::io::Error) -> FileError {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::Unsupported => FileError::StallsSwitchedOff(path),
            _ => FileError::Unreadable { path, source },
        }
    }
}

/// A file of pressure stall information.
pub struct PressureFile {
    path: PathBuf,
    source: Arc<str>,
    /// The share of time in which at least one process waited.
    some: Condition,
    /// The share of time in which all processes waited; absent for the cpu, whose file has no such value for a
    /// machine.
    full: Option<Condition>,
    /// The time and the totals of the last reading.
    last: Option<(i64, StallTotals)>,
}

/// The total times, in microseconds, in which some processes, or all of them, waited for a resource.
#[derive(Clone, Copy)]
struct StallTotals {
    some_us: u64,
    full_us: Option<u64>,
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

    /// Reports the percentage of time that was lost since the last reading; the first reading reports nothing.
    /// Returns false when the file cannot be read; then its conditions have no value from `now_ns` on, and the reason
    /// is reported unless the file has gone with its control group.
    pub fn read(&mut self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) -> bool {
        let totals = match std::fs::read_to_string(&self.path) {
            Ok(text) => {
                StallTotals::parse(&text).ok_or_else(|| FileError::UnknownForm(self.path.clone()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound && self.last.is_some() => {
                // A control group ends with its program.
                self.push_unknown(now_ns, updates);
                return false;
            }
            Err(error) => Err(FileError::new(&self.path, error)),
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
        updates.push(self.reading(self.some, [last_ns, now_ns], Some(some)));
        if let (Some(full), Some(now_us), Some(last_us)) = (self.full, totals.full_us, last.full_us)
        {
            let lost = share(now_us, last_us);
            updates.push(self.reading(full, [last_ns, now_ns], Some(lost)));
        }
        true
    }

    fn reading(
        &self,
        condition: Condition,
        times_ns: [i64; 2],
        value: Option<f64>,
    ) -> ConditionUpdate {
        ConditionUpdate::of_machine(condition, times_ns, value, &self.source)
    }

    /// Reports that the file's conditions have no value from `now_ns` on.
    fn push_unknown(&self, now_ns: i64, updates: &mut Vec<ConditionUpdate>) {
        for condition in [Some(self.some), self.full].into_iter().flatten() {
            updates.push(self.reading(condition, [now_ns, now_ns], None));
        }
    }
}

impl StallTotals {
    /// Parses lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=62`; `None` without a line `some`.
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

/// Returns the number after a key at the start of a line.
pub fn value_after(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns the path of a file as text, the source of its readings.
pub fn source(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}
