//! Waits for all work of a context, but not for ever: a kernel may wait for one that the program has not launched yet.

use super::driver_functions::DriverFunctions;
use gapscope_spool::hook;
use std::ffi::{c_int, c_void};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The longest wait.
pub const MAX_WAIT: Duration = Duration::from_secs(20);
/// CU_STREAM_CAPTURE_MODE_RELAXED: calls are allowed while a stream of the program is captured into a graph.
pub const RELAXED: c_int = 2;

/// Waits for all work of a context, on a thread of its own.
///
/// # Errors
/// The work has not ended after [`MAX_WAIT`]; the thread goes on waiting.
pub fn synchronise(driver: &DriverFunctions, context: *mut c_void) -> Result<(), ()> {
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
        unsafe {
            exchange(&mut mode);
            set(context as *mut c_void);
            wait();
        }
        // Nobody listens where the wait took too long.
        let _ = ended.send(());
    });
    match spawned {
        Ok(_) => match has_ended.recv_timeout(MAX_WAIT) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(()),
        },
        Err(_) => {
            // SAFETY: as above, in the thread's own context.
            unsafe { wait() };
            Ok(())
        }
    }
}
