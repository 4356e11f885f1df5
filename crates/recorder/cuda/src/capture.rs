//! Captures launches of kernels, with all that they run on, so that they can be run again (`gapscope capture`).
//!
//! In a process that is captured, this library records nothing: CUPTI's callbacks of calls go to [`control`], and
//! launches that are in a window become records of a capture.
//!
//! ```text
//! CUPTI ── code ──> loaded_code ──────────────┐
//!   └── calls ──> control ── launch_call ──> prepared_launch ──> open_window ──> the capture's files
//!                                                                 │      │
//!                                                      reached_memory   copier
//! ```

mod calls;
mod captured_device;
mod code_calls;
mod control;
mod copier;
mod driver_functions;
mod graph_kernel;
mod graphs;
pub mod interface;
mod launch_call;
mod loaded_code;
mod open_window;
mod prepared_launch;
mod reached_memory;
mod refusal;
mod saved_memory;
mod synchronise;
mod texture_handles;
mod turn;

pub use control::control;
use driver_functions::DriverFunctions;
use std::ffi::{CStr, c_void};

/// The most bytes of parameters of a launch: CUDA 12.1 raised the limit to 32,764.
const MAX_PARAMETER_BYTES: usize = 32 << 10;

/// Returns the name of a function, or of a kernel that stands in its place.
///
/// # Errors
/// The driver's answer, where it knows neither.
fn function_name(driver: &DriverFunctions, function: *mut c_void) -> Result<String, i32> {
    let mut name = std::ptr::null();
    // SAFETY: the driver's functions, which check the program's handle and store texts that live as long as it.
    unsafe {
        let mut code = (driver.function_name)(&mut name, function);
        if code != 0 || name.is_null() {
            code = (driver.kernel_name)(&mut name, function);
        }
        match code == 0 && !name.is_null() {
            true => Ok(CStr::from_ptr(name).to_string_lossy().into_owned()),
            false => Err(code),
        }
    }
}

/// Returns a name as a programmer spells it, where it is a mangled name of C++.
fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name);
    let demangled = symbol.ok().and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| name.to_owned())
}
