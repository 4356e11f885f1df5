//! Finds the target of a call of CUDA: the stream on which the call put something, or for which it waited.

use super::calls::Call;
use super::data::CallbackData;
use super::effect::Effect;
use crate::cupti::Cupti;
use crate::cupti::numbers::NO_ID;
use crate::driver;
use crate::streams::{self, StreamHandle, StreamId};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// The target of a call, by CUPTI's numbers.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// The call failed, or went into a graph.
    Nothing,
    /// A context, without a known stream.
    Context(u32),
    /// A stream of a context.
    Stream(StreamId),
}

impl Target {
    /// Finds the target of a call.
    ///
    /// # Safety
    /// The data is of this call, which has succeeded.
    pub unsafe fn find(call: &Call, effect: Effect, data: &CallbackData, cupti: &Cupti) -> Target {
        // SAFETY: as the caller promises: CUPTI's context, and the program's own handles.
        unsafe {
            if effect == Effect::WaitForNamedContext {
                let context = streams::context_id(cupti, data.parameter(0));
                return Target::Context(context.unwrap_or(NO_ID));
            }
            match effect.stream_parameter() {
                Some(at) => Target::on_stream(call, at, effect.is_on_stream(), data, cupti),
                None => Target::Context(data.context_id),
            }
        }
    }

    /// Returns the stream that is a parameter of a call. A call that `is_captured` goes into a graph where the stream is captured.
    ///
    /// # Safety
    /// As for [`Self::find`].
    pub unsafe fn on_stream(
        call: &Call,
        parameter: usize,
        is_captured: bool,
        data: &CallbackData,
        cupti: &Cupti,
    ) -> Target {
        // SAFETY: as the caller promises.
        unsafe {
            let unknown = Target::Context(data.context_id);
            let stream = StreamHandle::new(data.parameter(parameter), call.per_thread);
            if is_captured {
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

    /// Returns the target as a stream id, which may name no stream; `None` for [`Target::Nothing`].
    pub fn stream(self) -> Option<StreamId> {
        match self {
            Target::Nothing => None,
            Target::Context(context) => Some(StreamId::without_stream(context)),
            Target::Stream(stream) => Some(stream),
        }
    }
}

/// cuStreamIsCapturing
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;

static IS_CAPTURING: OnceLock<Option<IsCapturing>> = OnceLock::new();

/// Looks up the driver's function before the first call.
pub fn prepare() {
    // SAFETY: the driver's function of this name.
    IS_CAPTURING.get_or_init(|| unsafe { driver::function("cuStreamIsCapturing") });
}

/// Returns whether what is put on a stream goes into a graph; `None` where the driver does not tell.
pub fn is_capturing(stream: StreamHandle) -> Option<bool> {
    let mut status = 0;
    let function = (*IS_CAPTURING.get()?)?;
    // SAFETY: the driver's function with a stream that the program just used; it changes nothing.
    let code = unsafe { function(stream.for_driver(), &mut status) };
    (code == 0).then_some(status != 0)
}
