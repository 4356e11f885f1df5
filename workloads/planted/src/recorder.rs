//! Calls the recorder's C interface as a program in any language does: finds it at run time, and uses only its
//! description.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};

/// The answers of the interface that this program tells apart from failures.
const DONE: i32 = 0;
const PENDING: i32 = 7;

/// `struct gapscope_table` of the recorder's C header: its functions, which answer `DONE` or the reason of a failure.
#[repr(C)]
struct Table {
    version: u32,
    bytes: u32,
    hook: *const c_char,
    state: extern "C" fn() -> i32,
    start_capture: unsafe extern "C" fn(*const c_char, usize, *mut u32) -> i32,
    stop_capture: extern "C" fn(u32) -> i32,
    capture_state: extern "C" fn(u32) -> i32,
    push_label: unsafe extern "C" fn(*const c_char, usize) -> i32,
    pop_label: extern "C" fn() -> i32,
    instant_label: unsafe extern "C" fn(*const c_char, usize) -> i32,
    flush: extern "C" fn(u64) -> i32,
}

/// The recorder in this process.
pub struct Recorder(&'static Table);

impl Recorder {
    /// Finds the recorder; `None` if nothing records this process.
    pub fn find() -> Option<Self> {
        let maps = std::fs::read("/proc/self/maps").ok()?;
        let path = maps.split(|&byte| byte == b'\n').find_map(|line| {
            let path = &line[line.iter().position(|&byte| byte == b'/')?..];
            let name = Path::new(OsStr::from_bytes(path)).file_name()?;
            name.as_bytes()
                .starts_with(b"libgapscope_")
                .then(|| CString::new(path).ok())?
        })?;
        let symbol: &CStr = c"gapscope_interface";
        let table = unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            if library.is_null() {
                return None;
            }
            let entry = libc::dlsym(library, symbol.as_ptr());
            if entry.is_null() {
                return None;
            }
            let entry =
                std::mem::transmute::<*mut c_void, extern "C" fn(u32) -> *const Table>(entry);
            entry(1).as_ref()?
        };
        Some(Self(table))
    }

    /// Records a window around `work` as a trace at `path`; without a path, the recorder names the trace.
    pub fn capture(&self, path: Option<&Path>, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let path = path.map_or(&[] as &[u8], |path| path.as_os_str().as_bytes());
        let mut number = 0;
        let started =
            unsafe { (self.0.start_capture)(path.as_ptr().cast(), path.len(), &mut number) };
        ensure!(started == DONE, "start_capture answered {started}");
        let done = work();
        let flushed = (self.0.flush)(Duration::from_secs(10).as_nanos() as u64);
        let stopped = (self.0.stop_capture)(number);
        ensure!(flushed == DONE, "flush answered {flushed}");
        ensure!(stopped == DONE, "stop_capture answered {stopped}");
        let mut state = (self.0.capture_state)(number);
        while state == PENDING {
            sleep(Duration::from_millis(2));
            state = (self.0.capture_state)(number);
        }
        ensure!(state == DONE, "capture_state answered {state}");
        done
    }
}
