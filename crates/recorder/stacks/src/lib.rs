//! Samples the stacks of threads of other processes, from outside: which line of which function they run, or wait in.
//!
//! Nothing is stopped, nothing is written, and nothing runs in the other process: its memory is read with `process_vm_readv` while it
//! runs, and what was read is believed only where it agrees with itself. What does not is read again, and in the end counted as a loss.
//! Code that calls and returns all the time is read again most often, some 10 µs later: this shifts no shares that can be seen, while
//! dropped samples would, as they are all of such code. Of 1,000 samples of calls of less than a microsecond none was dropped.
//!
//! A processor that is busy all the time biases more: the thread is then let in late, and more often when the program gives up its own.
//! The period that each sample has says so.
//!
//! One thread of ours ([`Stacks`]) looks at all threads that are followed. Its cost is bounded: it takes fewer samples where they cost more.
//!
//! Layers, the lower ones first: `memory` and `procfs` ask the system; `elf` finds symbols in files; `python` reads the frames of
//! interpreters (`foreign`: as fuzzing asks for them), `running` has the kernel record threads that run, and `native` unwinds; `stacks` gives stacks their numbers; `process` has what is known of one process; `sampler` decides
//! whom to look at and when.
#![deny(missing_docs)]

mod allowed;
mod elf;
#[doc(hidden)]
pub mod foreign;
mod heard;
mod memory;
mod native;
mod pace;
mod priority;
mod process;
mod procfs;
mod python;
mod running;
mod sampler;
mod stacks;
mod system_calls;
mod workers;

pub use allowed::{Allowed, allowed};
pub use heard::{Frame, Heard};

use heard::Shared;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is still at work then is left behind.
const PATIENCE: Duration = Duration::from_millis(900);

/// How samples are taken.
#[derive(Debug, Clone)]
pub struct Options {
    /// Samples a second of each followed thread. Fewer are taken where they would cost more than a twentieth of a core.
    pub rate_hz: u32,
    /// The folder with `proc`: `/`, but in tests.
    pub root: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rate_hz: 500,
            root: PathBuf::from("/"),
        }
    }
}

/// The thread that takes samples.
#[derive(Debug)]
pub struct Stacks {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    followed: HashSet<(u32, u32)>,
}

impl Stacks {
    /// Starts it. It sleeps before there is a thread to [`Self::follow`].
    pub fn start(options: Options) -> Stacks {
        let shared = Arc::new(Shared::default());
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("stacks".to_owned());
        let thread = thread.spawn(move || {
            let run = AssertUnwindSafe(|| sampler::run(&options, &for_thread));
            // Whoever records goes on without.
            if catch_unwind(run).is_err() {
                let reason = "the thread that takes them failed: please report it";
                for_thread.say(Heard::no_stacks(None, reason));
            }
        });
        if let Err(error) = &thread {
            shared.say(Heard::no_stacks(
                None,
                format!("no thread could be started to take them: {error}"),
            ));
        }
        Stacks {
            shared,
            thread: thread.ok(),
            followed: HashSet::new(),
        }
    }

    /// Takes samples of a thread from now on. `pid` is the process's number here, `thread` what the thread calls itself, which is another
    /// number where it has a PID namespace of its own. Again for the same one it does nothing.
    pub fn follow(&mut self, pid: u32, thread: u32) {
        if self.followed.insert((pid, thread)) {
            self.shared.orders().push((pid, thread));
            self.wake();
        }
    }

    /// Takes no samples until it is called with `false`.
    pub fn pause(&mut self, paused: bool) {
        if self.shared.paused.swap(paused, Relaxed) != paused {
            self.wake();
        }
    }

    /// What it has heard since the last call.
    pub fn take(&self) -> Vec<Heard> {
        self.shared.take()
    }

    /// Ends it, within 1 s, and gives what it has heard since the last call.
    pub fn finish(&mut self) -> Vec<Heard> {
        self.shared.ended.store(true, Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.take()
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        self.shared.ended.store(true, Relaxed);
        self.wake();
    }
}
