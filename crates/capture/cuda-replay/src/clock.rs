//! Reads the clock of a GPU's multiprocessors from NVIDIA's management library, where there is one.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::Library;

use crate::driver::Driver;

const LIBRARY: &str = "libnvidia-ml.so.1";
/// `NVML_CLOCK_SM`
const OF_MULTIPROCESSORS: c_uint = 1;

type Initialise = unsafe extern "C" fn() -> c_int;
type FindDevice = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type ReadClock = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_uint) -> c_int;

/// The clock of a GPU.
pub struct GpuClock {
    read: ReadClock,
    device: *mut c_void,
}

impl GpuClock {
    /// Opens the clock of a GPU; `None` where the library or the driver does not know it.
    pub fn open(driver: &Driver, device: c_int) -> Option<GpuClock> {
        let bus_id = CString::new(driver.bus_id(device)?).ok()?;
        // SAFETY: the library is NVIDIA's; its functions of these names have these types. It stays loaded.
        unsafe {
            let library = Library::new(LIBRARY).ok()?;
            let initialise = *library.get::<Initialise>(b"nvmlInit_v2").ok()?;
            let find = *library
                .get::<FindDevice>(b"nvmlDeviceGetHandleByPciBusId_v2")
                .ok()?;
            let read = *library.get::<ReadClock>(b"nvmlDeviceGetClockInfo").ok()?;
            std::mem::forget(library);
            let mut handle = ptr::null_mut();
            let is_found = initialise() == 0 && find(bus_id.as_ptr(), &mut handle) == 0;
            is_found.then_some(GpuClock {
                read,
                device: handle,
            })
        }
    }

    /// Returns the clock now, in MHz.
    pub fn mhz(&self) -> Option<u32> {
        let mut mhz = 0;
        // SAFETY: the handle is the library's; it stores a number.
        let code = unsafe { (self.read)(self.device, OF_MULTIPROCESSORS, &mut mhz) };
        (code == 0).then_some(mhz)
    }
}
