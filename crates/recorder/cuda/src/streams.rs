//! CUPTI's numbers for streams, by the program's handles.

use crate::cupti::Cupti;
use crate::driver;
use std::ffi::{c_int, c_void};

/// CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// A stream as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// 0: the default stream.
    stream: usize,
    /// The default stream is the thread's own.
    per_thread: bool,
}

impl Handle {
    /// `per_thread`: where the call means the thread's own stream by null.
    pub fn new(stream: usize, per_thread: bool) -> Handle {
        match stream {
            0 | LEGACY | PER_THREAD => Handle {
                stream: 0,
                per_thread: stream == PER_THREAD || (stream == 0 && per_thread),
            },
            _ => Handle {
                stream,
                per_thread: false,
            },
        }
    }

    /// The handle for the driver's functions whose null is the default stream of all threads.
    pub fn for_driver(self) -> *mut c_void {
        match self.per_thread {
            true => PER_THREAD as *mut c_void,
            false => self.stream as *mut c_void,
        }
    }
}

/// Context and stream, for a stream that is mostly of this context, which is the thread's current one. `None`: CUPTI does
/// not know them.
///
/// # Safety
/// The context is CUPTI's own, and the stream a live one of the program.
pub unsafe fn ids_in(
    cupti: &Cupti,
    (context, context_id): (*mut c_void, u32),
    stream: Handle,
) -> Option<(u32, u32)> {
    let stream_id = cupti.functions.stream_id?;
    let mut id = 0;
    let (handle, own) = (stream.stream as *mut c_void, u8::from(stream.per_thread));
    // SAFETY: CUPTI's function; it refuses a stream of another context.
    let code = unsafe { stream_id(context, handle, own, &mut id) };
    if code == 0 && !context.is_null() {
        return Some((context_id, id));
    }
    // SAFETY: as the caller promises.
    unsafe { ids(cupti, stream) }
}

/// CUPTI's number for a context.
///
/// # Safety
/// The context is a live one of the program.
pub unsafe fn context_id(cupti: &Cupti, context: usize) -> Option<u32> {
    let mut id = 0;
    // SAFETY: CUPTI's function, which stores a number.
    let code = unsafe { (cupti.functions.context_id?)(context as *mut c_void, &mut id) };
    (code == 0).then_some(id)
}

/// Context and stream. `None`: CUPTI does not know them.
///
/// # Safety
/// The stream is a live one of the program.
pub unsafe fn ids(cupti: &Cupti, stream: Handle) -> Option<(u32, u32)> {
    let stream_id = cupti.functions.stream_id?;
    let context_of = driver::function("cuStreamGetCtx")?;
    let (mut context, mut id) = (std::ptr::null_mut(), 0);
    let (there, own) = (stream.stream as *mut c_void, u8::from(stream.per_thread));
    // SAFETY: the driver's and CUPTI's functions with the program's stream; they store into our variables.
    unsafe {
        let context_of: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int =
            std::mem::transmute(context_of);
        let known = context_of(stream.for_driver(), &mut context) == 0
            && stream_id(context, there, own, &mut id) == 0;
        known.then_some((context_id(cupti, context as usize)?, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_streams_have_several_handles() {
        let legacy = Handle::new(0, false);
        assert_eq!(legacy, Handle::new(1, true));
        assert!(legacy.for_driver().is_null());
        let own = Handle::new(0, true);
        assert_eq!(own, Handle::new(2, false));
        assert_eq!(own.for_driver() as usize, 2);
        assert_eq!(Handle::new(64, true), Handle::new(64, false));
        assert_eq!(Handle::new(64, true).for_driver() as usize, 64);
    }
}
