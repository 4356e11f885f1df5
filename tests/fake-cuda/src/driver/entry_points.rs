//! The functions that libcuda exports, and the few of the runtime, for the test program.

use super::{
    CONTEXT, DEFAULT_HANDLE, DEFAULT_STREAM, Driver, Function, INVALID_CONTEXT, INVALID_HANDLE,
    INVALID_VALUE, SUCCESS, Stream, call, driver, graphs, injection, launch, memory, waiting_call,
};
use crate::{cupti, names, records, truth};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Room for a kernel's name.
const NAME_BYTES: usize = 512;
const COPY_NS: u64 = 3_000;

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
pub unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut usize,
    _flags: c_uint,
    device: c_int,
) -> c_int {
    let mut number = 0;
    let code = call(names::CU_CTX_CREATE, |driver, _, _| {
        driver.contexts.push(device as u32);
        number = driver.contexts.len() as u32;
        let mut cupti = cupti::state();
        let record = records::Context {
            kind: records::CONTEXT,
            context_id: number,
            device_id: device as u32,
            null_stream_id: DEFAULT_STREAM as u16,
            ..records::Context::default()
        };
        cupti.record(records::CONTEXT, &record);
        SUCCESS
    });
    CONTEXT.set(number);
    // SAFETY: the caller's variable.
    unsafe { *context = number as usize };
    code
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
        let mut cupti = cupti::state();
        let record = records::Stream {
            kind: records::STREAM,
            context_id: context,
            stream_id: id,
            priority: -1i32 as u32,
            flag: if flags == 1 { 2 } else { 1 },
            correlation_id: correlation,
        };
        cupti.record(records::STREAM, &record);
        SUCCESS
    });
    // SAFETY: the caller's variable.
    unsafe { *stream = handle };
    code
}

/// Loads a module with one kernel, whose name is the image.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const c_char) -> c_int {
    let mut handle = 0;
    let code = call(names::CU_MODULE_LOAD_DATA, |driver, _, _| {
        // SAFETY: the caller's text.
        let name = unsafe { CStr::from_ptr(image) }.to_bytes_with_nul();
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
            },
        );
        SUCCESS
    });
    // SAFETY: the caller's variable.
    unsafe { *module = handle };
    code
}

/// The kernel of a module: they have the same handle.
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
        names::CU_LAUNCH_KERNEL,
        function,
        grid,
        [block_x, block_y, block_z],
        shared,
        stream,
    )
}

/// The runtime's launch, whose driver call CUPTI does not report. The real one takes structures by value.
#[unsafe(no_mangle)]
pub extern "C" fn fake_runtime_launch(
    function: usize,
    blocks: c_uint,
    threads: c_uint,
    stream: usize,
) -> c_int {
    launch(
        names::CUDA_LAUNCH_KERNEL,
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

/// A transfer: `kinds` are CUPTI's of the copy, its source and its destination.
fn copy(call_of: names::Call, bytes: usize, stream: usize, kinds: [u8; 3]) -> c_int {
    call(call_of, |driver, correlation, asked| {
        let Some(work) = driver.submit(stream, correlation, asked, COPY_NS) else {
            return INVALID_CONTEXT;
        };
        let mut cupti = cupti::state();
        let record = records::Memcpy {
            kind: records::MEMCPY,
            copy_kind: kinds[0],
            src_kind: kinds[1],
            dst_kind: kinds[2],
            bytes: bytes as u64,
            start: cupti.stamp(work.start),
            end: cupti.stamp(work.end),
            device_id: work.device,
            context_id: work.context,
            stream_id: work.stream,
            correlation_id: correlation,
            ..records::Memcpy::default()
        };
        truth::write(
            "transfer",
            correlation,
            (work.start, work.end),
            format_args!(",\"bytes\":{bytes}"),
        );
        cupti.work(records::MEMCPY, work.end, &record);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(
    _to: u64,
    _from: *const c_void,
    bytes: usize,
    stream: usize,
) -> c_int {
    copy(names::CU_MEMCPY_HTOD_ASYNC, bytes, stream, [1, 2, 3])
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(
    _to: *mut c_void,
    _from: u64,
    bytes: usize,
    stream: usize,
) -> c_int {
    copy(names::CU_MEMCPY_DTOH_ASYNC, bytes, stream, [2, 3, 1])
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(_to: u64, value: u8, bytes: usize, stream: usize) -> c_int {
    call(names::CU_MEMSET_D8_ASYNC, |driver, correlation, asked| {
        let Some(work) = driver.submit(stream, correlation, asked, COPY_NS) else {
            return INVALID_CONTEXT;
        };
        let mut cupti = cupti::state();
        let record = records::Memset {
            kind: records::MEMSET,
            value: value.into(),
            bytes: bytes as u64,
            start: cupti.stamp(work.start),
            end: cupti.stamp(work.end),
            device_id: work.device,
            context_id: work.context,
            stream_id: work.stream,
            correlation_id: correlation,
            memory_kind: 3,
            ..records::Memset::default()
        };
        truth::write(
            "transfer",
            correlation,
            (work.start, work.end),
            format_args!(",\"bytes\":{bytes}"),
        );
        cupti.work(records::MEMSET, work.end, &record);
        SUCCESS
    })
}

/// CUpti_ActivitySynchronizationType
const EVENT: u32 = 1;
const STREAM_WAITS: u32 = 2;
const STREAM: u32 = 3;
const CONTEXT_WIDE: u32 = 4;

/// CUPTI's number for none.
const NONE: u32 = u32::MAX;

/// Records that the host waited until `until`, or that a stream waits.
fn tell_wait(
    what: u32,
    correlation: u32,
    until: u64,
    (context, stream): (u32, u32),
    (event, occurrence): (u32, u64),
) {
    let mut cupti = cupti::state();
    let start = cupti::now();
    let record = records::Synchronization {
        kind: records::SYNCHRONIZATION,
        what,
        start: cupti.stamp(start),
        end: cupti.stamp(until.max(start)),
        correlation_id: correlation,
        context_id: context,
        stream_id: stream,
        cuda_event_id: event,
        cuda_event_sync_id: occurrence,
        ..records::Synchronization::default()
    };
    cupti.record(records::SYNCHRONIZATION, &record);
}

const NO_EVENT: (u32, u64) = (NONE, NONE as u64);

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: usize) -> c_int {
    waiting_call(names::CU_STREAM_SYNCHRONIZE, |driver, correlation| {
        let stream = *driver.stream(stream).ok_or(INVALID_HANDLE)?;
        tell_wait(
            STREAM,
            correlation,
            stream.free_ns,
            (stream.context, stream.id),
            NO_EVENT,
        );
        Ok(stream.free_ns)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    waiting_call(names::CU_CTX_SYNCHRONIZE, |driver, correlation| {
        let context = CONTEXT.get();
        let streams = driver.streams.values().filter(|s| s.context == context);
        let until = streams.map(|s| s.free_ns).max().unwrap_or(0);
        tell_wait(CONTEXT_WIDE, correlation, until, (context, NONE), NO_EVENT);
        Ok(until)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> c_int {
    let handle = driver().handle();
    // SAFETY: the caller's variable.
    unsafe { *event = handle };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: usize, stream: usize) -> c_int {
    call(names::CU_EVENT_RECORD, |driver, correlation, _| {
        let Some(stream) = driver.stream(stream).copied() else {
            return INVALID_HANDLE;
        };
        driver.occurrences += 1;
        let occurrence = driver.occurrences;
        driver.events.insert(
            event,
            (stream.free_ns, stream.context, stream.id, occurrence),
        );
        let record = records::CudaEvent {
            kind: records::CUDA_EVENT,
            correlation_id: correlation,
            context_id: stream.context,
            stream_id: stream.id,
            event_id: event as u32,
            cuda_event_sync_id: occurrence,
            ..records::CudaEvent::default()
        };
        cupti::state().record(records::CUDA_EVENT, &record);
        SUCCESS
    })
}

fn occurred(driver: &Driver, event: usize) -> Option<(u64, u32, u32, u64)> {
    driver.events.get(&event).copied()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> c_int {
    call(names::CU_STREAM_WAIT_EVENT, |driver, correlation, at| {
        let Some((until, _, _, occurrence)) = occurred(driver, event) else {
            return INVALID_HANDLE;
        };
        let Some(stream) = driver.stream(stream) else {
            return INVALID_HANDLE;
        };
        stream.free_ns = stream.free_ns.max(until);
        let place = (stream.context, stream.id);
        tell_wait(
            STREAM_WAITS,
            correlation,
            at,
            place,
            (event as u32, occurrence),
        );
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: usize) -> c_int {
    waiting_call(names::CU_EVENT_SYNCHRONIZE, |driver, correlation| {
        let (until, context, _, occurrence) = occurred(driver, event).ok_or(INVALID_HANDLE)?;
        tell_wait(
            EVENT,
            correlation,
            until,
            (context, NONE),
            (event as u32, occurrence),
        );
        Ok(until)
    })
}

/// # Safety
/// `address` is the caller's variable.
unsafe fn store(address: *mut u64, made: Result<u64, c_int>) -> c_int {
    match made {
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
    unsafe {
        store(
            address,
            memory::allocate(names::CU_MEM_ALLOC, bytes as u64, false),
        )
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe {
        store(
            address,
            memory::allocate(names::CU_MEM_ALLOC_ASYNC, bytes as u64, true),
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

/// A graph of `nodes` launches of a function, one after the other.
#[unsafe(no_mangle)]
pub extern "C" fn fake_graph_create(function: usize, nodes: c_uint) -> usize {
    graphs::create(function, nodes)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut usize,
    graph: usize,
    _flags: u64,
) -> c_int {
    match graphs::instantiate(graph) {
        Ok(made) => {
            // SAFETY: the caller's variable.
            unsafe { *executable = made };
            SUCCESS
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(executable: usize, stream: usize) -> c_int {
    graphs::launch(executable, stream)
}
