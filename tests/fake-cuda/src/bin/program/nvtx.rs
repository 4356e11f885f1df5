//! Calls of NVTX through its tables, each with the types that its header gives it.

use super::cuda::Cuda;
use super::nvtx_tables::{CORE, CORE2, CUDA, function};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// nvtxEventAttributes_v2
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// Calls a function of the table when a tool has put one there.
macro_rules! call {
    ($module:ident[$number:literal] ($($argument:expr => $kind:ty),*) -> $result:ty) => {{
        let function = function($module, $number);
        if function.is_null() {
            <$result>::default()
        } else {
            // SAFETY: the function of this number has this type.
            unsafe {
                let function: unsafe extern "C" fn($($kind),*) -> $result = std::mem::transmute(function);
                function($($argument),*)
            }
        }
    }};
}

fn push(text: &CStr) -> c_int {
    call!(CORE[9](text.as_ptr() => *const c_char) -> c_int)
}

fn pop() -> c_int {
    call!(CORE[11]() -> c_int)
}

/// Calls a function inside a label.
pub fn inside<T>(label: &CStr, call: impl FnOnce() -> T) -> T {
    push(label);
    let result = call();
    pop();
    result
}

/// Sets `count` labels, one after the other.
pub fn labels(count: u64, mut inside: impl FnMut()) {
    for step in 0..count {
        push(&CString::new(format!("step {step}")).expect("no NUL"));
        inside();
        pop();
    }
}

fn message(
    category: u32,
    payload: Option<f64>,
    message_type: i32,
    message: *const c_void,
) -> Attributes {
    Attributes {
        version: 3,
        size: size_of::<Attributes>() as u16,
        category,
        color_type: 1,
        color: 0xff00_ff00,
        payload_type: if payload.is_some() { 3 } else { 0 },
        reserved: 0,
        payload: payload.unwrap_or_default().to_bits(),
        message_type,
        message,
    }
}

/// Makes each kind of call once.
pub fn everything(cuda: &Cuda) {
    // NVTX_NO_PUSH_POP_TRACKING with a tool that does not count levels; 0 without a tool, in this header.
    let level = push(c"outer");
    assert!(level == -2 || level == 0, "{level}");
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::gettid() as u32 };
    call!(CORE[14](thread => u32, c"worker".as_ptr() => *const c_char) -> ());
    call!(CORE[2](c"mark".as_ptr() => *const c_char) -> ());
    let wide: Vec<u32> = "breit ✓\0".chars().map(u32::from).collect();
    call!(CORE[3](wide.as_ptr() => *const u32) -> ());
    let range = call!(CORE[5](c"range".as_ptr() => *const c_char) -> u64);
    call!(CORE[12](5 => u32, c"loading".as_ptr() => *const c_char) -> ());
    let attributes = message(5, Some(2.5), 1, c"with payload".as_ptr().cast());
    call!(CORE[8](&raw const attributes => *const Attributes) -> c_int);
    pop();
    let domain = call!(CORE2[12](c"library".as_ptr() => *const c_char) -> usize);
    let text = call!(CORE2[10](domain => usize, c"registered".as_ptr() => *const c_char) -> usize);
    for _ in 0..2 {
        let attributes = message(0, None, 3, text as *const c_void);
        call!(CORE2[4](domain => usize, &raw const attributes => *const Attributes) -> c_int);
    }
    // The outer label without a domain ends while those of the domain are open.
    std::thread::scope(|scope| {
        scope.spawn(|| call!(CORE[7](range => u64) -> ()));
    });
    pop();
    for _ in 0..2 {
        call!(CORE2[5](domain => usize) -> c_int);
    }
    let stream = cuda.stream(1);
    call!(CUDA[5](stream => usize, c"copies".as_ptr() => *const c_char) -> ());
    cuda.launches("_Z3addPfS_i", 1, stream);
}

/// Sets a label with a category whose number no trace has room for.
pub fn far_category() {
    let attributes = message(70_000, None, 1, c"far".as_ptr().cast());
    call!(CORE[8](&raw const attributes => *const Attributes) -> c_int);
    pop();
}

/// Creates a domain.
pub fn domain(name: &CStr) -> usize {
    call!(CORE2[12](name.as_ptr() => *const c_char) -> usize)
}

/// Registers a text in a domain.
pub fn register(domain: usize, text: &CStr) -> usize {
    call!(CORE2[10](domain => usize, text.as_ptr() => *const c_char) -> usize)
}

/// Ends a label of a domain.
pub fn pop_from(domain: usize) {
    call!(CORE2[5](domain => usize) -> c_int);
}

/// Begins a label of a domain with payloads of the payload extension, by their address and count.
pub fn push_with(domain: usize, text: &CStr, payloads: *const c_void, count: usize) {
    let attributes = Attributes {
        payload_type: 0xdfbd_0009_u32 as i32,
        reserved: count as i32,
        payload: payloads as u64,
        ..message(0, None, 1, text.as_ptr().cast())
    };
    call!(CORE2[4](domain => usize, &raw const attributes => *const Attributes) -> c_int);
}

/// nvtxResourceAttributes_v0
#[repr(C)]
struct Resource {
    version: u16,
    size: u16,
    kind: i32,
    identifier: u64,
    message_type: i32,
    message: *const c_char,
}

/// Names a thing by its kind and number; returns whether it has a handle.
pub fn resource(domain: usize, kind: i32, identifier: u64, name: &CStr) -> bool {
    let attributes = Resource {
        version: 3,
        size: size_of::<Resource>() as u16,
        kind,
        identifier,
        message_type: 1,
        message: name.as_ptr(),
    };
    let handle =
        call!(CORE2[6](domain => usize, &raw const attributes => *const Resource) -> usize);
    handle != 0
}
