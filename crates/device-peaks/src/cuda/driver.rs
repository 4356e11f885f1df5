//! Wraps the functions of the CUDA driver that measuring needs, loaded when a program runs, in safe types:
//! [`Driver::open`], [`Driver::device`], [`Context::new`], then kernels, memory and [`Context::time`].

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::time::Instant;

use libloading::Library;

use crate::error::Error;

const LIBRARY: &str = "libcuda.so.1";
/// The status code of a call that succeeded.
const SUCCESS: c_int = 0;
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`
const MULTIPROCESSORS: c_int = 16;
/// `CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED`
const NATIVE_ATOMICS: c_int = 3;
/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: c_uint = 1;
/// Room for a device's name; the driver cuts longer ones.
const NAME_BYTES: usize = 256;

/// Declares the functions of the driver, with their names in the library.
macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*);)*) => {
        #[derive(Clone, Copy)]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            fn load(library: &Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    // SAFETY: the functions of these names in CUDA's driver have these types.
                    $($field: unsafe { *library.get($name.as_bytes())? },)*
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
    uuid "cuDeviceGetUuid_v2" (*mut [u8; 16], c_int);
    attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    pair_attribute "cuDeviceGetP2PAttribute" (*mut c_int, c_int, c_int, c_int);
    set_context "cuCtxSetCurrent" (*mut c_void);
    enable_peer "cuCtxEnablePeerAccess" (*mut c_void, c_uint);
    copy_peer "cuMemcpyPeerAsync" (u64, *mut c_void, u64, *mut c_void, usize, *mut c_void);
    stream_waits "cuStreamWaitEvent" (*mut c_void, *mut c_void, c_uint);
    context "cuCtxCreate_v2" (*mut *mut c_void, c_uint, c_int);
    destroy_context "cuCtxDestroy_v2" (*mut c_void);
    stream "cuStreamCreate" (*mut *mut c_void, c_uint);
    memory "cuMemGetInfo_v2" (*mut usize, *mut usize);
    allocate "cuMemAlloc_v2" (*mut u64, usize);
    free "cuMemFree_v2" (u64);
    load "cuModuleLoadDataEx" (*mut *mut c_void, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    kernel "cuModuleGetFunction" (*mut *mut c_void, *mut c_void, *const c_char);
    launch "cuLaunchKernel" (
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void, *mut *mut c_void
    );
    copy "cuMemcpyDtoDAsync_v2" (u64, u64, usize, *mut c_void);
    allocate_host "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    free_host "cuMemFreeHost" (*mut c_void);
    copy_from_host "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, *mut c_void);
    copy_to_host "cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, *mut c_void);
    fill "cuMemsetD32Async" (u64, c_uint, usize, *mut c_void);
    event "cuEventCreate" (*mut *mut c_void, c_uint);
    record "cuEventRecord" (*mut c_void, *mut c_void);
    wait "cuEventSynchronize" (*mut c_void);
    finish "cuStreamSynchronize" (*mut c_void);
    elapsed "cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void);
}

/// The initialised CUDA driver. Its library stays loaded.
#[derive(Clone, Copy)]
pub struct Driver(Functions);

/// Turns the status code of a CUDA or cuBLAS call into a result.
pub fn check(call: &'static str, code: c_int) -> Result<(), Error> {
    match code {
        SUCCESS => Ok(()),
        code => Err(Error::Call { call, code }),
    }
}

impl Driver {
    /// Loads the driver.
    ///
    /// # Errors
    /// There is no driver, or it has no device.
    pub fn open() -> Result<Driver, Error> {
        // SAFETY: the library is NVIDIA's, whose initialisers every CUDA program runs.
        let library = unsafe { Library::new(LIBRARY) }?;
        let functions = Functions::load(&library)?;
        std::mem::forget(library);
        // SAFETY: it may be called at any time.
        check("cuInit", unsafe { (functions.init)(0) })?;
        Ok(Driver(functions))
    }

    /// Returns the newest version of CUDA that the driver supports, as 1000 × major + 10 × minor.
    pub fn version(self) -> Option<u32> {
        let mut version = 0;
        // SAFETY: it stores a number.
        let code = unsafe { (self.0.version)(&mut version) };
        u32::try_from(version).ok().filter(|_| code == SUCCESS)
    }

    /// Returns the number of devices.
    pub fn count(self) -> Result<c_int, Error> {
        let mut count = 0;
        // SAFETY: it stores a number.
        check("cuDeviceGetCount", unsafe { (self.0.count)(&mut count) })?;
        Ok(count)
    }

    /// Returns the device with this number.
    pub fn device(self, number: c_int) -> Result<Device, Error> {
        let mut handle = 0;
        let mut name = [0u8; NAME_BYTES];
        let mut uuid = [0u8; 16];
        // SAFETY: the calls store a number, a text that ends in a zero byte, and sixteen bytes, in our variables.
        unsafe {
            check("cuDeviceGet", (self.0.device)(&mut handle, number))?;
            let place = name.as_mut_ptr().cast();
            check(
                "cuDeviceGetName",
                (self.0.name)(place, NAME_BYTES as c_int, handle),
            )?;
            check("cuDeviceGetUuid", (self.0.uuid)(&mut uuid, handle))?;
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(Device {
            handle,
            name: name.to_string_lossy().into_owned(),
            uuid: uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// Returns whether NVLink joins two devices: PCIe has no atomic operations on another device's memory.
    pub fn are_joined(self, one: &Device, other: &Device) -> bool {
        let mut joined = 0;
        // SAFETY: it stores a number.
        let code = unsafe {
            (self.0.pair_attribute)(&mut joined, NATIVE_ATOMICS, one.handle, other.handle)
        };
        code == SUCCESS && joined != 0
    }
}

/// A CUDA device.
pub struct Device {
    handle: c_int,
    pub name: String,
    /// The UUID as hexadecimal.
    pub uuid: String,
}

/// A context on a device, with one stream, until it is dropped. It is current on this thread.
pub struct Context {
    driver: Functions,
    context: *mut c_void,
    /// The stream, in which all work runs in order.
    pub stream: *mut c_void,
    /// The events before and after timed work.
    events: [*mut c_void; 2],
    /// The event after which other streams begin.
    forks: *mut c_void,
    /// Number of multiprocessors of the device, at least 1.
    pub multiprocessors: u32,
}

/// Memory on another device, until it is dropped.
pub struct Peer {
    /// The context on the other device, which frees its memory at its end.
    context: Context,
    address: u64,
    /// The streams of the first device for copies from and to the other one.
    streams: [*mut c_void; 2],
    /// The event of the first device at the end of a copy. Who waits for an event waits for its last record before the wait.
    done: *mut c_void,
}

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub struct Kernel(*mut c_void);

/// Memory of the device, until it is dropped.
pub struct Memory<'a> {
    context: &'a Context,
    pub address: u64,
}

/// Pinned memory of the host, until it is dropped.
pub struct HostMemory<'a> {
    context: &'a Context,
    address: *mut c_void,
}

impl Context {
    /// Makes a context on a device.
    pub fn new(driver: Driver, device: &Device) -> Result<Context, Error> {
        let functions = driver.0;
        let mut made = Context {
            driver: functions,
            context: ptr::null_mut(),
            stream: ptr::null_mut(),
            events: [ptr::null_mut(); 2],
            forks: ptr::null_mut(),
            multiprocessors: 0,
        };
        let mut count = 0;
        // SAFETY: the calls store handles and a number in our variables; the context is current after it was made.
        unsafe {
            check(
                "cuCtxCreate",
                (functions.context)(&mut made.context, 0, device.handle),
            )?;
            check(
                "cuStreamCreate",
                (functions.stream)(&mut made.stream, NON_BLOCKING),
            )?;
            let events = made.events.iter_mut().chain([&mut made.forks]);
            for event in events {
                check("cuEventCreate", (functions.event)(event, 0))?;
            }
            let code = (functions.attribute)(&mut count, MULTIPROCESSORS, device.handle);
            check("cuDeviceGetAttribute", code)?;
        }
        made.multiprocessors = u32::try_from(count).unwrap_or(0).max(1);
        Ok(made)
    }

    /// Returns the number of free bytes of the device's memory.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: it stores two numbers.
        check("cuMemGetInfo", unsafe {
            (self.driver.memory)(&mut free, &mut total)
        })?;
        Ok(free as u64)
    }

    /// Allocates memory on the device.
    pub fn allocate(&self, bytes: u64) -> Result<Memory<'_>, Error> {
        let mut address = 0;
        // SAFETY: it stores an address.
        check("cuMemAlloc", unsafe {
            (self.driver.allocate)(&mut address, bytes as usize)
        })?;
        Ok(Memory {
            context: self,
            address,
        })
    }

    /// Allocates pinned memory of the host.
    pub fn allocate_host(&self, bytes: u64) -> Result<HostMemory<'_>, Error> {
        let mut address = ptr::null_mut();
        // SAFETY: the call stores an address.
        check("cuMemAllocHost", unsafe {
            (self.driver.allocate_host)(&mut address, bytes as usize)
        })?;
        Ok(HostMemory {
            context: self,
            address,
        })
    }

    /// Loads a module of PTX, and returns its kernel with this name.
    pub fn kernel(&self, ptx: &CStr, name: &str) -> Result<Kernel, Error> {
        let (mut module, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        let name = CString::new(name)?;
        // `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`, whose value is in the place of a pointer.
        let mut log = [0u8; 1024];
        let mut options: [c_int; 2] = [5, 6];
        let mut values = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(log.len() - 1),
        ];
        // SAFETY: both texts end in a zero byte; handles are stored in our variables, and the log has room for the text.
        unsafe {
            let code = (self.driver.load)(
                &mut module,
                ptx.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            );
            if code != SUCCESS {
                let log = CStr::from_bytes_until_nul(&log).unwrap_or_default();
                return Err(match log.to_string_lossy().lines().next() {
                    Some(line) => Error::Module {
                        code,
                        line: line.to_owned(),
                    },
                    None => Error::Call {
                        call: "cuModuleLoadDataEx",
                        code,
                    },
                });
            }
            let code = (self.driver.kernel)(&mut kernel, module, name.as_ptr());
            check("cuModuleGetFunction", code)?;
        }
        Ok(Kernel(kernel))
    }

    /// Launches a kernel with a number of workgroups, and of invocations in each, as `[workgroups, invocations]`.
    ///
    /// # Safety
    /// The parameters are those of the kernel: eight bytes each, of which it may read four. The memory that they address lives until
    /// [`Self::time`] has returned.
    pub unsafe fn launch(
        &self,
        kernel: Kernel,
        [groups, threads]: [u32; 2],
        parameters: &mut [u64],
    ) -> Result<(), Error> {
        let places = parameters.iter_mut().map(|one| ptr::from_mut(one).cast());
        let mut places: Vec<*mut c_void> = places.collect();
        let (places, none) = (places.as_mut_ptr(), ptr::null_mut());
        let stream = self.stream;
        // SAFETY: as the caller promises; the driver has copied the parameters when it returns.
        let code = unsafe {
            (self.driver.launch)(
                kernel.0, groups, 1, 1, threads, 1, 1, 0, stream, places, none,
            )
        };
        check("cuLaunchKernel", code)
    }

    /// Copies memory of the device to other memory of it.
    ///
    /// # Safety
    /// Both have so many bytes and live until [`Self::time`] has returned.
    pub unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.driver.copy)(to, from, bytes as usize, self.stream) };
        check("cuMemcpyDtoDAsync", code)
    }

    /// Copies pinned memory of the host to memory of the device.
    ///
    /// # Safety
    /// Both have so many bytes and live until [`Self::time`] has returned.
    pub unsafe fn copy_from_host(
        &self,
        from: &HostMemory<'_>,
        to: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let code =
            unsafe { (self.driver.copy_from_host)(to, from.address, bytes as usize, self.stream) };
        check("cuMemcpyHtoDAsync", code)
    }

    /// Copies memory of the device to pinned memory of the host.
    ///
    /// # Safety
    /// Both have so many bytes and live until [`Self::time`] has returned.
    pub unsafe fn copy_to_host(
        &self,
        from: u64,
        to: &HostMemory<'_>,
        bytes: u64,
    ) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let code =
            unsafe { (self.driver.copy_to_host)(to.address, from, bytes as usize, self.stream) };
        check("cuMemcpyDtoHAsync", code)
    }

    /// Fills memory of the device with floats of 32 bits that are 1.
    ///
    /// # Safety
    /// The memory has so many bytes, which are a multiple of four, and lives until [`Self::time`] has returned.
    pub unsafe fn fill(&self, to: u64, bytes: u64) -> Result<(), Error> {
        const ONE: c_uint = 0x3f80_0000;
        // SAFETY: as the caller promises.
        let code = unsafe { (self.driver.fill)(to, ONE, bytes as usize / 4, self.stream) };
        check("cuMemsetD32Async", code)
    }

    /// Makes this context current on this thread.
    pub fn make_current(&self) -> Result<(), Error> {
        // SAFETY: the context lives.
        check("cuCtxSetCurrent", unsafe {
            (self.driver.set_context)(self.context)
        })
    }

    /// Makes memory of so many bytes on another device, to which and from which this one copies.
    pub fn peer(&self, driver: Driver, device: &Device, bytes: u64) -> Result<Peer, Error> {
        let context = Context::new(driver, device)?;
        let mut address = 0;
        // SAFETY: the calls store an address and a handle, and both contexts live. The other context is current.
        let made = unsafe {
            check(
                "cuMemAlloc",
                (self.driver.allocate)(&mut address, bytes as usize),
            )
            .and_then(|()| {
                let code = (self.driver.enable_peer)(self.context, 0);
                check("cuCtxEnablePeerAccess", code)
            })
        };
        self.make_current()?;
        made?;
        // SAFETY: as above.
        check("cuCtxEnablePeerAccess", unsafe {
            (self.driver.enable_peer)(context.context, 0)
        })?;
        let mut streams = [ptr::null_mut(); 2];
        for stream in &mut streams {
            // SAFETY: it stores a handle.
            check("cuStreamCreate", unsafe {
                (self.driver.stream)(stream, NON_BLOCKING)
            })?;
        }
        let mut done = ptr::null_mut();
        // SAFETY: it stores a handle.
        check("cuEventCreate", unsafe {
            (self.driver.event)(&mut done, 0)
        })?;
        Ok(Peer {
            context,
            address,
            streams,
            done,
        })
    }

    /// Copies between memory of this device and each of the other devices, all at once: from them to `to`, and to them from `from`, where
    /// these are given. Later work of this context's stream waits for the copies.
    ///
    /// # Safety
    /// All have so many bytes and live until [`Self::time`] has returned.
    pub unsafe fn copy_between(
        &self,
        peers: &[Peer],
        [to, from]: [Option<u64>; 2],
        bytes: u64,
    ) -> Result<(), Error> {
        let functions = &self.driver;
        let begin = self.forks;
        // SAFETY: as the caller promises; events and streams are of this context.
        unsafe {
            check("cuEventRecord", (functions.record)(begin, self.stream))?;
            for peer in peers {
                for (stream, own, is_read) in
                    [(peer.streams[0], to, true), (peer.streams[1], from, false)]
                {
                    let Some(own) = own else { continue };
                    check(
                        "cuStreamWaitEvent",
                        (functions.stream_waits)(stream, begin, 0),
                    )?;
                    let (here, there) = (self.context, peer.context.context);
                    let bytes = bytes as usize;
                    let code = match is_read {
                        true => {
                            (functions.copy_peer)(own, here, peer.address, there, bytes, stream)
                        }
                        false => {
                            (functions.copy_peer)(peer.address, there, own, here, bytes, stream)
                        }
                    };
                    check("cuMemcpyPeerAsync", code)?;
                    check("cuEventRecord", (functions.record)(peer.done, stream))?;
                    check(
                        "cuStreamWaitEvent",
                        (functions.stream_waits)(self.stream, peer.done, 0),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Calls `once`, and returns the nanoseconds by the host's clock until its work has been waited for.
    pub fn await_one(&self, once: &mut dyn FnMut() -> Result<(), Error>) -> Result<f64, Error> {
        let started = Instant::now();
        once()?;
        // SAFETY: the stream is of this context.
        check("cuStreamSynchronize", unsafe {
            (self.driver.finish)(self.stream)
        })?;
        Ok(started.elapsed().as_nanos() as f64)
    }

    /// Calls `each` repeatedly, and returns the nanoseconds that one call's work takes on the device on average, by
    /// the device's events. One more call goes before, so that the device does not wait for the first.
    pub fn time(
        &self,
        count: u32,
        each: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<f64, Error> {
        let [start, end] = self.events;
        each()?;
        // SAFETY: events and stream are of this context, here and below.
        check("cuEventRecord", unsafe {
            (self.driver.record)(start, self.stream)
        })?;
        for _ in 0..count {
            each()?;
        }
        let mut ms = 0.0;
        // SAFETY: as above; it stores a number.
        unsafe {
            check("cuEventRecord", (self.driver.record)(end, self.stream))?;
            check("cuEventSynchronize", (self.driver.wait)(end))?;
            check(
                "cuEventElapsedTime",
                (self.driver.elapsed)(&mut ms, start, end),
            )?;
        }
        Ok(f64::from(ms) * 1e6 / f64::from(count))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.context.is_null() {
            // SAFETY: nothing of the context is in use; the driver frees what was made in it.
            unsafe { (self.driver.destroy_context)(self.context) };
        }
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: it was allocated in this context, and the stream has been waited for.
        unsafe { (self.context.driver.free)(self.address) };
    }
}

impl Drop for HostMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: it was allocated in this context, and the stream has been waited for.
        unsafe { (self.context.driver.free_host)(self.address) };
    }
}
