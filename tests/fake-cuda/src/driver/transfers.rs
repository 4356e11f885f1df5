//! Copies and fills: the bytes move at the call, and the records have the times at which a device would have moved them.

use super::address_space::AddressSpace;
use super::waits::Scope;
use super::{
    Api, DeviceWork, Driver, INVALID_CONTEXT, INVALID_VALUE, SUCCESS, UNSUPPORTED_IN_CAPTURE, call,
    driver, of_driver, waiting_call,
};
use crate::config::config;
use crate::names::{self, Call};
use crate::records::Bytes;
use crate::{cupti, records, truth};
use std::ffi::{c_int, c_uint};

const COPY_NS: u64 = 3_000;
/// Larger transfers only take their time: they measure bandwidth.
const MAX_MOVED_BYTES: u64 = 128 << 20;
/// Addresses below stand for memory without bytes.
const PAGE: u64 = 4096;

/// The bytes that a transfer moves.
#[derive(Clone, Copy)]
struct Move {
    to: u64,
    from: From,
    bytes: u64,
}

#[derive(Clone, Copy)]
enum From {
    /// An address of the host or of a device.
    Address(u64),
    /// A value of one, two or four bytes, again and again.
    Value(u32, usize),
}

/// The memory of the host, which the driver does not know, or that of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Host,
    Device,
}
use Side::{Device, Host};

impl Move {
    /// Moves the bytes, where all of them are there.
    fn run(&self, driver: &Driver, [from, to]: [Side; 2]) -> Result<(), c_int> {
        let of_from = match self.from {
            From::Address(address) => Some((address, from)),
            From::Value(..) => None,
        };
        let ends: Vec<(u64, Side)> = [Some((self.to, to)), of_from]
            .into_iter()
            .flatten()
            .collect();
        if self.bytes > MAX_MOVED_BYTES || ends.iter().any(|(address, _)| *address < PAGE) {
            return Ok(());
        }
        let is_there = |(address, side): &(u64, Side)| {
            *side == Host || driver.memory.space.is_usable(*address, self.bytes)
        };
        if !ends.iter().all(is_there) {
            return Err(INVALID_VALUE);
        }
        match self.from {
            // SAFETY: the addresses are mapped, or the caller's.
            From::Address(from) => unsafe { AddressSpace::copy(self.to, from, self.bytes) },
            From::Value(value, size) => {
                let value = value.to_ne_bytes();
                // SAFETY: the addresses are mapped.
                let place = unsafe {
                    std::slice::from_raw_parts_mut(self.to as *mut u8, self.bytes as usize)
                };
                if let Some(first) = place.get_mut(..size) {
                    first.copy_from_slice(&value[..size]);
                }
                // What is written is copied behind itself, which is fast without optimisation, too.
                let mut done = size.min(place.len());
                while done > 0 && done < place.len() {
                    let next = done.min(place.len() - done);
                    place.copy_within(..next, done);
                    done += next;
                }
            }
        }
        Ok(())
    }
}

/// A transfer: CUPTI's kinds of the copy, of its source and of its destination, and how long it takes.
#[derive(Clone, Copy)]
struct Kind {
    copy: u8,
    sides: [Side; 2],
    ns: u64,
}

const TO_DEVICE: Kind = Kind {
    copy: 1,
    sides: [Host, Device],
    ns: COPY_NS,
};
const TO_HOST: Kind = Kind {
    copy: 2,
    sides: [Device, Host],
    ns: COPY_NS,
};
/// `cuMemcpy` and its like: the driver looks the addresses up.
const ANY: Kind = Kind {
    copy: 0,
    sides: [Host, Host],
    ns: COPY_NS,
};

/// A copy on a device, or a fill, takes twice as long as a kernel.
fn on_device() -> Kind {
    Kind {
        copy: 8,
        sides: [Device, Device],
        ns: 2 * config().kernel_ns,
    }
}

fn fill_kind() -> Kind {
    Kind {
        ns: COPY_NS,
        ..on_device()
    }
}

/// Runs a transfer on a stream.
fn begin(
    driver: &mut Driver,
    (correlation, asked): (u32, u64),
    (kind, moved): (Kind, Move),
    stream: usize,
) -> Result<u64, c_int> {
    if driver.is_capturing(stream) {
        // The stub's graphs have no transfers.
        return Err(UNSUPPORTED_IN_CAPTURE);
    }
    let work = driver.submit(stream, correlation, asked, kind.ns);
    let work = work.ok_or(INVALID_CONTEXT)?;
    moved.run(driver, kind.sides)?;
    match moved.from {
        From::Address(_) => {
            let record = copy(moved.bytes, kind);
            tell_transfer(&work, moved.bytes, records::MEMCPY, record);
        }
        From::Value(value, _) => {
            let record = fill(moved.bytes, value);
            tell_transfer(&work, moved.bytes, records::MEMSET, record);
        }
    }
    Ok(work.end)
}

/// Runs a transfer that does not wait.
fn transfer(api: Api<'_>, kind: Kind, moved: Move, stream: usize) -> c_int {
    call(api, |driver, correlation, asked| {
        match begin(driver, (correlation, asked), (kind, moved), stream) {
            Ok(_) => SUCCESS,
            Err(code) => code,
        }
    })
}

/// Runs a transfer of the default stream, and waits until it is done.
fn awaited_transfer(api: Api<'_>, kind: Kind, moved: Move) -> c_int {
    waiting_call(api, Scope::Stream(0), |driver, correlation| {
        begin(driver, (correlation, cupti::now()), (kind, moved), 0)
    })
}

/// Writes a transfer to the truth log and CUPTI's record of it, which `record` makes with the device's times of start and end.
fn tell_transfer<R: Bytes>(
    work: &DeviceWork,
    bytes: u64,
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

/// Returns CUPTI's record of a copy. CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE is 1; the host's end of a read is one.
fn copy(bytes: u64, kind: Kind) -> impl FnOnce(&DeviceWork, [u64; 2]) -> records::Memcpy {
    let [src_kind, dst_kind] = match kind.copy {
        1 => [2, 3],
        2 => [3, 1],
        8 => [3, 3],
        _ => [0, 0],
    };
    move |work, [start, end]| records::Memcpy {
        kind: records::MEMCPY,
        copy_kind: kind.copy,
        src_kind,
        dst_kind,
        bytes,
        start,
        end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        correlation_id: work.correlation,
        ..records::Memcpy::default()
    }
}

fn fill(bytes: u64, value: u32) -> impl FnOnce(&DeviceWork, [u64; 2]) -> records::Memset {
    move |work, [start, end]| records::Memset {
        kind: records::MEMSET,
        value,
        bytes,
        start,
        end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        correlation_id: work.correlation,
        memory_kind: 3,
        ..records::Memset::default()
    }
}

/// Exports copies: each has the destination, the source and the bytes, and a stream where the call does not wait.
macro_rules! copies {
    ($($name:ident($to:ty, $from:ty $(, $stream:ident)?) is $call:ident => $kind:expr;)+) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(to: $to, from: $from, bytes: usize $(, $stream: usize)?) -> c_int {
            let parameters: &[usize] = &[to as usize, from as usize, bytes $(, $stream)?];
            let moved = Move { to, from: From::Address(from), bytes: bytes as u64 };
            copies!(@run of_driver(names::$call, parameters), $kind, moved $(, $stream)?)
        }
    )+};
    (@run $api:expr, $kind:expr, $moved:expr, $stream:ident) => { transfer($api, $kind, $moved, $stream) };
    (@run $api:expr, $kind:expr, $moved:expr) => { awaited_transfer($api, $kind, $moved) };
}

copies! {
    cuMemcpyHtoDAsync_v2(u64, u64, stream) is CU_MEMCPY_HTOD_ASYNC => TO_DEVICE;
    cuMemcpyDtoHAsync_v2(u64, u64, stream) is CU_MEMCPY_DTOH_ASYNC => TO_HOST;
    cuMemcpyDtoDAsync_v2(u64, u64, stream) is CU_MEMCPY_DTOD_ASYNC => on_device();
    cuMemcpyAsync(u64, u64, stream) is CU_MEMCPY_ASYNC => ANY;
    cuMemcpyHtoD_v2(u64, u64) is CU_MEMCPY_HTOD => TO_DEVICE;
    cuMemcpyDtoH_v2(u64, u64) is CU_MEMCPY_DTOH => TO_HOST;
    cuMemcpyDtoD_v2(u64, u64) is CU_MEMCPY_DTOD => on_device();
    cuMemcpy(u64, u64) is CU_MEMCPY => ANY;
}

/// Exports fills: each has the destination, the value and the number of values, and a stream where the call does not wait.
macro_rules! fills {
    ($($name:ident($value:ty $(, $stream:ident)?) is $call:ident => $kind:expr;)+) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(to: u64, value: $value, count: usize $(, $stream: usize)?) -> c_int {
            let parameters: &[usize] = &[to as usize, value as usize, count $(, $stream)?];
            let size = size_of::<$value>();
            let moved = Move { to, from: From::Value(value.into(), size), bytes: (count * size) as u64 };
            copies!(@run of_driver(names::$call, parameters), $kind, moved $(, $stream)?)
        }
    )+};
}

fills! {
    cuMemsetD8Async(u8, stream) is CU_MEMSET_D8_ASYNC => fill_kind();
    cuMemsetD16Async(u16, stream) is CU_MEMSET_D16_ASYNC => fill_kind();
    cuMemsetD32Async(c_uint, stream) is CU_MEMSET_D32_ASYNC => on_device();
    cuMemsetD8_v2(u8) is CU_MEMSET_D8 => fill_kind();
    cuMemsetD16_v2(u16) is CU_MEMSET_D16 => fill_kind();
    cuMemsetD32_v2(c_uint) is CU_MEMSET_D32 => fill_kind();
}

/// Copies on the stream's device, which is the source's or the destination's.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    bytes: usize,
    stream: usize,
) -> c_int {
    let device_of = |context: usize| driver().device_of(context as u32);
    let [from_device, to_device] = [from_context, to_context].map(device_of);
    let moved = Move {
        to,
        from: From::Address(from),
        bytes: bytes as u64,
    };
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
        src_device_id: from_device,
        src_context_id: from_context as u32,
        dst_device_id: to_device,
        dst_context_id: to_context as u32,
        correlation_id: work.correlation,
        ..records::MemcpyPeer::default()
    };
    let call_of: Call = names::CU_MEMCPY_PEER_ASYNC;
    call(call_of, |driver, correlation, asked| {
        let Some(work) = driver.submit(stream, correlation, asked, COPY_NS) else {
            return INVALID_CONTEXT;
        };
        if let Err(code) = moved.run(driver, [Device, Device]) {
            return code;
        }
        tell_transfer(&work, bytes as u64, records::MEMCPY2, record);
        SUCCESS
    })
}
