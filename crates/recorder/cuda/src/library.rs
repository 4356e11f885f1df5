//! Shared libraries in the process.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A library that stays loaded.
pub struct Library(*mut c_void);

impl Library {
    /// Loads a library, or finds it where it is loaded already.
    pub fn open(path: &Path) -> Option<Library> {
        Library::with(path, 0)
    }

    /// A library that the process has loaded.
    pub fn loaded(path: &Path) -> Option<Library> {
        Library::with(path, libc::RTLD_NOLOAD)
    }

    fn with(path: &Path, flags: i32) -> Option<Library> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the name is NUL-terminated. What the library's initialisers do is its business, as in any program.
        let handle =
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// The address of a function.
    pub fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open and the name NUL-terminated.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }
}

/// The file that a symbol comes from.
pub fn file_of(symbol: *mut c_void) -> Option<PathBuf> {
    // SAFETY: dladdr fills `info`; its file name lives as long as the library, which is never closed.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(symbol, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = CStr::from_ptr(info.dli_fname);
        Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
    }
}
