//! Writes the names that the program gives threads and streams, by functions or as resources of a domain. Names of
//! devices, contexts, events and locks have no place in the trace.

use super::domains::Domain;
use super::text::Text;
use crate::recorder::recorder;
use crate::{records, streams, subscription};
use gapscope_spool::event::{CommonEvent, Object};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use std::ffi::{c_char, c_void};

/// Writes the program's name for a thread, by the system's id.
fn name_thread(thread: u32, name: Text<'_>) {
    guard(|| {
        if let Some(recorder) = recorder() {
            recorder.write(&CommonEvent::Name {
                object: Object::Thread(ids::Thread(thread)),
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

/// Passes on the program's name for a stream.
///
/// # Safety
/// `stream` is a live stream of the program.
unsafe fn name_stream(stream: *mut c_void, name: Text<'_>) {
    guard(|| {
        let (Some(recorder), Some(cupti)) = (recorder(), subscription::cupti()) else {
            return;
        };
        let stream = streams::StreamHandle::new(stream as usize, false);
        // SAFETY: as the caller promises.
        if let Some(id) = unsafe { streams::id(cupti, stream) } {
            records::name_stream(recorder, id, &name.to_text());
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

/// nvtxResourceAttributes_v0
#[derive(Clone, Copy)]
#[repr(C)]
struct Resource {
    version: u16,
    bytes: u16,
    kind: i32,
    /// The thread's id, or the stream's handle.
    identifier: u64,
    message_type: i32,
    message: *const c_void,
}

/// The kinds of resources that are read: nvtxResourceGenericType_t (a thread's id in the system),
/// nvtxResourceCUDAType_t and nvtxResourceCUDARTType_t (streams of the driver and of the runtime).
const THREAD: i32 = 1 << 16 | 3;
const STREAM: i32 = 4 << 16 | 3;
const RUNTIME_STREAM: i32 = 5 << 16 | 1;

/// The target of every resource's handle: the program gets one, so that it knows that the resource was taken.
static RESOURCE: u8 = 0;

/// Takes the program's name for a resource, and returns a handle that stands for any.
pub unsafe extern "C" fn resource(
    _domain: *const Domain,
    attributes: *const c_void,
) -> *const c_void {
    guard(|| {
        let attributes = attributes.cast::<Resource>();
        if attributes.is_null() {
            return;
        }
        // SAFETY: the program's own attributes, which state their size first, with its own text and stream.
        unsafe {
            let bytes = (&raw const (*attributes).bytes).read_unaligned();
            if usize::from(bytes) < size_of::<Resource>() {
                return;
            }
            let resource = attributes.read_unaligned();
            let name = Text::message(resource.message_type, resource.message);
            match resource.kind {
                THREAD => name_thread(resource.identifier as u32, name),
                STREAM | RUNTIME_STREAM => name_stream(resource.identifier as *mut c_void, name),
                _ => {}
            }
        }
    });
    (&raw const RESOURCE).cast()
}
