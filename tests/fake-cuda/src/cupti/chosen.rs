//! Records with chosen fields ("user-defined records"), as cupti_activity.h of CUPTI 13.3 to 13.5 describes them: the
//! fields in the order in which they were chosen, each at its natural alignment, with the types of the header's
//! comments: 64 bits for correlations, threads and some ids.

use crate::config::config;
use crate::records::*;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr};

/// CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS
pub const ATTRIBUTE: u32 = 11;

pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *const c_void);
pub type Completed = unsafe extern "C" fn(*mut u8, usize, usize, *const CompleteInfo);

/// CUpti_ActivityConfig
#[repr(C)]
pub struct Config {
    struct_size: usize,
    selection_size: usize,
    count: usize,
    ids: *const c_int,
}

/// CUpti_BufferCallbackCompleteInfo
#[repr(C)]
pub struct CompleteInfo {
    struct_size: usize,
    thread: u64,
    layouts: *const *const RecordLayout,
    count: usize,
}

/// CUpti_ActivityRecordLayout
#[repr(C)]
pub struct RecordLayout {
    struct_size: usize,
    entries: *const Entry,
    count: usize,
    record_size: usize,
}

/// CUpti_ActivityFieldLayoutEntry
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    struct_size: usize,
    id: c_int,
    offset: usize,
    size: usize,
    alignment: usize,
}

const KINDS: usize = 64;
static ON: AtomicBool = AtomicBool::new(false);
/// By kind, as the client gets them.
static LAYOUTS: [AtomicPtr<RecordLayout>; KINDS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; KINDS];

pub fn switch(on: bool) {
    ON.store(on, SeqCst);
}

pub fn is_on() -> bool {
    ON.load(SeqCst)
}

/// Id, offset in the whole record, size there, and size when chosen.
type Field = (c_int, usize, usize, usize);

macro_rules! fields {
    ($record:ident $($id:literal $field:ident $(+ $at:literal)? $size:literal $chosen:literal,)+) => {
        &[$(($id, offset_of!($record, $field) $(+ $at)?, $size, $chosen),)+]
    };
}

fn fields(kind: u32) -> &'static [Field] {
    match kind {
        CONCURRENT_KERNEL => fields! { Kernel
            0 kind 4 4, 4 registers_per_thread 2 2, 7 start 8 8, 8 end 8 8, 10 device_id 4 4,
            11 context_id 4 8, 12 stream_id 4 8, 13 grid 4 4, 14 grid + 4 4 4, 15 grid + 8 4 4,
            16 block 4 4, 17 block + 4 4 4, 18 block + 8 4 4, 19 static_shared_memory 4 4,
            20 dynamic_shared_memory 4 4, 21 local_memory_per_thread 4 4, 22 correlation_id 4 8,
            24 name 8 8, 27 launch_type 1 1, 31 graph_node_id 8 8, 33 graph_id 4 4,
            37 cluster 4 4, 38 cluster + 4 4 4, 39 cluster + 8 4 4, 44 is_device_launched 1 1,
        },
        MEMCPY => fields! { Memcpy
            0 kind 4 4, 1 copy_kind 1 1, 2 src_kind 1 1, 3 dst_kind 1 1, 5 bytes 8 8, 6 start 8 8,
            7 end 8 8, 8 device_id 4 4, 9 context_id 4 4, 10 stream_id 4 4, 11 correlation_id 4 8,
            12 graph_node_id 8 8, 13 graph_id 4 4,
        },
        MEMCPY2 => fields! { MemcpyPeer
            0 kind 4 4, 1 copy_kind 1 1, 2 src_kind 1 1, 3 dst_kind 1 1, 5 bytes 8 8, 6 start 8 8,
            7 end 8 8, 8 device_id 4 4, 9 context_id 4 4, 10 stream_id 4 4, 11 src_device_id 4 4,
            13 dst_device_id 4 4, 15 correlation_id 4 8, 16 graph_node_id 8 8, 17 graph_id 4 4,
        },
        MEMSET => fields! { Memset
            0 kind 4 4, 2 bytes 8 8, 3 start 8 8, 4 end 8 8, 5 device_id 4 4, 6 context_id 4 4,
            7 stream_id 4 4, 8 correlation_id 4 8, 10 memory_kind 2 2, 11 graph_node_id 8 8,
            12 graph_id 4 4,
        },
        GRAPH_TRACE => fields! { GraphTrace
            0 kind 4 4, 1 correlation_id 4 8, 2 start 8 8, 3 end 8 8, 4 device_id 4 4,
            5 graph_id 4 4, 6 context_id 4 4, 7 stream_id 4 4,
        },
        OVERHEAD => fields! { Overhead
            0 kind 4 4, 1 overhead_kind 4 4, 2 object_id 4 4, 3 object_id + 4 4 8, 4 start 8 8,
            5 end 8 8, 6 correlation_id 4 8,
        },
        MEMORY2 => fields! { Memory
            0 kind 4 4, 1 operation 4 4, 2 memory_kind 4 4, 4 address 8 8, 5 bytes 8 8,
            6 timestamp 8 8, 8 device_id 4 4, 12 pool_type 4 4,
        },
        MEMORY_POOL => fields! { MemoryPool
            0 kind 4 4, 1 operation 4 4, 5 device_id 4 4, 7 address 8 8, 8 size 8 8,
            10 timestamp 8 8, 11 utilized_size 8 8,
        },
        DEVICE => fields! { Device
            0 kind 4 4, 2 global_memory_bandwidth 8 8, 3 global_memory_size 8 8,
            5 l2_cache_size 4 4, 6 threads_per_warp 4 4, 7 core_clock_rate 4 4,
            9 multiprocessors 4 4, 11 max_warps 4 4, 12 max_blocks 4 4, 13 max_shared_memory 4 4,
            14 max_registers 4 4, 24 capability 4 4, 25 capability + 4 4 4, 26 id 4 4,
            28 uuid 16 16, 29 name 8 8, 31 is_mig_enabled 1 1, 32 gpu_instance_id 4 4,
            33 compute_instance_id 4 4, 34 mig_uuid 16 16,
        },
        CONTEXT => fields! { Context
            0 kind 4 4, 1 context_id 4 4, 2 device_id 4 4, 4 null_stream_id 2 4,
        },
        STREAM => fields! { Stream
            0 kind 4 4, 1 context_id 4 4, 2 stream_id 4 4, 3 priority 4 4, 4 flag 4 4,
        },
        _ => &[],
    }
}

fn field(kind: u32, id: c_int) -> Option<&'static Field> {
    fields(kind).iter().find(|(known, ..)| *known == id)
}

/// Lays the records of a kind out. False: the client asks for what there is not.
///
/// # Safety
/// `chosen` is null or the client's structure.
pub unsafe fn choose(kind: u32, chosen: *const Config) -> bool {
    // SAFETY: as the caller promises.
    let ids = unsafe {
        let Some(chosen) = chosen.as_ref() else {
            return false;
        };
        if chosen.struct_size != size_of::<Config>() || chosen.selection_size != 24 {
            return false;
        }
        std::slice::from_raw_parts(chosen.ids, chosen.count)
    };
    if ids.first() != Some(&0) {
        return false;
    }
    let (mut entries, mut end, mut widest) = (Vec::new(), 0usize, 4);
    for id in ids {
        let Some((_, _, _, size)) = field(kind, *id) else {
            return false;
        };
        if config().chosen_lacks == Some((kind, *id)) {
            continue;
        }
        let alignment = (*size).min(8);
        let offset = end.next_multiple_of(alignment);
        entries.push(Entry {
            struct_size: size_of::<Entry>(),
            id: *id,
            offset,
            size: *size,
            alignment,
        });
        (end, widest) = (offset + size, widest.max(alignment));
    }
    let count = entries.len();
    let layout = Box::new(RecordLayout {
        struct_size: size_of::<RecordLayout>(),
        entries: entries.leak().as_ptr(),
        count,
        record_size: end.next_multiple_of(widest),
    });
    LAYOUTS[kind as usize].store(Box::into_raw(layout), SeqCst);
    true
}

fn layout(kind: u32) -> Option<&'static RecordLayout> {
    let layout = LAYOUTS.get(kind as usize)?.load(SeqCst);
    // SAFETY: null, or leaked by `choose`.
    unsafe { layout.as_ref() }
}

/// The size of records of a kind, when it was chosen what they have.
pub fn size_of_kind(kind: u32) -> Option<usize> {
    is_on()
        .then(|| layout(kind))
        .flatten()
        .map(|l| l.record_size)
}

/// A record with what was chosen of it, or as it is.
pub fn of(whole: Vec<u8>) -> Vec<u8> {
    let kind = u32::from_ne_bytes(whole[..4].try_into().expect("a kind"));
    let Some(layout) = is_on().then(|| layout(kind)).flatten() else {
        return whole;
    };
    // SAFETY: leaked by `choose`.
    let entries = unsafe { std::slice::from_raw_parts(layout.entries, layout.count) };
    let mut record = vec![0; layout.record_size];
    for entry in entries {
        let (_, at, size, _) = field(kind, entry.id).expect("it was chosen");
        // The upper half of a number that has become wider is 0.
        record[entry.offset..entry.offset + size].copy_from_slice(&whole[*at..at + size]);
        // CUPTI's number for none has become wider too.
        if entry.size > *size && whole[*at..at + size].iter().all(|b| *b == 0xff) {
            record[entry.offset..entry.offset + entry.size].fill(0xff);
        }
    }
    record
}

/// What the client is told with a buffer.
pub fn told() -> CompleteInfo {
    CompleteInfo {
        struct_size: size_of::<CompleteInfo>(),
        thread: 0,
        layouts: LAYOUTS.as_ptr().cast(),
        count: (0..KINDS as u32)
            .filter(|kind| layout(*kind).is_some())
            .count(),
    }
}
