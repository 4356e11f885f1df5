//! Translates the handles by which the program names streams (queues of CUDA) to CUPTI's numbers for them.

use crate::cupti::Cupti;
use crate::cupti::numbers::NO_ID;
use crate::driver;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// CU_STREAM_LEGACY: the handle of the default stream of all threads.
const LEGACY: usize = 1;
/// CU_STREAM_PER_THREAD: the handle of each thread's own default stream.
const PER_THREAD: usize = 2;

/// A stream by CUPTI's numbers for it and its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId {
    /// CUPTI's number of the context.
    pub context: u32,
    /// The stream's number; [`NO_ID`] where there is no stream, or it is not known.
    pub stream: u32,
}

impl StreamId {
    /// Returns an id of this context without a stream, or with one that is not known.
    pub fn without_stream(context: u32) -> StreamId {
        StreamId {
            context,
            stream: NO_ID,
        }
    }

    pub fn is_known(self) -> bool {
        self.stream != NO_ID
    }
}

/// The current context of a thread, by its handle and CUPTI's number.
#[derive(Debug, Clone, Copy)]
pub struct CurrentContext {
    pub handle: *mut c_void,
    pub id: u32,
}

/// A stream as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamHandle {
    /// The handle; 0 is the default stream.
    stream: usize,
    /// The default stream is the thread's own.
    per_thread: bool,
}

impl StreamHandle {
    /// Creates a handle. `per_thread`: the call means the thread's own stream by null.
    pub fn new(stream: usize, per_thread: bool) -> StreamHandle {
        match stream {
            0 | LEGACY | PER_THREAD => StreamHandle {
                stream: 0,
                per_thread: stream == PER_THREAD || (stream == 0 && per_thread),
            },
            _ => StreamHandle {
                stream,
                per_thread: false,
            },
        }
    }

    /// Returns the handle for functions of the driver whose null is the default stream of all threads.
    pub fn for_driver(self) -> *mut c_void {
        match self.per_thread {
            true => PER_THREAD as *mut c_void,
            false => self.stream as *mut c_void,
        }
    }
}

/// Returns the id of a stream: first as one of the current context, then by the context that the driver names; `None`
/// where CUPTI does not know it.
///
/// # Safety
/// The context is CUPTI's own, and the stream a live one of the program.
pub unsafe fn id_in(
    cupti: &Cupti,
    current: CurrentContext,
    stream: StreamHandle,
) -> Option<StreamId> {
    let stream_id = cupti.functions.stream_id?;
    let mut number = 0;
    let (handle, own) = (stream.stream as *mut c_void, u8::from(stream.per_thread));
    // SAFETY: CUPTI's function; it refuses a stream of another context.
    let code = unsafe { stream_id(current.handle, handle, own, &mut number) };
    if code == 0 && !current.handle.is_null() {
        return Some(StreamId {
            context: current.id,
            stream: number,
        });
    }
    // SAFETY: as the caller promises.
    unsafe { id(cupti, stream) }
}

/// Returns CUPTI's number for a context.
///
/// # Safety
/// The context is a live one of the program.
pub unsafe fn context_id(cupti: &Cupti, context: usize) -> Option<u32> {
    let mut id = 0;
    // SAFETY: CUPTI's function, which stores a number.
    let code = unsafe { (cupti.functions.context_id?)(context as *mut c_void, &mut id) };
    (code == 0).then_some(id)
}

/// Returns the id of a stream; `None` where CUPTI does not know it.
///
/// # Safety
/// The stream is a live one of the program.
pub unsafe fn id(cupti: &Cupti, stream: StreamHandle) -> Option<StreamId> {
    type ContextOf = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
    static CONTEXT_OF: OnceLock<Option<ContextOf>> = OnceLock::new();
    let stream_id = cupti.functions.stream_id?;
    let (mut context, mut number) = (std::ptr::null_mut(), 0);
    let (there, own) = (stream.stream as *mut c_void, u8::from(stream.per_thread));
    // SAFETY: the driver's and CUPTI's functions with the program's stream; they store into our variables.
    unsafe {
        let context_of = CONTEXT_OF.get_or_init(|| driver::function("cuStreamGetCtx"));
        let known = (*context_of)?(stream.for_driver(), &mut context) == 0
            && stream_id(context, there, own, &mut number) == 0;
        known.then_some(StreamId {
            context: context_id(cupti, context as usize)?,
            stream: number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_streams_have_several_handles() {
        let legacy = StreamHandle::new(0, false);
        assert_eq!(legacy, StreamHandle::new(1, true));
        assert!(legacy.for_driver().is_null());
        let own = StreamHandle::new(0, true);
        assert_eq!(own, StreamHandle::new(2, false));
        assert_eq!(own.for_driver() as usize, 2);
        assert_eq!(StreamHandle::new(64, true), StreamHandle::new(64, false));
        assert_eq!(StreamHandle::new(64, true).for_driver() as usize, 64);
    }
}
