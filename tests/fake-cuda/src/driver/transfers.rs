//! Copies and fills: their times, without the data.

use super::{DeviceWork, INVALID_CONTEXT, SUCCESS, call, waiting_call};
use crate::{cupti, names, records, truth};
use std::ffi::{c_int, c_void};

const COPY_NS: u64 = 3_000;

/// Runs a copy; `kinds` are CUPTI's of the copy, its source and its destination.
fn copy(call_of: names::Call, bytes: usize, stream: usize, kinds: [u8; 3]) -> c_int {
    call(call_of, |driver, correlation, asked| {
        let Some(work) = driver.submit(stream, correlation, asked, COPY_NS) else {
            return INVALID_CONTEXT;
        };
        tell_copy(&work, bytes, kinds);
        SUCCESS
    })
}

fn tell_copy(work: &DeviceWork, bytes: usize, kinds: [u8; 3]) {
    let mut cupti = cupti::state();
    let record = records::Memcpy {
        kind: records::MEMCPY,
        copy_kind: kinds[0],
        src_kind: kinds[1],
        dst_kind: kinds[2],
        bytes: bytes as u64,
        start: cupti.of_device(work.start),
        end: cupti.of_device(work.end),
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        correlation_id: work.correlation,
        ..records::Memcpy::default()
    };
    tell_transfer(work, bytes);
    cupti.work(records::MEMCPY, work.end, &record);
}

fn tell_transfer(work: &DeviceWork, bytes: usize) {
    truth::write(
        "transfer",
        work.correlation,
        (work.start, work.end),
        format_args!(",\"bytes\":{bytes}"),
    );
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

/// Returns when the copy is done.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(_to: *mut c_void, _from: u64, bytes: usize) -> c_int {
    waiting_call(names::CU_MEMCPY_DTOH.into(), |driver, correlation| {
        let asked = cupti::now();
        let work = driver.submit(0, correlation, asked, COPY_NS);
        let work = work.ok_or(INVALID_CONTEXT)?;
        tell_copy(&work, bytes, [2, 3, 1]);
        Ok(work.end)
    })
}

/// Copies on the stream's device, which is the source's or the destination's.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    _to: u64,
    to_context: usize,
    _from: u64,
    from_context: usize,
    bytes: usize,
    stream: usize,
) -> c_int {
    call(names::CU_MEMCPY_PEER_ASYNC, |driver, correlation, asked| {
        let [from, to] = [from_context, to_context].map(|c| driver.device_of(c as u32));
        let Some(work) = driver.submit(stream, correlation, asked, COPY_NS) else {
            return INVALID_CONTEXT;
        };
        let mut cupti = cupti::state();
        let record = records::MemcpyPeer {
            kind: records::MEMCPY2,
            copy_kind: 10,
            src_kind: 3,
            dst_kind: 3,
            bytes: bytes as u64,
            start: cupti.of_device(work.start),
            end: cupti.of_device(work.end),
            device_id: work.device,
            context_id: work.context,
            stream_id: work.stream,
            src_device_id: from,
            src_context_id: from_context as u32,
            dst_device_id: to,
            dst_context_id: to_context as u32,
            correlation_id: correlation,
            ..records::MemcpyPeer::default()
        };
        tell_transfer(&work, bytes);
        cupti.work(records::MEMCPY2, work.end, &record);
        SUCCESS
    })
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
            start: cupti.of_device(work.start),
            end: cupti.of_device(work.end),
            device_id: work.device,
            context_id: work.context,
            stream_id: work.stream,
            correlation_id: correlation,
            memory_kind: 3,
            ..records::Memset::default()
        };
        tell_transfer(&work, bytes);
        cupti.work(records::MEMSET, work.end, &record);
        SUCCESS
    })
}
