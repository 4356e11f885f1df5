//! Copies and fills: their times, without the data.

use super::{DeviceWork, INVALID_CONTEXT, SUCCESS, call, driver, waiting_call};
use crate::records::Bytes;
use crate::{cupti, names, records, truth};
use std::ffi::{c_int, c_void};

const COPY_NS: u64 = 3_000;

/// Runs a transfer, of which `record` makes CUPTI's record of this kind.
fn transfer<R: Bytes>(
    call_of: names::Call,
    bytes: usize,
    stream: usize,
    kind: u32,
    record: impl FnOnce(&DeviceWork, [u64; 2]) -> R,
) -> c_int {
    call(call_of, |driver, correlation, asked| {
        let Some(work) = driver.submit(stream, correlation, asked, COPY_NS) else {
            return INVALID_CONTEXT;
        };
        tell_transfer(&work, bytes, kind, record);
        SUCCESS
    })
}

/// Writes a transfer to the truth log and CUPTI's record of it, which `record` makes with the device's times of start and end.
fn tell_transfer<R: Bytes>(
    work: &DeviceWork,
    bytes: usize,
    kind: u32,
    record: impl FnOnce(&DeviceWork, [u64; 2]) -> R,
) {
    truth::write(
        "transfer",
        work.correlation,
        (work.start, work.end),
        format_args!(",\"bytes\":{bytes}"),
    );
    let mut cupti = cupti::state();
    let times = [work.start, work.end].map(|ns| cupti.of_device(ns));
    cupti.work(kind, work.end, &record(work, times));
}

/// Returns CUPTI's record of a copy; `kinds` are CUPTI's of the copy, its source and its destination.
fn copy(
    bytes: usize,
    [copy_kind, src_kind, dst_kind]: [u8; 3],
) -> impl FnOnce(&DeviceWork, [u64; 2]) -> records::Memcpy {
    move |work, [start, end]| records::Memcpy {
        kind: records::MEMCPY,
        copy_kind,
        src_kind,
        dst_kind,
        bytes: bytes as u64,
        start,
        end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        correlation_id: work.correlation,
        ..records::Memcpy::default()
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(
    _to: u64,
    _from: *const c_void,
    bytes: usize,
    stream: usize,
) -> c_int {
    let record = copy(bytes, [1, 2, 3]);
    transfer(
        names::CU_MEMCPY_HTOD_ASYNC,
        bytes,
        stream,
        records::MEMCPY,
        record,
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(
    _to: *mut c_void,
    _from: u64,
    bytes: usize,
    stream: usize,
) -> c_int {
    let record = copy(bytes, [2, 3, 1]);
    transfer(
        names::CU_MEMCPY_DTOH_ASYNC,
        bytes,
        stream,
        records::MEMCPY,
        record,
    )
}

/// Returns when the copy is done.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(_to: *mut c_void, _from: u64, bytes: usize) -> c_int {
    waiting_call(names::CU_MEMCPY_DTOH.into(), |driver, correlation| {
        let asked = cupti::now();
        let work = driver.submit(0, correlation, asked, COPY_NS);
        let work = work.ok_or(INVALID_CONTEXT)?;
        tell_transfer(&work, bytes, records::MEMCPY, copy(bytes, [2, 3, 1]));
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
    let device_of = |context: usize| driver().device_of(context as u32);
    let [from, to] = [from_context, to_context].map(device_of);
    let record = |work: &DeviceWork, [start, end]: [u64; 2]| records::MemcpyPeer {
        kind: records::MEMCPY2,
        copy_kind: 10,
        src_kind: 3,
        dst_kind: 3,
        bytes: bytes as u64,
        start,
        end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        src_device_id: from,
        src_context_id: from_context as u32,
        dst_device_id: to,
        dst_context_id: to_context as u32,
        correlation_id: work.correlation,
        ..records::MemcpyPeer::default()
    };
    transfer(
        names::CU_MEMCPY_PEER_ASYNC,
        bytes,
        stream,
        records::MEMCPY2,
        record,
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(_to: u64, value: u8, bytes: usize, stream: usize) -> c_int {
    let record = |work: &DeviceWork, [start, end]: [u64; 2]| records::Memset {
        kind: records::MEMSET,
        value: value.into(),
        bytes: bytes as u64,
        start,
        end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        correlation_id: work.correlation,
        memory_kind: 3,
        ..records::Memset::default()
    };
    transfer(
        names::CU_MEMSET_D8_ASYNC,
        bytes,
        stream,
        records::MEMSET,
        record,
    )
}
