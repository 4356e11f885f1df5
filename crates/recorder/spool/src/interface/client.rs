//! The program's side of the interface between a recorded program and the hooks (gapscope's libraries inside it):
//! [`Hooks::loaded`] finds the hooks that are loaded in this process, and a [`Hook`]'s methods call their functions.

use super::{Entry, MIN_TABLE_BYTES, SYMBOL, Status, Table, VERSION};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The beginning of the names of the hooks' files.
const FILE_PREFIX: &[u8] = b"libgapscope_";

/// A hook that is loaded into this process.
#[derive(Debug, Clone, Copy)]
pub struct Hook(&'static Table);

/// The hooks that are loaded into this process. Looking them up takes microseconds. A hook may be loaded later, with
/// the first Vulkan instance or CUDA context, so look again while there is none.
#[derive(Debug, Clone, Default)]
pub struct Hooks(Vec<Hook>);

impl Hooks {
    /// Searches the loaded libraries of this process. Nothing is loaded.
    pub fn loaded() -> Hooks {
        let mut names: Vec<CString> = Vec::new();
        // SAFETY: `collect` is called with `names`, which lives until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut names).cast()) };
        Hooks(
            names
                .iter()
                .filter_map(|name| table_in(name))
                .map(Hook)
                .collect(),
        )
    }

    /// Returns the number of libraries loaded so far. While it stays the same, no hook has appeared. The call takes a
    /// fraction of a microsecond and a lock of the system's loader.
    pub fn libraries_loaded() -> u64 {
        let mut loaded: u64 = 0;
        // SAFETY: `count` is called with `loaded`, which lives until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut loaded).cast()) };
        loaded
    }

    /// Returns the hooks.
    pub fn iter(&self) -> impl Iterator<Item = &Hook> {
        self.0.iter()
    }

    /// Returns true when there are no hooks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads the number of loaded libraries at the first one and stops.
unsafe extern "C" fn count(
    info: *mut libc::dl_phdr_info,
    bytes: usize,
    loaded: *mut c_void,
) -> c_int {
    if bytes >= std::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) {
        // SAFETY: the system calls this with a structure of so many bytes and with the number of
        // `Hooks::libraries_loaded`.
        unsafe { *loaded.cast::<u64>() = (*info).dlpi_adds };
    }
    1
}

/// Adds the path of a loaded library to `names` when its file is named like a hook's. Returns 0, so that the search
/// goes on.
unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
    // SAFETY: the system calls this with a valid structure and with the vector of `Hooks::loaded`.
    let (name, names) = unsafe {
        let name = (*info).dlpi_name;
        if name.is_null() {
            return 0;
        }
        (CStr::from_ptr(name), &mut *names.cast::<Vec<CString>>())
    };
    let path = name.to_bytes();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if file.starts_with(FILE_PREFIX) {
        names.push(name.to_owned());
    }
    0
}

/// Returns the table of the hook in a loaded library; `None` when the library exports none, or its version is too
/// old.
fn table_in(library: &CStr) -> Option<&'static Table> {
    // SAFETY: RTLD_NOLOAD only finds what is loaded. The handle is kept, so that the table stays mapped. The symbol has
    // the type that its name promises; a table of this version or later begins as ours does.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let symbol = libc::dlsym(handle, SYMBOL.as_ptr());
        if symbol.is_null() {
            libc::dlclose(handle);
            return None;
        }
        let entry = std::mem::transmute::<*mut c_void, Entry>(symbol);
        let table = entry(VERSION).as_ref()?;
        (table.version >= VERSION && table.bytes as usize >= MIN_TABLE_BYTES).then_some(table)
    }
}

impl Hook {
    /// Returns the hook's name, `vulkan` or `cuda`.
    pub fn name(&self) -> &'static str {
        // SAFETY: the table's text is static and NUL-terminated.
        let name = unsafe { CStr::from_ptr(self.0.hook) };
        name.to_str().unwrap_or("unknown")
    }

    /// Returns whether this process is recorded: [`Status::Done`], [`Status::Off`] or [`Status::NotRecorded`].
    pub fn state(&self) -> Status {
        Status::from_code((self.0.state)())
    }

    /// Begins a capture and returns its number. Without a path, the window is only marked and gets no trace of its
    /// own.
    ///
    /// # Errors
    /// The status that tells why no capture began.
    pub fn start_capture(&self, path: Option<&Path>) -> Result<u32, Status> {
        let path = path.map_or(&[] as &[u8], |path| path.as_os_str().as_bytes());
        let mut capture = 0;
        // SAFETY: text and variable live through the call.
        let status = unsafe {
            (self.0.start_capture)(path.as_ptr().cast::<c_char>(), path.len(), &mut capture)
        };
        match Status::from_code(status) {
            Status::Done => Ok(capture),
            other => Err(other),
        }
    }

    /// Ends a capture.
    pub fn stop_capture(&self, capture: u32) -> Status {
        Status::from_code((self.0.stop_capture)(capture))
    }

    /// Returns the state of a capture.
    pub fn capture_state(&self, capture: u32) -> Status {
        Status::from_code((self.0.capture_state)(capture))
    }

    /// Begins a label on the calling thread.
    pub fn push_label(&self, text: &str) -> Status {
        // SAFETY: the text lives through the call.
        Status::from_code(unsafe { (self.0.push_label)(text.as_ptr().cast(), text.len()) })
    }

    /// Ends the innermost label of the calling thread.
    pub fn pop_label(&self) -> Status {
        Status::from_code((self.0.pop_label)())
    }

    /// Sets a label at this moment on the calling thread.
    pub fn instant_label(&self, text: &str) -> Status {
        // SAFETY: the text lives through the call.
        Status::from_code(unsafe { (self.0.instant_label)(text.as_ptr().cast(), text.len()) })
    }

    /// Notes that the calling thread has waited for gapscope since `start_ns`, as [`Table::own_time`] says. Hooks of older
    /// builds do not know this.
    pub fn own_time(&self, start_ns: i64) -> Status {
        if (self.0.bytes as usize) < std::mem::offset_of!(Table, pop_label_at) {
            return Status::Unknown;
        }
        Status::from_code((self.0.own_time)(start_ns))
    }

    /// Waits until the times of all finished work are in the spool.
    pub fn flush(&self, timeout: Duration) -> Status {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Status::from_code((self.0.flush)(timeout_ns))
    }
}
