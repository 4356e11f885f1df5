//! Libraries that are looked for at run time.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A library that stays loaded.
#[derive(Debug, Clone, Copy)]
pub struct Library(*mut c_void);

impl Library {
    /// Loads it, or says in the words of the system why not.
    pub fn open(path: &Path) -> Result<Library, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        let flags: c_int = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: the name ends in a zero byte; what the library's initialisers do is not ours to know.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if !handle.is_null() {
            return Ok(Library(handle));
        }
        // SAFETY: the text of this thread's last failure, or null.
        let said = unsafe { libc::dlerror() };
        Err(match said.is_null() {
            true => format!("{} cannot be loaded", path.display()),
            // SAFETY: it ends in a zero byte.
            false => unsafe { CStr::from_ptr(said) }
                .to_string_lossy()
                .into_owned(),
        })
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is a pointer to a function of the type that has this name.
    pub unsafe fn function<F: Copy>(self, name: &str) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let text = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the handle is open and the name ends in a zero byte.
        let found = unsafe { libc::dlsym(self.0, text.as_ptr()) };
        match found.is_null() {
            true => Err(format!("the library has no {name}")),
            // SAFETY: it is of this type, as the caller promises, and of this size.
            false => Ok(unsafe { std::mem::transmute_copy(&found) }),
        }
    }
}
