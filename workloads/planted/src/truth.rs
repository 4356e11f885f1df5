//! Records what the program did (the truth), so that tests can compare a trace with it: [`Truth::start`] before the
//! mode (the kind of work that was asked for), and [`Truth::print`] after it.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// Work that ran on the GPU. A command buffer that is submitted twice counts twice, with all its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The number of calls of vkQueueSubmit or vkQueueSubmit2.
    pub submits: u64,
    /// The number of primary command buffers.
    pub command_buffers: u64,
    pub dispatches: u64,
    /// The number of copies, fills and updates.
    pub transfers: u64,
    pub transfer_bytes: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.submits += other.submits;
        self.command_buffers += other.command_buffers;
        self.dispatches += other.dispatches;
        self.transfers += other.transfers;
        self.transfer_bytes += other.transfer_bytes;
    }
}

#[derive(Debug, Serialize)]
/// All that is printed about one run of one process.
pub struct Truth {
    mode: String,
    pid: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device: String,
    #[serde(flatten)]
    pub tally: Tally,
    /// The time for which the host kept the GPU without work on purpose.
    pub host_idle_ns: u64,
    /// The bounds of the run on CLOCK_MONOTONIC.
    start_ns: u64,
    end_ns: u64,
    /// The time between these bounds.
    wall_ns: u64,
    pub memory_allocations: u64,
    pub memory_allocated_bytes: u64,
    /// The maximum of allocated memory, summed over devices.
    pub memory_peak_bytes: u64,
    /// The FNV-1a hash of the result buffers in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_hash: Option<String>,
    #[serde(flatten)]
    /// What only some modes tell, see [`Truth::note`].
    pub more: BTreeMap<&'static str, Value>,
    #[serde(skip)]
    /// The hash of the results so far; `None` before the first.
    hash: Option<Fnv>,
}

impl Truth {
    pub fn start(mode: String) -> Self {
        Self {
            mode,
            pid: 0,
            device: String::new(),
            tally: Tally::default(),
            host_idle_ns: 0,
            start_ns: monotonic_ns(),
            end_ns: 0,
            wall_ns: 0,
            memory_allocations: 0,
            memory_allocated_bytes: 0,
            memory_peak_bytes: 0,
            result_hash: None,
            more: BTreeMap::new(),
            hash: None,
        }
    }

    pub fn add_result(&mut self, bytes: &[u8]) {
        self.hash.get_or_insert_default().update(bytes);
    }

    /// Sleeps while the GPU has nothing to do.
    pub fn sleep_idle(&mut self, us: u64) {
        let start = monotonic_ns();
        std::thread::sleep(Duration::from_micros(us));
        self.host_idle_ns += monotonic_ns() - start;
    }

    /// Adds a member to the JSON.
    pub fn note(&mut self, name: &'static str, value: impl Into<Value>) {
        self.more.insert(name, value.into());
    }

    /// Ends the run and prints it as one line of JSON.
    pub fn print(&mut self) {
        // The process may have forked since the start, so that the pid is read last.
        self.pid = std::process::id();
        self.end_ns = monotonic_ns();
        self.wall_ns = self.end_ns - self.start_ns;
        self.result_hash = self.hash.as_ref().map(|hash| format!("{:016x}", hash.0));
        println!("{}", serde_json::json!(self));
    }
}

pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `clock_gettime` writes to a local. It cannot fail, because the clock exists wherever Vulkan does.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[derive(Debug)]
/// The state of an FNV-1a hash of 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
