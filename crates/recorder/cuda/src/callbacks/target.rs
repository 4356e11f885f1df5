//! On which stream a call put something, or for which it waited.

use super::calls::Call;
use super::data::CallbackData;
use super::effect::Effect;
use crate::cupti::Cupti;
use crate::cupti::numbers::NO_ID;
use crate::driver;
use crate::streams::{self, Handle, StreamId};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// By CUPTI's numbers.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// The call failed, or it went into a graph.
    Nothing,
    /// A context, with a stream that is not known or none.
    Context(u32),
    /// A stream of a context.
    Stream(StreamId),
}

impl Target {
    /// # Safety
    /// The data is of this call, which has succeeded.
    pub unsafe fn of(call: &Call, effect: Effect, data: &CallbackData, cupti: &Cupti) -> Target {
        // SAFETY: as the caller promises: CUPTI's context, and the program's own handles.
        unsafe {
            if effect == Effect::WaitForNamedContext {
                let context = streams::context_id(cupti, data.parameter(0));
                return Target::Context(context.unwrap_or(NO_ID));
            }
            let unknown = Target::Context(data.context_id);
            let Some(at) = effect.stream_parameter() else {
                return unknown;
            };
            let stream = Handle::new(data.parameter(at), call.per_thread);
            if effect.is_on_stream() {
                match is_capturing(stream) {
                    Some(true) => return Target::Nothing,
                    Some(false) => {}
                    None => return unknown,
                }
            }
            match streams::id_in(cupti, data.current_context(), stream) {
                Some(stream) => Target::Stream(stream),
                None => unknown,
            }
        }
    }

    /// As a stream, which may be none; `None` where there is nothing.
    pub fn stream(self) -> Option<StreamId> {
        match self {
            Target::Nothing => None,
            Target::Context(context) => Some(StreamId::none_of(context)),
            Target::Stream(stream) => Some(stream),
        }
    }
}

/// cuStreamIsCapturing
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;

static IS_CAPTURING: OnceLock<Option<IsCapturing>> = OnceLock::new();

/// Looks up what calls need, before the first one.
pub fn prepare() {
    IS_CAPTURING.get_or_init(|| {
        let function = driver::function("cuStreamIsCapturing")?;
        // SAFETY: it is this function of the driver.
        Some(unsafe { std::mem::transmute::<*mut c_void, IsCapturing>(function) })
    });
}

/// Whether what is put on a stream goes into a graph; `None`: the driver does not say.
pub fn is_capturing(stream: Handle) -> Option<bool> {
    let mut status = 0;
    let function = (*IS_CAPTURING.get()?)?;
    // SAFETY: the driver's function with a stream that the program just used; it changes nothing.
    let code = unsafe { function(stream.for_driver(), &mut status) };
    (code == 0).then_some(status != 0)
}
