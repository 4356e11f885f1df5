//! The functions of libcuda, and the few of the runtime, that the test program calls.

use super::{
    Api, BLOCKING, CONTEXT, DEFAULT_HANDLE, DEFAULT_STREAM, Function, INVALID_CONTEXT,
    INVALID_HANDLE, INVALID_VALUE, NON_BLOCKING, SUCCESS, Stream, call, driver, graphs, injection,
    launch, memory, of_driver, tell_stream,
};
use crate::config::config;
use crate::cupti::{callbacks, pc_sampling};
use crate::{cupti, names, records};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The flag that makes a context a green one; CUDA has functions of its own for that.
const GREEN: c_uint = 0x8000;
/// The room for a kernel's name.
const NAME_BYTES: usize = 512;

// Every pointer is the caller's variable or text, as in CUDA.

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    injection::initialise()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *version = injection::version() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *count = injection::devices() as c_int };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, number: c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *device = number };
    SUCCESS
}

/// Stores the UUID of the device's record, which NVML has, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller's 16 bytes.
    unsafe { *uuid = super::injection::uuid(device as u32) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, bytes: c_int, _: c_int) -> c_int {
    let text = injection::name().to_bytes_with_nul();
    if text.len() > bytes as usize {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's text, with room for so many bytes.
    unsafe { name.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut usize,
    flags: c_uint,
    device: c_int,
) -> c_int {
    let mut number = 0;
    let code = call(names::CU_CTX_CREATE, |driver, _, _| {
        driver.contexts.push(device as u32);
        number = driver.contexts.len() as u32;
        if flags == GREEN {
            driver.green.insert(number);
        }
        let mut cupti = cupti::state();
        let record = records::Context {
            kind: records::CONTEXT,
            context_id: number,
            device_id: device as u32,
            null_stream_id: DEFAULT_STREAM as u16,
            is_green_context: (flags == GREEN).into(),
            ..records::Context::default()
        };
        cupti.record_when(config().late_contexts, records::CONTEXT, &record);
        SUCCESS
    });
    CONTEXT.set(number);
    callbacks::deliver_resource(callbacks::CONTEXT_CREATED, number, None);
    // SAFETY: the caller's variable.
    unsafe { *context = number as usize };
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDestroy_v2(context: usize) -> c_int {
    callbacks::deliver_resource(callbacks::CONTEXT_ENDS, context as u32, None);
    CONTEXT.set(0);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    let context = CONTEXT.get();
    if context == 0 {
        return INVALID_CONTEXT;
    }
    // SAFETY: the caller's variable.
    unsafe { *device = driver().device_of(context) as c_int };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    CONTEXT.set(context as u32);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(stream: usize, context: *mut usize) -> c_int {
    let found = driver().stream(stream).map(|s| s.context);
    // SAFETY: the caller's variable.
    unsafe { *context = found.unwrap_or(0) as usize };
    if found.is_some() {
        SUCCESS
    } else {
        INVALID_HANDLE
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut usize, flags: c_uint) -> c_int {
    let mut handle = 0;
    let code = call(names::CU_STREAM_CREATE, |driver, correlation, _| {
        let context = CONTEXT.get();
        if context == 0 {
            return INVALID_CONTEXT;
        }
        let in_context = driver
            .streams
            .iter()
            .filter(|(h, s)| **h < DEFAULT_HANDLE && s.context == context)
            .count();
        let id = 13 + in_context as u32;
        handle = driver.handle();
        let made = Stream {
            context,
            id,
            free_ns: 0,
        };
        driver.streams.insert(handle, made);
        // CUPTI has no records of streams of green contexts.
        if !driver.green.contains(&context) {
            let flag = if flags == 1 { NON_BLOCKING } else { BLOCKING };
            tell_stream(context, id, flag, -1, correlation);
        }
        SUCCESS
    });
    // SAFETY: the caller's variable.
    unsafe { *stream = handle };
    code
}

/// Returns an ELF file, which ends with its section or segment headers; `None` for other images.
///
/// # Safety
/// The image is a text, or an ELF file.
unsafe fn cubin<'a>(image: *const u8) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    unsafe {
        if CStr::from_ptr(image.cast()).to_bytes().first_chunk() != Some(b"\x7fELF\x02") {
            return None;
        }
        let word = |at: usize| image.add(at).cast::<u64>().read_unaligned() as usize;
        let half = |at: usize| usize::from(image.add(at).cast::<u16>().read_unaligned());
        let segments = word(0x20) + half(0x36) * half(0x38);
        let sections = word(0x28) + half(0x3a) * half(0x3c);
        Some(std::slice::from_raw_parts(image, segments.max(sections)))
    }
}

/// Loads a module with one kernel: the one of a text in PTX, or `add` where the image is an ELF file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const c_char) -> c_int {
    let mut handle = 0;
    let parameters = [module as usize, image as usize];
    let api = of_driver(names::CU_MODULE_LOAD_DATA, &parameters);
    // SAFETY: the caller's text or ELF file.
    let cubin = unsafe { cubin(image.cast()) };
    let code = call(api, |driver, _, _| {
        // SAFETY: the caller's text, or an ELF file, whose first bytes end with a zero.
        let image = unsafe { CStr::from_ptr(image) }.to_string_lossy();
        let entry = (image.split_once(".entry ")).and_then(|(_, rest)| rest.split('(').next());
        let name = match entry {
            Some(name) => format!("{name}\0"),
            None if image.starts_with("\x7fELF") => "add\0".to_owned(),
            None => return INVALID_VALUE,
        };
        let name = name.as_bytes();
        if name.len() > NAME_BYTES {
            return INVALID_VALUE;
        }
        let place = driver
            .free_names
            .pop()
            .unwrap_or_else(|| Box::leak(Box::new([0u8; NAME_BYTES])).as_mut_ptr() as usize);
        // SAFETY: the place has room, and is in use by no other module.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), place as *mut u8, name.len()) };
        handle = driver.handle();
        driver.functions.insert(
            handle,
            Function {
                name: place,
                loaded: false,
                crc: cubin.map_or(0, pc_sampling::crc),
            },
        );
        SUCCESS
    });
    callbacks::deliver_resource(callbacks::MODULE_LOADED, CONTEXT.get(), cubin);
    // SAFETY: the caller's variable.
    unsafe { *module = handle };
    code
}

/// Returns the kernel of a module: they have the same handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut usize,
    module: usize,
    _name: *const c_char,
) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *function = module };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: usize) -> c_int {
    callbacks::deliver_resource(callbacks::MODULE_ENDS, CONTEXT.get(), None);
    let mut driver = driver();
    match driver.functions.remove(&module) {
        Some(function) => {
            driver.free_names.push(function.name);
            SUCCESS
        }
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: usize,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    let grid = [grid_x, grid_y, grid_z];
    launch(
        names::CU_LAUNCH_KERNEL.into(),
        function,
        grid,
        [block_x, block_y, block_z],
        shared,
        stream,
    )
}

/// Launches through the runtime. The real function takes structures by value.
#[unsafe(no_mangle)]
pub extern "C" fn fake_runtime_launch(
    function: usize,
    blocks: c_uint,
    threads: c_uint,
    stream: usize,
) -> c_int {
    launch(
        Api {
            inside: Some(names::CU_LAUNCH_KERNEL),
            ..names::CUDA_LAUNCH_KERNEL.into()
        },
        function,
        [blocks, 1, 1],
        [threads, 1, 1],
        0,
        stream,
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDevice(device: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *device = 0 };
    call(names::CUDA_GET_DEVICE, |_, _, _| SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    call(names::CUDA_GET_LAST_ERROR, |_, _, _| SUCCESS)
}

/// Allocates memory and stores its address.
///
/// # Safety
/// `address` is the caller's variable.
unsafe fn allocate(
    address: *mut u64,
    call: names::Call,
    bytes: usize,
    kind: u32,
    pooled: bool,
) -> c_int {
    match memory::allocate(call, bytes as u64, kind, pooled) {
        Ok(made) => {
            // SAFETY: as the caller promises.
            unsafe { *address = made };
            SUCCESS
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { allocate(address, names::CU_MEM_ALLOC, bytes, memory::DEVICE, false) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocManaged(address: *mut u64, bytes: usize, _: c_uint) -> c_int {
    // SAFETY: the caller's variable.
    unsafe {
        allocate(
            address,
            names::CU_MEM_ALLOC_MANAGED,
            bytes,
            memory::MANAGED,
            false,
        )
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe {
        allocate(
            address,
            names::CU_MEM_ALLOC_ASYNC,
            bytes,
            memory::DEVICE,
            true,
        )
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    memory::free(names::CU_MEM_FREE, address)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, _stream: usize) -> c_int {
    memory::free(names::CU_MEM_FREE_ASYNC, address)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphNodeGetType(node: usize, kind: *mut c_int) -> c_int {
    let Some((found, _)) = graphs::node(node) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *kind = found };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphChildGraphNodeGetGraph(node: usize, graph: *mut usize) -> c_int {
    let Some((_, child)) = graphs::node(node) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *graph = child };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecGetFlags(executable: usize, flags: *mut u64) -> c_int {
    let Some(known) = graphs::flags(executable) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *flags = known };
    SUCCESS
}
