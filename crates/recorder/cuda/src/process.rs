//! The recording of this process, from the first call of an entry point to its exit.

use crate::callbacks::{polls, profile};
use crate::recorder::{self, Recorder};
use crate::subscription;
use gapscope_spool::event::{CommonEvent, LossKind};
use gapscope_spool::hook::{self, guard};
use std::sync::Once;

/// The recorder, when this process is being recorded. The first call starts it.
pub fn recorder() -> Option<&'static Recorder> {
    static ONCE: Once = Once::new();
    let recorder = recorder::start()?;
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(at_exit) };
    });
    Some(recorder)
}

/// Runs after the last flush, which is registered later.
extern "C" fn at_exit() {
    guard(|| {
        let Some(recorder) = recorder::recorder().filter(|recorder| recorder.is_active()) else {
            return;
        };
        // Those that other exit handlers made since the last flush.
        if subscription::live().is_some() {
            polls::write_all(recorder);
            profile::finish(recorder);
        }
        let caught = hook::take_caught();
        if caught > 0 {
            recorder.loss(
                LossKind::HookActions,
                caught,
                "internal error of the CUDA library",
            );
        }
        recorder.write(&CommonEvent::ProcessEnd {
            at_ns: gapscope_spool::monotonic_ns(),
        });
    });
}
