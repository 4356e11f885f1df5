//! Keeps Vulkan objects behind handles. A handle is the address of its object. Objects are never given back to the
//! allocator: a destroyed handle is recognised when it is used again, where a real driver would crash or, worse,
//! not.

use std::ops::Deref;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::*};

use ash::vk::Handle;

use crate::misuse;

/// The loader expects this word first in each dispatchable object, and overwrites it with its dispatch table.
const LOADER_MAGIC: usize = 0x01CD_C0DE;
const DESTROYED: i32 = -1;

/// The content of an object of a type.
pub trait Body: Send + Sync + 'static {
    type Handle: Handle + Copy;
}

#[repr(C)]
pub struct Object<T> {
    pub header: Header,
    body: T,
}

#[repr(C)]
pub struct Header {
    loader_data: AtomicUsize,
    kind: AtomicI32,
    /// The number of submitted command buffers that use the object.
    pending: AtomicU32,
}

impl<T> Deref for Object<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.body
    }
}

impl Header {
    pub fn is_destroyed(&self) -> bool {
        self.kind.load(Acquire) == DESTROYED
    }

    pub fn has_loader_data(&self) -> bool {
        self.loader_data.load(Relaxed) != LOADER_MAGIC
    }

    pub fn is_pending(&self) -> bool {
        self.pending.load(Acquire) > 0
    }

    pub fn begin_use(&self) {
        self.pending.fetch_add(1, AcqRel);
    }

    pub fn end_use(&self) {
        self.pending.fetch_sub(1, AcqRel);
    }
}

pub fn create<T: Body>(body: T) -> T::Handle {
    let header = Header {
        loader_data: AtomicUsize::new(LOADER_MAGIC),
        kind: AtomicI32::new(T::Handle::TYPE.as_raw()),
        pending: AtomicU32::new(0),
    };
    let object: &'static Object<T> = Box::leak(Box::new(Object { header, body }));
    T::Handle::from_raw(std::ptr::from_ref(object) as u64)
}

/// Returns the object of a handle. A null, destroyed or mistyped handle is a misuse, and the call cannot go on.
#[inline]
pub fn get<T: Body>(call: &str, handle: T::Handle) -> Option<&'static Object<T>> {
    let raw = handle.as_raw();
    if raw == 0 || raw % align_of::<Header>() as u64 != 0 {
        misuse::report(
            call,
            format_args!("{:?} handle {raw:#x} was never created", T::Handle::TYPE),
        );
        return None;
    }
    // SAFETY: handles are addresses of leaked objects, each with a `Header` first.
    let kind = unsafe { &*(raw as *const Header) }.kind.load(Acquire);
    if kind == T::Handle::TYPE.as_raw() {
        // SAFETY: the tag says that the leaked object is an `Object<T>`.
        return Some(unsafe { &*(raw as *const Object<T>) });
    }
    let what = if kind == DESTROYED {
        "is destroyed"
    } else {
        "is of another type"
    };
    misuse::report(
        call,
        format_args!("{:?} handle {raw:#x} {what}", T::Handle::TYPE),
    );
    None
}

/// Returns the object without any check, for the paths that a benchmark measures.
#[inline(always)]
pub unsafe fn get_unchecked<T: Body>(handle: T::Handle) -> &'static Object<T> {
    &*(handle.as_raw() as *const Object<T>)
}

/// Marks the object destroyed and returns it. Destroying null is allowed and does nothing.
pub fn destroy<T: Body>(call: &str, handle: T::Handle) -> Option<&'static Object<T>> {
    if handle.as_raw() == 0 {
        return None;
    }
    let object = get::<T>(call, handle)?;
    if object.header.is_pending() {
        let (kind, raw) = (T::Handle::TYPE, std::ptr::from_ref(object) as u64);
        misuse::report(
            call,
            format_args!("{kind:?} {raw:#x} is used by a submitted command buffer"),
        );
    }
    object.header.kind.store(DESTROYED, Release);
    Some(object)
}
