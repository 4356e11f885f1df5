//! The operations of streams besides work and events: host functions, waits for values and semaphores, prefetches.

use super::{Api, DeviceWork, INVALID_HANDLE, SUCCESS, call, of_driver};
use crate::{cupti, names, records, truth};
use std::ffi::{c_int, c_uint};

/// The duration of each operation.
pub const OPERATION_NS: u64 = 10_000;

fn put(api: Api<'_>, kind: &str, stream: usize) -> c_int {
    call(api, |driver, correlation, asked| {
        if driver.is_capturing(stream) {
            // The operation becomes part of a graph.
            return SUCCESS;
        }
        let Some(work) = driver.submit(stream, correlation, asked, OPERATION_NS) else {
            return INVALID_HANDLE;
        };
        truth::write(
            "submission",
            correlation,
            (work.start, work.end),
            format_args!(
                ",\"what\":\"{kind}\",\"context\":{},\"stream\":{}",
                work.context, work.stream
            ),
        );
        if kind == "host-function" {
            tell_host_function(&work);
        }
        SUCCESS
    })
}

/// Writes CUPTI's record of a host function, on the host's clock.
fn tell_host_function(work: &DeviceWork) {
    let mut cupti = cupti::state();
    let record = records::HostLaunch {
        kind: records::HOST_LAUNCH,
        stream_id: work.stream,
        context_id: work.context,
        device_id: work.device,
        correlation_id: work.correlation,
        process_id: std::process::id(),
        thread_id: HOST_FUNCTION_THREAD,
        start: cupti.stamp(work.start),
        end: cupti.stamp(work.end),
        ..records::HostLaunch::default()
    };
    cupti.work(records::HOST_LAUNCH, work.end, &record);
}

/// The driver's own thread for host functions.
const HOST_FUNCTION_THREAD: u32 = 4242;

/// Writes CUPTI's record of a graph's host node, as [`tell_host_function`] does.
pub fn tell_host_node(work: &DeviceWork, graph: u32) {
    let mut cupti = cupti::state();
    let record = records::GraphHostNode {
        kind: records::GRAPH_HOST_NODE,
        stream_id: work.stream,
        context_id: work.context,
        device_id: work.device,
        correlation_id: work.correlation,
        graph_id: graph,
        graph_node_id: u64::from(graph) << 32,
        process_id: std::process::id(),
        thread_id: HOST_FUNCTION_THREAD,
        start: cupti.stamp(work.start),
        end: cupti.stamp(work.end),
    };
    cupti.work(records::GRAPH_HOST_NODE, work.end, &record);
}

// The location of a prefetch is a structure of eight bytes, which is passed like a number.
exported! {
    cuLaunchHostFunc(stream: usize, function: usize, data: usize) is CU_LAUNCH_HOST_FUNC => put("host-function", stream);
    cudaLaunchHostFunc(stream: usize, function: usize, data: usize)
        is CUDA_LAUNCH_HOST_FUNC around CU_LAUNCH_HOST_FUNC => put("host-function", stream);
    cudaStreamAddCallback(stream: usize, function: usize, data: usize, flags: c_uint)
        is CUDA_STREAM_ADD_CALLBACK around CU_STREAM_ADD_CALLBACK => put("host-function", stream);
    cudaWaitExternalSemaphoresAsync(semaphores: usize, values: usize, count: c_uint, stream: usize)
        is CUDA_WAIT_EXTERNAL around CU_WAIT_EXTERNAL => put("wait-external", stream);
    cuMemBatchDecompressAsync(operations: usize, count: usize, flags: c_uint, failed: usize, stream: usize)
        is CU_MEM_BATCH_DECOMPRESS => put("decompression", stream);
    cudaMemPrefetchAsync(address: usize, bytes: usize, location: u64, flags: c_uint, stream: usize)
        is CUDA_MEM_PREFETCH around CU_MEM_PREFETCH => put("prefetch", stream);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitValue32_v2(
    stream: usize,
    address: usize,
    value: c_uint,
    flags: c_uint,
) -> c_int {
    // The last two share eight bytes.
    let both = value as usize | (flags as usize) << 32;
    let parameters = [stream, address, both];
    put(
        of_driver(names::CU_STREAM_WAIT_VALUE, &parameters),
        "wait-value",
        stream,
    )
}

/// CUstreamBatchMemOpParams
#[repr(C)]
pub struct Operation {
    pub operation: c_uint,
    pub rest: [u64; 5],
}

const WAIT_VALUE_32: c_uint = 1;
const WAIT_VALUE_64: c_uint = 4;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBatchMemOp_v2(
    stream: usize,
    count: c_uint,
    operations: *const Operation,
    flags: c_uint,
) -> c_int {
    let parameters = [stream, count as usize, operations as usize, flags as usize];
    let api = of_driver(names::CU_STREAM_BATCH_MEM_OP, &parameters);
    // SAFETY: the caller's array.
    let all = unsafe { std::slice::from_raw_parts(operations, count as usize) };
    let waits = |one: &Operation| [WAIT_VALUE_32, WAIT_VALUE_64].contains(&one.operation);
    match all.iter().any(waits) {
        true => put(api, "wait-value", stream),
        false => call(api, |_, _, _| SUCCESS),
    }
}
