//! Measures the greatest resident memory of a process by asking the kernel while the process lives.

use std::fs;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};

/// The thread that watches a process until it ends.
pub struct Peak(JoinHandle<Option<u64>>);

impl Peak {
    /// Watches a process.
    pub fn watch(process: u32) -> Peak {
        Peak(thread::spawn(move || watch(process)))
    }

    /// Watches the first child of a process.
    pub fn watch_child(parent: u32) -> Peak {
        Peak(thread::spawn(move || {
            loop {
                let children =
                    fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
                if let Some(child) = children
                    .split(' ')
                    .next()
                    .and_then(|child| child.parse().ok())
                {
                    return watch(child);
                }
                thread::sleep(INTERVAL);
            }
        }))
    }

    /// Returns the peak in MiB after the process has ended.
    pub fn mib(self) -> Result<f64> {
        match self.0.join() {
            Ok(Some(kib)) => Ok(kib as f64 / 1024.0),
            _ => bail!("the memory of a process could not be read while it ran"),
        }
    }
}

const INTERVAL: Duration = Duration::from_millis(2);

/// Returns the last peak in KiB that could be read. It only grows, and an ended process has none.
fn watch(process: u32) -> Option<u64> {
    let mut peak = None;
    while let Some(now) = peak_kib(process) {
        peak = Some(now);
        thread::sleep(INTERVAL);
    }
    peak
}

/// Returns the greatest resident memory of a process so far; `None` once it has ended.
fn peak_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
