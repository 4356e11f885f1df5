//! Shared libraries of this process: a path goes in, addresses of functions come out.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A library that stays loaded.
#[derive(Debug, Clone, Copy)]
pub struct SharedLibrary(*mut c_void);

// SAFETY: the linker's handles may be used on any thread.
unsafe impl Send for SharedLibrary {}
// SAFETY: as above.
unsafe impl Sync for SharedLibrary {}

impl SharedLibrary {
    /// Loads a library, or finds it where it is loaded already.
    ///
    /// # Errors
    /// The linker refuses it.
    pub fn open(path: &Path) -> Result<SharedLibrary, libloading::Error> {
        SharedLibrary::with_flags(path, 0)
    }

    /// Finds a library that the process has loaded already.
    pub fn loaded(path: &Path) -> Option<SharedLibrary> {
        SharedLibrary::with_flags(path, libc::RTLD_NOLOAD).ok()
    }

    fn with_flags(path: &Path, flags: c_int) -> Result<SharedLibrary, libloading::Error> {
        // SAFETY: what the library's initialisers do is its own business, as in any program.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | flags)? };
        Ok(SharedLibrary(library.into_raw()))
    }

    /// Returns the address of a function.
    pub fn symbol(self, name: &str) -> Option<*mut c_void> {
        // SAFETY: the handle is open, and stays open because nothing is dropped here.
        let library = ManuallyDrop::new(unsafe { Library::from_raw(self.0) });
        // SAFETY: the address is only passed on.
        let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
        let address = symbol.ok()?.into_raw();
        (!address.is_null()).then_some(address)
    }

    /// Returns the file that a function comes from.
    pub fn file_of(self, function: &str) -> Option<PathBuf> {
        let address = self.symbol(function)?;
        // SAFETY: dladdr fills `info`; its file name lives as long as the library, which is never closed.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(address, &mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            let name = CStr::from_ptr(info.dli_fname);
            Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
        }
    }
}
