//! Starts the recording of this process at the first call of one of this library's entry points, and ends it when
//! the process exits.

use crate::callbacks::{polls, profile};
use crate::recorder::{self, Recorder};
use crate::subscription;
use gapscope_spool::event::{CommonEvent, LossKind};
use gapscope_spool::hook::{self, guard};
use std::sync::Once;

/// Returns the recorder when this process is being recorded. The first call starts it.
pub fn recorder() -> Option<&'static Recorder> {
    static ONCE: Once = Once::new();
    let recorder = recorder::start()?;
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(at_exit) };
    });
    Some(recorder)
}

/// Writes the end of the process. It runs after the last flush, whose handler is registered later.
extern "C" fn at_exit() {
    guard(|| {
        let Some(recorder) = recorder::recorder().filter(|recorder| recorder.is_active()) else {
            return;
        };
        // Other exit handlers may have polled or profiled since the last flush.
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
