//! Names that the program gives threads and streams.

use super::attributes::Text;
use crate::cupti;
use crate::recorder::recorder;
use crate::{records, tracing};
use gapscope_spool::Event;
use gapscope_spool::event::ObjectKind;
use gapscope_spool::hook::guard;
use std::ffi::{c_char, c_int, c_void};

fn name_thread(thread: u32, name: Text<'_>) {
    guard(|| {
        if let Some(recorder) = recorder() {
            recorder.write(&Event::Name {
                object: ObjectKind::Thread,
                id: thread,
                name: &name.to_text(),
            });
        }
    });
}

pub unsafe extern "C" fn thread_a(thread: u32, name: *const c_char) {
    // SAFETY: the program's own text.
    name_thread(thread, unsafe { Text::narrow(name) });
}

pub unsafe extern "C" fn thread_w(thread: u32, name: *const u32) {
    // SAFETY: the program's own text.
    name_thread(thread, unsafe { Text::wide(name) });
}

/// Finds CUPTI's numbers for a stream.
///
/// # Safety
/// `stream` is a live stream of the program.
unsafe fn ids(stream: *mut c_void) -> Option<(u32, u32)> {
    let functions = &tracing::cupti()?.functions;
    let context_of = cupti::driver_function("cuStreamGetCtx")?;
    let (mut handle, mut context, mut id) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the driver's and CUPTI's functions with the program's stream; they store into our variables.
    unsafe {
        let context_of: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int =
            std::mem::transmute(context_of);
        let known = context_of(stream, &mut handle) == 0
            && (functions.context_id?)(handle, &mut context) == 0
            && (functions.stream_id?)(handle, stream, 0, &mut id) == 0;
        known.then_some((context, id))
    }
}

/// # Safety
/// `stream` is a live stream of the program.
unsafe fn name_stream(stream: *mut c_void, name: Text<'_>) {
    guard(|| {
        // SAFETY: as the caller promises.
        if let (Some(recorder), Some((context, id))) = (recorder(), unsafe { ids(stream) }) {
            records::name_stream(recorder, context, id, &name.to_text());
        }
    });
}

pub unsafe extern "C" fn stream_a(stream: *mut c_void, name: *const c_char) {
    // SAFETY: the program's own stream and text.
    unsafe { name_stream(stream, Text::narrow(name)) }
}

pub unsafe extern "C" fn stream_w(stream: *mut c_void, name: *const u32) {
    // SAFETY: the program's own stream and text.
    unsafe { name_stream(stream, Text::wide(name)) }
}
