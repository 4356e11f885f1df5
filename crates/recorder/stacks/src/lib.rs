//! Samples the stacks of threads of other processes from outside. Threads to follow go in; samples, stacks and losses come out.
//!
//! The other process is not stopped, not written to, and runs no code of ours. Its memory is read with `process_vm_readv` while it
//! runs, and a stack is believed only where two reads of it agree. A stack that changed is read again, and in the end counted as a
//! loss. Code that calls and returns all the time is reread most often, about 10 µs later. The delay shifts no share visibly, whereas
//! dropping these samples would, since all of them are of such code: of 1,000 samples of calls shorter than a microsecond none was dropped.
//!
//! A processor that is busy all the time biases more, because the sampling thread then runs late, and mostly when the program gives up
//! its own time slice. The kernel's records of running threads fill the holes that this leaves, and what they do not cover is counted as
//! missing.
//!
//! One thread ([`Stacks`]) samples all followed threads. Its cost is bounded: it takes fewer samples where they cost more.
//!
//! Modules from low to high: `own_session` and `priority` get the sampling thread its turns; `throttling` tells for how long a quota took them; `memory` and `procfs` ask the system; `elf` finds symbols in files; `python` reads the frames of
//! interpreters; `perf_ring` has the kernel record running threads; `native` unwinds; `stack_ids` numbers stacks; `process` holds the
//! state of one process; `sampler` decides which threads to sample and when.
#![deny(missing_docs)]

mod elf;
#[doc(hidden)]
pub mod fuzzing;
mod memory;
mod messages;
mod native;
mod own_session;
mod pace;
mod perf_ring;
mod permissions;
mod priority;
mod process;
mod procfs;
mod python;
mod sampler;
mod stack_ids;
mod system_calls;
mod throttling;
mod workers;

pub use messages::{Frame, Update};
pub use permissions::{Denied, Permissions, check_permissions};
pub use sampler::Options;

use messages::Shared;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// [`Stacks::finish`] waits this long for the sampling thread and then leaves it behind.
const FINISH_TIMEOUT: Duration = Duration::from_millis(900);

/// The handle of the thread that takes samples.
#[derive(Debug)]
pub struct Stacks {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The threads that were followed, as process and thread.
    followed: HashSet<(u32, u32)>,
}

impl Stacks {
    /// Starts the sampling thread, which sleeps until there is a thread to [`Self::follow`].
    pub fn start(options: Options) -> Stacks {
        let shared = Arc::new(Shared::default());
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("stacks".to_owned());
        let thread = thread.spawn(move || {
            let run = || own_session::run(&options.root, || sampler::run(&options, &for_thread));
            let run = AssertUnwindSafe(run);
            // The recording goes on without stacks.
            if catch_unwind(run).is_err() {
                let reason = "the thread that takes them failed: please report it";
                for_thread.send(Update::no_stacks(None, reason));
            }
        });
        if let Err(error) = &thread {
            shared.send(Update::no_stacks(
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

    /// Samples a thread from now on. `pid` is the number of the process in our PID namespace, `thread` the number of the thread in its
    /// own. Following the same thread again does nothing.
    pub fn follow(&mut self, pid: u32, thread: u32) {
        if self.followed.insert((pid, thread)) {
            self.shared.orders().push((pid, thread));
            self.wake();
        }
    }

    /// Stops taking samples, or takes them again.
    pub fn pause(&mut self, paused: bool) {
        if self.shared.paused.swap(paused, Relaxed) != paused {
            self.wake();
        }
    }

    /// Returns the messages since the last call.
    pub fn take(&self) -> Vec<Update> {
        self.shared.take()
    }

    /// Ends sampling within 1 s and returns the messages since the last call.
    pub fn finish(&mut self) -> Vec<Update> {
        self.shared.ended.store(true, Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < FINISH_TIMEOUT {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.take()
    }

    /// Makes the sampling thread look at orders and switches now.
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
