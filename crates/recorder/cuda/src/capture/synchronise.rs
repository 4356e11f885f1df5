//! Waits for all work of a context, but not for ever: a kernel may wait for one that the program has not launched yet.

use super::driver_functions::DriverFunctions;
use gapscope_spool::hook;
use std::ffi::{c_int, c_void};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest wait.
pub const MAX_WAIT: Duration = Duration::from_secs(20);
/// CU_STREAM_CAPTURE_MODE_RELAXED: calls are allowed while a stream of the program is captured into a graph.
const RELAXED: c_int = 2;

/// Runs `work` in the mode in which calls are allowed while a stream of the program is captured into a graph, and gives the
/// thread its own mode back.
pub fn while_relaxed<R>(driver: &DriverFunctions, work: impl FnOnce() -> R) -> R {
    let mut mode = RELAXED;
    // SAFETY: the driver's function, which stores the mode that the thread had.
    unsafe { (driver.exchange_capture_mode)(&mut mode) };
    let done = work();
    // SAFETY: as above.
    unsafe { (driver.exchange_capture_mode)(&mut mode) };
    done
}

/// Why a context is not idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotIdle {
    /// The work has not ended after [`MAX_WAIT`]; a thread goes on waiting.
    Busy,
    /// The driver's answer: work has failed, or the driver does not wait now.
    Failed(c_int),
}

/// Waits for all work of a context, on a thread of its own.
pub fn synchronise(driver: &DriverFunctions, context: *mut c_void) -> Result<(), NotIdle> {
    let (exchange, set, wait) = (
        driver.exchange_capture_mode,
        driver.set_context,
        driver.synchronise_context,
    );
    let context = context as usize;
    let (ended, has_ended) = channel();
    let spawned = hook::spawn(move || {
        let mut mode = RELAXED;
        // SAFETY: the driver's functions with the program's context, which exists while its call runs.
        let code = unsafe {
            exchange(&mut mode);
            match set(context as *mut c_void) {
                0 => wait(),
                code => code,
            }
        };
        // Nobody listens where the wait took too long.
        let _ = ended.send(code);
    });
    let code = match spawned {
        Ok(_) => has_ended
            .recv_timeout(MAX_WAIT)
            .map_err(|_| NotIdle::Busy)?,
        // SAFETY: as above, in the thread's own context.
        Err(_) => unsafe { wait() },
    };
    match code {
        0 => Ok(()),
        code => Err(NotIdle::Failed(code)),
    }
}
