//! Fakes of Metal's objects, for tests on machines without Metal. They do no GPU work.

use super::batch::Commands;
use super::counters::{Clocks, CounterError, Counters, SAMPLES_PER_BUFFER};
use super::time::Completion;
use crate::kernel_profile::host_now_ns;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The handler of the end of a command buffer.
type Done = Box<dyn FnOnce(Completion) + Send>;

/// A command buffer that never runs. It ends when it is waited for, or when the test ends it.
#[derive(Default)]
pub struct FakeCommands {
    pub completion: Completion,
    /// The calls, in their order.
    pub log: Arc<Mutex<Vec<String>>>,
    done: Mutex<Option<Done>>,
}

impl FakeCommands {
    /// Makes a command buffer that the GPU ran between these seconds of its clock.
    pub fn ran(start_s: f64, end_s: f64) -> FakeCommands {
        FakeCommands {
            completion: Completion {
                finished: true,
                error: None,
                gpu_start_s: start_s,
                gpu_end_s: end_s,
                ..Completion::default()
            },
            ..FakeCommands::default()
        }
    }

    /// Ends the command buffer and calls the handler.
    pub fn end(&self) {
        let done = self.done.lock().unwrap().take().unwrap();
        done(self.completion.clone());
    }

    fn log(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }
}

impl Commands for FakeCommands {
    fn set_label(&self, label: &str) {
        self.log(format!("label {label}"));
    }

    fn commit(&self) {
        self.log("commit");
    }

    fn wait(&self) {
        self.log("wait");
    }

    fn completion(&self) -> Completion {
        self.completion.clone()
    }

    fn on_completed(&self, done: Done) {
        self.log("handler");
        *self.done.lock().unwrap() = Some(done);
    }
}

/// Counters with samples that the test chooses. Ticks are microseconds of the host's clock.
pub struct FakeCounters {
    /// The number of buffers that can still be allocated.
    pub buffers: AtomicU64,
    /// The value of the sample with index n.
    pub value: Box<dyn Fn(u32) -> u64 + Send + Sync>,
    /// Whether buffers can be read.
    pub resolves: bool,
    /// The number of buffers that have been allocated.
    made: AtomicU64,
}

impl FakeCounters {
    pub fn new(value: impl Fn(u32) -> u64 + Send + Sync + 'static) -> FakeCounters {
        FakeCounters {
            buffers: AtomicU64::new(32),
            value: Box::new(value),
            resolves: true,
            made: AtomicU64::new(0),
        }
    }
}

impl Counters for FakeCounters {
    /// The number of the buffer.
    type Buffer = u64;

    fn allocate(&self) -> Result<u64, CounterError> {
        let left = self.buffers.load(Relaxed);
        if left == 0 {
            return Err(CounterError::Device(
                "Cannot allocate sample buffer".to_owned(),
            ));
        }
        self.buffers.store(left - 1, Relaxed);
        Ok(self.made.fetch_add(1, Relaxed))
    }

    fn resolve(&self, buffer: &u64, count: u32) -> Result<Vec<u64>, CounterError> {
        if !self.resolves {
            return Err(CounterError::Device("no data".to_owned()));
        }
        let first = *buffer as u32 * SAMPLES_PER_BUFFER;
        Ok((0..count).map(|n| (self.value)(first + n)).collect())
    }

    fn clocks(&self) -> Clocks {
        let cpu_ns = host_now_ns();
        Clocks {
            cpu_ns,
            gpu_ticks: cpu_ns / 1000,
        }
    }
}
