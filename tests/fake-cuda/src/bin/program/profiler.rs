//! A profiler inside the program, such as torch.profiler, and a program that speaks to gapscope.

use super::cuda::{Cuda, function};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

static RECORDS: AtomicU64 = AtomicU64::new(0);

const CUPTI: &str = "libcupti.so.13";

type Subscribe = unsafe extern "C" fn(*mut *mut c_void, *const c_void, *mut c_void) -> c_int;
type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Subscribes to CUPTI if nobody else has.
pub fn subscribe() -> bool {
    let mut handle = std::ptr::null_mut();
    // SAFETY: CUPTI's function.
    unsafe {
        let subscribe: Subscribe = function(CUPTI, "cuptiSubscribe");
        subscribe(&mut handle, std::ptr::null(), std::ptr::null_mut()) == 0
    }
}

unsafe extern "C" fn requested(buffer: *mut *mut u8, bytes: *mut usize, most: *mut usize) {
    const BYTES: usize = 1 << 16;
    // SAFETY: CUPTI's variables.
    unsafe {
        *buffer = Box::leak(Box::new([0u64; BYTES / 8])).as_mut_ptr().cast();
        (*bytes, *most) = (BYTES, 0);
    }
}

unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    _buffer: *mut u8,
    _bytes: usize,
    valid: usize,
) {
    RECORDS.fetch_add(valid as u64, SeqCst);
}

/// Acts as Kineto does: subscribes, and takes the buffers only when it may.
pub fn steal(cuda: &Cuda, work: impl FnOnce()) {
    let served = subscribe();
    if served {
        // SAFETY: CUPTI's function with callbacks of ours.
        unsafe {
            let register: unsafe extern "C" fn(Requested, Completed) -> c_int =
                function(CUPTI, "cuptiActivityRegisterCallbacks");
            register(requested, completed);
        }
    }
    work();
    cuda.synchronise();
    println!("profiler: served {served}, {} bytes", RECORDS.load(SeqCst));
}

/// Runs `work` with recording on, through the interface of the library that records this program. A capture with a path holds what
/// begins and ends in it, and the session writes it meanwhile.
pub fn capture(cuda: &Cuda, work: impl FnOnce()) {
    let to = std::env::var("GAPSCOPE_CAPTURE").unwrap_or_default();
    let path = std::env::var("CUDA_INJECTION64_PATH").expect("the recording library");
    // SAFETY: the library's function, whose table begins as documented in gapscope-spool's `interface`.
    unsafe {
        let interface: extern "C" fn(u32) -> *const Table = function(&path, "gapscope_interface");
        let table = &*interface(1);
        let mut number = 0;
        if !to.is_empty() {
            cuda.synchronise();
        }
        assert_eq!(
            (table.start_capture)(to.as_ptr().cast(), to.len(), &mut number),
            0,
            "start_capture"
        );
        work();
        if !to.is_empty() {
            cuda.synchronise();
        }
        assert_eq!((table.stop_capture)(number), 0, "stop_capture");
        if !to.is_empty() {
            let begun = std::time::Instant::now();
            while (table.capture_state)(number) != 0 {
                assert!(begun.elapsed().as_secs() < 60, "the capture is not written");
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

#[repr(C)]
struct Table {
    version: u32,
    bytes: u32,
    hook: *const std::ffi::c_char,
    state: extern "C" fn() -> i32,
    start_capture: unsafe extern "C" fn(*const std::ffi::c_char, usize, *mut u32) -> i32,
    stop_capture: extern "C" fn(u32) -> i32,
    capture_state: extern "C" fn(u32) -> i32,
}
