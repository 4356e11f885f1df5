//! Wraps the functions of CUDA's driver that a replay needs, loaded when a replay runs. Each failure names the function,
//! the driver's name of the error, and what the call was for.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::Library;

use crate::error::Error;

const LIBRARY: &str = "libcuda.so.1";
/// `CUDA_SUCCESS`
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_NOT_READY`
const NOT_READY: c_int = 600;
/// Room for a device's name; the driver cuts longer ones.
const NAME_BYTES: usize = 256;

/// The numbers of `CUdevice_attribute` that are asked for.
pub mod device_attribute {
    pub const L2_BYTES: i32 = 38;
    pub const MAJOR: i32 = 75;
    pub const MINOR: i32 = 76;
}

/// The numbers of `CUfunction_attribute` that are set.
pub mod function_attribute {
    pub const MAX_DYNAMIC_SHARED_BYTES: i32 = 8;
    pub const SHARED_CARVEOUT: i32 = 9;
    pub const NON_PORTABLE_CLUSTER: i32 = 14;
}

/// `CUmemAllocationProp`
#[repr(C)]
#[derive(Default)]
struct AllocationProperties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    windows: usize,
    flags: [u8; 8],
}

/// `CUmemLocation`
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemAccessDesc`
#[repr(C)]
struct Access {
    location: Location,
    flags: c_int,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`, `CU_MEM_ACCESS_FLAGS_PROT_READWRITE` and
/// `CU_MEMHOSTREGISTER_DEVICEMAP`
const PINNED: c_int = 1;
const ON_DEVICE: c_int = 1;
const READ_WRITE: c_int = 3;
#[cfg(target_os = "linux")]
const DEVICE_MAP: c_uint = 2;

/// `CUlaunchAttribute`
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    pub id: u32,
    pub pad: u32,
    pub value: [u8; 64],
}

/// `CUlaunchConfig`
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: *mut c_void,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: c_uint,
}

/// Declares the functions of the driver, with their names in the library.
macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*);)*) => {
        #[derive(Clone, Copy)]
        // Memory of the host is mapped at its addresses on Linux only.
        #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            fn load(library: &Library) -> Result<Functions, Error> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: the functions of these names in CUDA's driver have these types.
                        let found = unsafe { library.get($name.as_bytes()) };
                        *found.map_err(|_| Error::NoDriver(format!("it has no {}", $name)))?
                    },)*
                })
            }
        }
    };
}

functions! {
    init "cuInit" (c_uint);
    version "cuDriverGetVersion" (*mut c_int);
    count "cuDeviceGetCount" (*mut c_int);
    device "cuDeviceGet" (*mut c_int, c_int);
    name "cuDeviceGetName" (*mut c_char, c_int, c_int);
    attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain "cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
    set_context "cuCtxSetCurrent" (*mut c_void);
    error_name "cuGetErrorName" (c_int, *mut *const c_char);
    reserve "cuMemAddressReserve" (*mut u64, usize, usize, u64, u64);
    free_addresses "cuMemAddressFree" (u64, usize);
    create "cuMemCreate" (*mut u64, usize, *const AllocationProperties, u64);
    map "cuMemMap" (u64, usize, usize, u64, u64);
    set_access "cuMemSetAccess" (u64, usize, *const Access, usize);
    register "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    load "cuModuleLoadData" (*mut *mut c_void, *const c_void);
    function "cuModuleGetFunction" (*mut *mut c_void, *mut c_void, *const c_char);
    global "cuModuleGetGlobal_v2" (*mut u64, *mut usize, *mut c_void, *const c_char);
    set_function "cuFuncSetAttribute" (*mut c_void, c_int, c_int);
    launch "cuLaunchKernelEx" (*const LaunchConfig, *mut c_void, *mut *mut c_void, *mut *mut c_void);
    to_device "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, *mut c_void);
    to_host "cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, *mut c_void);
    copy "cuMemcpyDtoD_v2" (u64, u64, usize);
    fill "cuMemsetD8_v2" (u64, u8, usize);
    allocate "cuMemAlloc_v2" (*mut u64, usize);
    free "cuMemFree_v2" (u64);
    allocate_host "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    query "cuStreamQuery" (*mut c_void);
    synchronise "cuCtxSynchronize" ();
    event "cuEventCreate" (*mut *mut c_void, c_uint);
    record "cuEventRecord" (*mut c_void, *mut c_void);
    elapsed "cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void);
}

/// `cuFuncGetParamInfo`, which drivers have from CUDA 12.4 on.
type ParameterInfo = unsafe extern "C" fn(*mut c_void, usize, *mut usize, *mut usize) -> c_int;

/// `cuDeviceGetPCIBusId`
type BusId = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;

/// The initialised driver. Its library stays loaded.
#[derive(Clone, Copy)]
pub struct Driver {
    functions: Functions,
    parameter_info: Option<ParameterInfo>,
    bus_id: Option<BusId>,
}

/// A loaded module.
#[derive(Clone, Copy)]
pub struct ModuleHandle(*mut c_void);

/// A kernel of a loaded module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FunctionHandle(*mut c_void);

/// A place in the order of the GPU's work, with its time.
#[derive(Clone, Copy)]
pub struct Event(*mut c_void);

/// The state of the work that was given to the GPU.
pub enum Progress {
    Done,
    Working,
    /// The name of the error with which it failed.
    Failed(String),
}

impl Driver {
    /// Loads the driver and initialises it.
    pub fn open() -> Result<Driver, Error> {
        // SAFETY: the library is NVIDIA's, whose initialisers every CUDA program runs.
        let library =
            unsafe { Library::new(LIBRARY) }.map_err(|error| Error::NoDriver(error.to_string()))?;
        let functions = Functions::load(&library)?;
        // SAFETY: the function of this name has this type.
        let parameter_info = unsafe { library.get::<ParameterInfo>(b"cuFuncGetParamInfo") };
        // SAFETY: as above.
        let bus_id = unsafe { library.get::<BusId>(b"cuDeviceGetPCIBusId") };
        let driver = Driver {
            functions,
            bus_id: bus_id.ok().map(|found| *found),
            parameter_info: parameter_info.ok().map(|found| *found),
        };
        std::mem::forget(library);
        // SAFETY: it may be called at any time.
        let code = unsafe { (driver.functions.init)(0) };
        driver.check("cuInit", code, || "at the start".into())?;
        Ok(driver)
    }

    /// Returns the driver's name of an error.
    fn error_text(&self, code: c_int) -> String {
        let mut text = ptr::null();
        // SAFETY: it stores the address of a constant text.
        let answer = unsafe { (self.functions.error_name)(code, &mut text) };
        if answer != SUCCESS || text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }

    /// Turns the code of a call into a result.
    fn check(
        &self,
        call: &'static str,
        code: c_int,
        what: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        match code {
            SUCCESS => Ok(()),
            code => Err(Error::Call {
                call,
                code: self.error_text(code),
                what: what(),
            }),
        }
    }

    /// Returns the newest version of CUDA that the driver supports, as 1000 × major + 10 × minor.
    pub fn version(&self) -> Option<u32> {
        let mut version = 0;
        // SAFETY: it stores a number.
        let code = unsafe { (self.functions.version)(&mut version) };
        u32::try_from(version).ok().filter(|_| code == SUCCESS)
    }

    /// Returns the handles and names of the GPUs.
    pub fn devices(&self) -> Result<Vec<(c_int, String)>, Error> {
        let mut count = 0;
        // SAFETY: it stores a number.
        let code = unsafe { (self.functions.count)(&mut count) };
        self.check("cuDeviceGetCount", code, || "when GPUs were listed".into())?;
        let mut all = Vec::new();
        for number in 0..count {
            let mut handle = 0;
            let mut name = [0u8; NAME_BYTES];
            // SAFETY: the calls store a number and a text that ends in a zero byte.
            unsafe {
                let code = (self.functions.device)(&mut handle, number);
                self.check("cuDeviceGet", code, || format!("for GPU {number}"))?;
                let place = name.as_mut_ptr().cast();
                let code = (self.functions.name)(place, NAME_BYTES as c_int, handle);
                self.check("cuDeviceGetName", code, || format!("for GPU {number}"))?;
            }
            let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
            all.push((handle, name.to_string_lossy().into_owned()));
        }
        Ok(all)
    }

    /// Returns an attribute of a GPU.
    pub fn attribute(&self, device: c_int, number: c_int) -> Result<i32, Error> {
        let mut value = 0;
        // SAFETY: it stores a number.
        let code = unsafe { (self.functions.attribute)(&mut value, number, device) };
        self.check("cuDeviceGetAttribute", code, || {
            format!("for attribute {number}")
        })?;
        Ok(value)
    }

    /// Returns the place of a GPU on the PCI bus, as NVIDIA's libraries write it.
    pub fn bus_id(&self, device: c_int) -> Option<String> {
        let mut text = [0u8; 32];
        // SAFETY: the call stores a text that ends in a zero byte.
        let code = unsafe { self.bus_id?(text.as_mut_ptr().cast(), text.len() as c_int, device) };
        let text = CStr::from_bytes_until_nul(&text).ok()?;
        (code == SUCCESS).then(|| text.to_string_lossy().into_owned())
    }

    /// Makes a GPU's primary context and uses it on this thread.
    pub fn use_device(&self, device: c_int) -> Result<(), Error> {
        let mut context = ptr::null_mut();
        // SAFETY: it stores a handle, which is then used.
        unsafe {
            let code = (self.functions.retain)(&mut context, device);
            self.check("cuDevicePrimaryCtxRetain", code, || {
                "when the GPU was opened".into()
            })?;
            let code = (self.functions.set_context)(context);
            self.check("cuCtxSetCurrent", code, || "when the GPU was opened".into())
        }
    }

    /// Reserves addresses, and returns where; that may be elsewhere than asked.
    pub fn reserve(&self, address: u64, bytes: u64) -> Result<u64, Error> {
        let mut given = 0;
        // SAFETY: it stores an address.
        let code = unsafe { (self.functions.reserve)(&mut given, bytes as usize, 0, address, 0) };
        self.check("cuMemAddressReserve", code, || {
            format!("for {bytes} bytes at {address:#x}")
        })?;
        Ok(given)
    }

    /// Gives reserved addresses back.
    pub fn free_addresses(&self, address: u64, bytes: u64) {
        // SAFETY: nothing is mapped there. A failure leaves them reserved, which does no harm.
        let _ = unsafe { (self.functions.free_addresses)(address, bytes as usize) };
    }

    /// Makes memory of a GPU at reserved addresses.
    pub fn map(&self, device: c_int, address: u64, bytes: u64) -> Result<(), Error> {
        let location = Location {
            kind: ON_DEVICE,
            id: device,
        };
        let properties = AllocationProperties {
            kind: PINNED,
            location,
            ..AllocationProperties::default()
        };
        let access = Access {
            location,
            flags: READ_WRITE,
        };
        let what = || format!("for {bytes} bytes at {address:#x}");
        let size = bytes as usize;
        let mut handle = 0;
        // SAFETY: the structures live during the calls, and the addresses are reserved.
        unsafe {
            let code = (self.functions.create)(&mut handle, size, &properties, 0);
            self.check("cuMemCreate", code, what)?;
            let code = (self.functions.map)(address, size, 0, handle, 0);
            self.check("cuMemMap", code, what)?;
            let code = (self.functions.set_access)(address, size, &access, 1);
            self.check("cuMemSetAccess", code, what)
        }
    }

    /// Lets the GPU use memory of the host at its address.
    #[cfg(target_os = "linux")]
    pub fn register(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let place = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the caller has mapped the memory, and never unmaps it.
        let code = unsafe { (self.functions.register)(place, bytes as usize, DEVICE_MAP) };
        self.check("cuMemHostRegister", code, || {
            format!("for {bytes} bytes at {address:#x}")
        })
    }

    /// Loads a cubin, or PTX that ends in a zero byte.
    pub fn load(&self, code: &[u8], what: &str) -> Result<ModuleHandle, Error> {
        let mut module = ptr::null_mut();
        // SAFETY: the driver reads the code as far as its headers say, which is why captures of strangers need trust.
        let answer = unsafe { (self.functions.load)(&mut module, code.as_ptr().cast()) };
        self.check("cuModuleLoadData", answer, || format!("for {what}"))?;
        Ok(ModuleHandle(module))
    }

    /// Returns a kernel of a module.
    pub fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle, Error> {
        let text = c_text(name)?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, and the text ends in a zero byte.
        let code = unsafe { (self.functions.function)(&mut function, module.0, text.as_ptr()) };
        self.check("cuModuleGetFunction", code, || format!("for kernel {name}"))?;
        Ok(FunctionHandle(function))
    }

    /// Returns the address and the size of a variable of a module.
    pub fn global(&self, module: ModuleHandle, name: &str) -> Result<(u64, u64), Error> {
        let text = c_text(name)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: as above; it stores two numbers.
        let code =
            unsafe { (self.functions.global)(&mut address, &mut bytes, module.0, text.as_ptr()) };
        self.check("cuModuleGetGlobal", code, || format!("for variable {name}"))?;
        Ok((address, bytes as u64))
    }

    /// Sets an attribute of a kernel.
    pub fn set_function(
        &self,
        function: FunctionHandle,
        attribute: c_int,
        value: i32,
    ) -> Result<(), Error> {
        // SAFETY: the function is of a loaded module.
        let code = unsafe { (self.functions.set_function)(function.0, attribute, value) };
        self.check("cuFuncSetAttribute", code, || {
            format!("for attribute {attribute} = {value}")
        })
    }

    /// Returns offset and size of each parameter; `None` where the driver cannot tell.
    pub fn parameters(&self, function: FunctionHandle) -> Option<Vec<(u64, u64)>> {
        /// More than 32 KiB of parameters have.
        const MAX_PARAMETERS: usize = 32 << 10;
        let ask = self.parameter_info?;
        let mut all = Vec::new();
        for index in 0..MAX_PARAMETERS {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: the function is of a loaded module; the call stores two numbers.
            if unsafe { ask(function.0, index, &mut offset, &mut bytes) } != SUCCESS {
                break;
            }
            all.push((offset as u64, bytes as u64));
        }
        Some(all)
    }

    /// Launches a kernel; returns the name of the error if the driver refuses.
    ///
    /// # Safety
    /// The parameters are those of the kernel: `single` an address for each, or else `packed`, as `cuda.h` says.
    pub unsafe fn launch(
        &self,
        config: &LaunchConfig,
        function: FunctionHandle,
        single: *mut *mut c_void,
        packed: *mut *mut c_void,
    ) -> Result<(), String> {
        // SAFETY: as the caller promises.
        match unsafe { (self.functions.launch)(config, function.0, single, packed) } {
            SUCCESS => Ok(()),
            code => Err(self.error_text(code)),
        }
    }

    /// Begins a copy of memory of the host to memory of the GPU.
    ///
    /// # Safety
    /// Both are valid until the GPU's work was waited for.
    pub unsafe fn copy_to_device(
        &self,
        to: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.functions.to_device)(to, from.cast(), bytes, ptr::null_mut()) };
        self.check("cuMemcpyHtoDAsync", code, || {
            format!("for {bytes} bytes to {to:#x}")
        })
    }

    /// Begins a copy of memory of the GPU to memory of the host.
    ///
    /// # Safety
    /// Both are valid until the GPU's work was waited for.
    pub unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.functions.to_host)(to.cast(), from, bytes, ptr::null_mut()) };
        self.check("cuMemcpyDtoHAsync", code, || {
            format!("for {bytes} bytes from {from:#x}")
        })
    }

    /// Copies memory of the GPU on the GPU, in the order of its work.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: the driver refuses addresses that are not of its memory.
        let code = unsafe { (self.functions.copy)(to, from, bytes as usize) };
        self.check("cuMemcpyDtoD", code, || {
            format!("for {bytes} bytes from {from:#x} to {to:#x}")
        })
    }

    /// Fills memory of the GPU, in the order of its work.
    pub fn fill(&self, address: u64, value: u8, bytes: u64) -> Result<(), Error> {
        // SAFETY: as above.
        let code = unsafe { (self.functions.fill)(address, value, bytes as usize) };
        self.check("cuMemsetD8", code, || {
            format!("for {bytes} bytes at {address:#x}")
        })
    }

    /// Makes memory of the GPU, anywhere.
    pub fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        let mut address = 0;
        // SAFETY: it stores an address.
        let code = unsafe { (self.functions.allocate)(&mut address, bytes as usize) };
        self.check("cuMemAlloc", code, || format!("for {bytes} bytes"))?;
        Ok(address)
    }

    /// Frees memory of [`Self::allocate`].
    pub fn free(&self, address: u64) {
        // SAFETY: the address is that of an allocation. At a failure the memory stays until the process ends.
        let _ = unsafe { (self.functions.free)(address) };
    }

    /// Makes page-locked memory of the host, which stays until the process ends.
    pub fn allocate_host(&self, bytes: usize) -> Result<*mut u8, Error> {
        let mut address = ptr::null_mut();
        // SAFETY: it stores an address.
        let code = unsafe { (self.functions.allocate_host)(&mut address, bytes) };
        self.check("cuMemAllocHost", code, || format!("for {bytes} bytes"))?;
        Ok(address.cast())
    }

    /// Returns the state of all work so far.
    pub fn progress(&self) -> Progress {
        // SAFETY: null is the default stream.
        match unsafe { (self.functions.query)(ptr::null_mut()) } {
            SUCCESS => Progress::Done,
            NOT_READY => Progress::Working,
            code => Progress::Failed(self.error_text(code)),
        }
    }

    /// Waits for all work. A kernel's work is waited for by [`Self::progress`], with a limit.
    pub fn finish(&self) -> Result<(), Error> {
        // SAFETY: it may be called at any time.
        let code = unsafe { (self.functions.synchronise)() };
        self.check("cuCtxSynchronize", code, || "after a copy".into())
    }

    /// Makes an event.
    pub fn event(&self) -> Result<Event, Error> {
        let mut event = ptr::null_mut();
        // SAFETY: it stores a handle.
        let code = unsafe { (self.functions.event)(&mut event, 0) };
        self.check("cuEventCreate", code, || "for times".into())?;
        Ok(Event(event))
    }

    /// Puts an event behind the work so far.
    pub fn record(&self, event: Event) -> Result<(), Error> {
        // SAFETY: the event exists, and null is the default stream.
        let code = unsafe { (self.functions.record)(event.0, ptr::null_mut()) };
        self.check("cuEventRecord", code, || "for times".into())
    }

    /// Returns the nanoseconds between two events that have passed.
    pub fn elapsed_ns(&self, from: Event, to: Event) -> Result<f64, Error> {
        let mut ms = 0.0;
        // SAFETY: the events exist; it stores a number.
        let code = unsafe { (self.functions.elapsed)(&mut ms, from.0, to.0) };
        self.check("cuEventElapsedTime", code, || "for times".into())?;
        Ok(f64::from(ms) * 1e6)
    }
}

fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text)
        .map_err(|_| Error::Unsupported("a name in the capture has a zero byte".into()))
}
