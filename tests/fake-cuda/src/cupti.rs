//! The stub of libcupti: switches, buffers, and the behaviour of the real one.

mod buffer;
pub mod callbacks;
mod entry_points;
mod metrics;
pub mod pc_sampling;
mod range_profiler;
mod results;

use crate::config::{BadTimes, config};
use crate::records::{self, Bytes, Kernel, Other};
use buffer::Buffers;
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// Declares structures of parameters, which all begin with their own size and a pointer that is null.
macro_rules! parameters {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })+) => {$(
        #[repr(C)]
        pub struct $name {
            pub struct_size: usize,
            pub private: *mut c_void,
            $(pub $field: $type,)*
        }
    )+};
}

use parameters;

pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// A record of work on a device, kept until the work is done.
struct Pending {
    done_ns: u64,
    bytes: Vec<u8>,
    /// The offsets of `start` and `end`, when they are not known yet at a forced flush.
    times_at: Option<(usize, usize)>,
}

#[derive(Default)]
pub struct State {
    pub subscribed: bool,
    callback: Option<callbacks::Callback>,
    /// The calls at which the subscriber wants callbacks.
    callbacks: HashSet<(u32, u32)>,
    kinds: HashSet<u32>,
    pub buffers: Buffers,
    pending: Vec<Pending>,
    /// The difference between its clock and the host's monotonic clock.
    clock_offset: Option<i64>,
    system_threads: bool,
    kernels: u64,
    written: u64,
    pub graphs: u32,
    /// Graph tracing was switched on while a graph existed.
    pub graphs_traced_late: bool,
    late: Vec<Vec<u8>>,
    /// The attributes that the client has set.
    pub attributes: HashSet<u32>,
    pub range_profiler: range_profiler::RangeProfiler,
    pub pc_sampling: pc_sampling::PcSampling,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

/// Locks the state.
pub fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn clock(id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(id, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns the time of the host's monotonic clock.
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

impl State {
    pub fn is_on(&self, kind: u32) -> bool {
        self.kinds.contains(&kind)
    }

    /// Converts a time to the clock of records.
    pub fn stamp(&self, ns: u64) -> u64 {
        let wall = || clock(libc::CLOCK_REALTIME) as i64 - now() as i64;
        ns.wrapping_add_signed(self.clock_offset.unwrap_or_else(wall))
    }

    /// Converts a time of a device, with the configured error, to the clock of records.
    pub fn of_device(&self, ns: u64) -> u64 {
        static BEGUN: OnceLock<u64> = OnceLock::new();
        let (skew_ns, drift_ppm) = config().skew;
        let since = ns as i64 - *BEGUN.get_or_init(|| ns) as i64;
        self.stamp(ns.wrapping_add_signed(skew_ns + since * drift_ppm / 1_000_000))
    }

    /// Returns the number by which records name the calling thread.
    pub fn thread(&self) -> u32 {
        // SAFETY: both have no preconditions.
        unsafe {
            if self.system_threads {
                libc::gettid() as u32
            } else {
                libc::pthread_self() as u32
            }
        }
    }

    /// Records something that is over, when its kind is on.
    pub fn record<R: Bytes>(&mut self, kind: u32, record: &R) {
        if self.is_on(kind) {
            self.write(record);
        }
    }

    /// Records as [`Self::record`] does, at once or at the end.
    pub fn record_when<R: Bytes>(&mut self, is_late: bool, kind: u32, record: &R) {
        if is_late {
            self.late.push(record.bytes());
        } else {
            self.record(kind, record);
        }
    }

    /// Records a kernel when it is done, and a profiled one without its times.
    pub fn kernel(&mut self, mut kernel: Kernel, is_profiled: bool) {
        if !self.is_on(records::CONCURRENT_KERNEL) {
            return;
        }
        let done_ns = kernel.end;
        (kernel.start, kernel.end) = (self.of_device(kernel.start), self.of_device(kernel.end));
        self.kernels += 1;
        if let Some((bad, every)) = config().times
            && self.kernels.is_multiple_of(every)
        {
            match bad {
                BadTimes::Zero => (kernel.start, kernel.end) = (0, 0),
                BadTimes::Negative => (kernel.start, kernel.end) = (kernel.end, kernel.start),
                BadTimes::Half => kernel.end = 0,
            }
        }
        if is_profiled {
            (kernel.start, kernel.end) = (0, 0);
        }
        self.pending.push(Pending {
            done_ns,
            bytes: kernel.bytes(),
            times_at: Some((16, 24)),
        });
    }

    /// Records other work on a device when it is done at `done_ns`.
    pub fn work<R: Bytes>(&mut self, kind: u32, done_ns: u64, record: &R) {
        if self.is_on(kind) {
            self.pending.push(Pending {
                done_ns,
                bytes: record.bytes(),
                times_at: None,
            });
        }
    }

    fn write<R: Bytes>(&mut self, record: &R) {
        self.write_bytes(record.bytes());
    }

    fn write_bytes(&mut self, bytes: Vec<u8>) {
        self.buffers.append(&bytes);
        self.written += 1;
        let every = config().unknown_every;
        if every > 0 && self.written.is_multiple_of(every) {
            let other = Other {
                kind: records::NOBODY_KNOWS,
                rest: [0; 3],
            };
            self.buffers.append(&other.bytes());
        }
    }

    /// Writes the records of work that is done; `forced`: of all work, without times where it is not done.
    pub fn collect(&mut self, forced: bool) {
        let now = now();
        let pending = std::mem::take(&mut self.pending);
        for mut work in pending {
            if work.done_ns > now && !forced {
                self.pending.push(work);
                continue;
            }
            if let Some((start, end)) = work.times_at.filter(|_| work.done_ns > now) {
                work.bytes[start..start + 8].fill(0);
                work.bytes[end..end + 8].fill(0);
            }
            self.write_bytes(work.bytes);
        }
        if forced {
            for bytes in std::mem::take(&mut self.late) {
                self.write_bytes(bytes);
            }
        }
    }
}
