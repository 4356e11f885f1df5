//! Loads shared libraries into this process: a path goes in, addresses of functions come out.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

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

    /// Opens a library by `dlopen` with these flags besides the usual ones.
    fn with_flags(path: &Path, flags: c_int) -> Result<SharedLibrary, libloading::Error> {
        // SAFETY: what the library's initialisers do is its own business, as in any program.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | flags)? };
        Ok(SharedLibrary(library.into_raw()))
    }

    /// Looks up a function.
    ///
    /// # Safety
    /// `F` is a pointer that is never null, and has the type of the library's function of this name.
    pub unsafe fn function<F: Copy>(self, name: &str) -> Option<F> {
        // SAFETY: the handle is open, and stays open because nothing is dropped here.
        let library = ManuallyDrop::new(unsafe { Library::from_raw(self.0) });
        // SAFETY: as the caller promises.
        *unsafe { library.get::<Option<F>>(name.as_bytes()) }.ok()?
    }

    /// Returns the file that a function comes from.
    pub fn file_of(self, function: &str) -> Option<PathBuf> {
        // SAFETY: the address is not called. dladdr fills `info`; its file name lives as long as the library, which
        // is never closed.
        unsafe {
            let address = self.function::<NonNull<c_void>>(function)?;
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(address.as_ptr(), &mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            let name = CStr::from_ptr(info.dli_fname);
            Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
        }
    }
}
