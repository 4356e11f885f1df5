//! Reads CUPTI's records of work, which are structures in C, by the offsets of their fields.
//!
//! CUPTI writes the newest version of each record that it knows, and new versions only append fields: in the headers
//! of CUDA 12.0 to 13.5 every field below exists at one offset (a test compares with `layouts.txt`, which was made
//! from the headers). Records of host functions exist since 13.1, the flag of green contexts since 12.4, and the
//! fields that say where graphs end since 12.3.

use std::marker::PhantomData;

/// A field of a record.
#[derive(Debug, Clone, Copy)]
pub struct Field<T> {
    /// Offset in the record, in bytes.
    offset: usize,
    kind: PhantomData<T>,
}

/// A record in one of CUPTI's buffers.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The address of the record.
    at: *const u8,
    buffer: PhantomData<&'a [u8]>,
}

/// Types for which any bytes are a value.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for [u32; 3] {}
impl Plain for [u8; 16] {}

impl Record<'_> {
    /// Creates a record from its address.
    ///
    /// # Safety
    /// `at` points to a whole record that lives for `'a`.
    pub unsafe fn new<'a>(at: *const u8) -> Record<'a> {
        Record {
            at,
            buffer: PhantomData,
        }
    }

    /// CUpti_ActivityKind.
    #[inline]
    pub fn kind(&self) -> u32 {
        // SAFETY: every record begins with its kind.
        unsafe { self.at.cast::<u32>().read_unaligned() }
    }

    /// Returns the value of a field.
    ///
    /// # Safety
    /// The record is of the kind that has the field.
    #[inline]
    pub unsafe fn get<T: Plain>(&self, field: Field<T>) -> T {
        // SAFETY: the record is whole and, as the caller promises, has the field at this offset.
        unsafe { self.at.add(field.offset).cast::<T>().read_unaligned() }
    }
}

/// Declares the fields of each record: a constant's name, the field's name in the header, its type and its offset in
/// bytes.
macro_rules! fields {
    ($($record:literal $module:ident { $($name:ident $header:literal $type:ty = $offset:literal,)+ })+) => {
        $(
            #[allow(missing_docs)]
            pub mod $module {
                use super::Field;
                use std::marker::PhantomData;
                $(pub const $name: Field<$type> = Field {
                    offset: $offset,
                    kind: PhantomData,
                };)+
            }
        )+

        /// Record, field, offset and size, for the comparison with the headers.
        #[cfg(test)]
        const ALL: &[(&str, &str, usize, usize)] = &[
            $($(($record, $header, $module::$name.offset, size_of::<$type>()),)+)+
        ];
    };
}

fields! {
    "Kernel" kernel {
        REGISTERS "registersPerThread" u16 = 6,
        START "start" u64 = 16,
        END "end" u64 = 24,
        DEVICE "deviceId" u32 = 40,
        CONTEXT "contextId" u32 = 44,
        STREAM "streamId" u32 = 48,
        GRID "gridX" [u32; 3] = 52,
        BLOCK "blockX" [u32; 3] = 64,
        STATIC_SHARED "staticSharedMemory" u32 = 76,
        DYNAMIC_SHARED "dynamicSharedMemory" u32 = 80,
        LOCAL "localMemoryPerThread" u32 = 84,
        CORRELATION "correlationId" u32 = 92,
        NAME "name" usize = 104,
        NODE "graphNodeId" u64 = 144,
        GRAPH "graphId" u32 = 156,
    }
    "Memcpy" copy {
        KIND "copyKind" u8 = 4,
        SOURCE "srcKind" u8 = 5,
        DESTINATION "dstKind" u8 = 6,
        BYTES "bytes" u64 = 8,
        START "start" u64 = 16,
        END "end" u64 = 24,
        DEVICE "deviceId" u32 = 32,
        CONTEXT "contextId" u32 = 36,
        STREAM "streamId" u32 = 40,
        CORRELATION "correlationId" u32 = 44,
        NODE "graphNodeId" u64 = 64,
        GRAPH "graphId" u32 = 72,
    }
    "MemcpyPtoP" peer_copy {
        KIND "copyKind" u8 = 4,
        SOURCE "srcKind" u8 = 5,
        DESTINATION "dstKind" u8 = 6,
        BYTES "bytes" u64 = 8,
        START "start" u64 = 16,
        END "end" u64 = 24,
        DEVICE "deviceId" u32 = 32,
        CONTEXT "contextId" u32 = 36,
        STREAM "streamId" u32 = 40,
        SOURCE_DEVICE "srcDeviceId" u32 = 44,
        DESTINATION_DEVICE "dstDeviceId" u32 = 52,
        CORRELATION "correlationId" u32 = 60,
        NODE "graphNodeId" u64 = 72,
        GRAPH "graphId" u32 = 80,
    }
    "Memset" fill {
        BYTES "bytes" u64 = 8,
        START "start" u64 = 16,
        END "end" u64 = 24,
        DEVICE "deviceId" u32 = 32,
        CONTEXT "contextId" u32 = 36,
        STREAM "streamId" u32 = 40,
        CORRELATION "correlationId" u32 = 44,
        MEMORY "memoryKind" u16 = 50,
        NODE "graphNodeId" u64 = 64,
        GRAPH "graphId" u32 = 72,
    }
    "GraphTrace" graph {
        CORRELATION "correlationId" u32 = 4,
        START "start" u64 = 8,
        END "end" u64 = 16,
        DEVICE "deviceId" u32 = 24,
        CONTEXT "contextId" u32 = 32,
        STREAM "streamId" u32 = 36,
        END_DEVICE "endDeviceId" u32 = 48,
        END_CONTEXT "endContextId" u32 = 52,
    }
    "HostLaunch" host_launch {
        STREAM "streamId" u32 = 4,
        CONTEXT "contextId" u32 = 8,
        DEVICE "deviceId" u32 = 12,
        CORRELATION "correlationId" u32 = 16,
        THREAD "threadId" u32 = 24,
        START "start" u64 = 32,
        END "end" u64 = 40,
    }
    "GraphHostNode" host_node {
        STREAM "streamId" u32 = 4,
        CONTEXT "contextId" u32 = 8,
        DEVICE "deviceId" u32 = 12,
        CORRELATION "correlationId" u32 = 16,
        THREAD "threadId" u32 = 36,
        START "start" u64 = 40,
        END "end" u64 = 48,
    }
    "Overhead" overhead {
        KIND "overheadKind" u32 = 4,
        OBJECT "objectKind" u32 = 8,
        THREAD "objectId.pt.threadId" u32 = 16,
        START "start" u64 = 24,
        END "end" u64 = 32,
    }
    "Memory" memory {
        OPERATION "memoryOperationType" u32 = 4,
        KIND "memoryKind" u32 = 8,
        ADDRESS "address" u64 = 16,
        BYTES "bytes" u64 = 24,
        AT "timestamp" u64 = 32,
        DEVICE "deviceId" u32 = 52,
        POOL_TYPE "memoryPoolConfig.memoryPoolType" u32 = 80,
    }
    "MemoryPool" pool {
        OPERATION "memoryPoolOperationType" u32 = 4,
        DEVICE "deviceId" u32 = 20,
        ADDRESS "address" u64 = 32,
        BYTES "size" u64 = 40,
        AT "timestamp" u64 = 56,
    }
    "Device" device {
        BANDWIDTH "globalMemoryBandwidth" u64 = 8,
        MEMORY "globalMemorySize" u64 = 16,
        L2 "l2CacheSize" u32 = 28,
        WARP "numThreadsPerWarp" u32 = 32,
        CLOCK "coreClockRate" u32 = 36,
        MULTIPROCESSORS "numMultiprocessors" u32 = 44,
        WARPS "maxWarpsPerMultiprocessor" u32 = 52,
        BLOCKS "maxBlocksPerMultiprocessor" u32 = 56,
        SHARED "maxSharedMemoryPerMultiprocessor" u32 = 60,
        REGISTERS "maxRegistersPerMultiprocessor" u32 = 64,
        MAJOR "computeCapabilityMajor" u32 = 104,
        MINOR "computeCapabilityMinor" u32 = 108,
        ID "id" u32 = 112,
        UUID "uuid" [u8; 16] = 120,
        NAME "name" usize = 136,
        PARTITION "isMigEnabled" u8 = 145,
        GPU_INSTANCE "gpuInstanceId" u32 = 152,
        COMPUTE_INSTANCE "computeInstanceId" u32 = 156,
        PARTITION_UUID "migUuid" [u8; 16] = 160,
    }
    "Context" context {
        ID "contextId" u32 = 4,
        DEVICE "deviceId" u32 = 8,
        DEFAULT_STREAM "nullStreamId" u16 = 14,
        IS_GREEN "isGreenContext" u8 = 20,
    }
    "Stream" stream {
        CONTEXT "contextId" u32 = 4,
        ID "streamId" u32 = 8,
        PRIORITY "priority" u32 = 12,
        FLAG "flag" u32 = 16,
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::cupti::numbers::{
        FIRST_WITH_ENDS_OF_GRAPHS, FIRST_WITH_GREEN_CONTEXTS, FIRST_WITH_HOST_FUNCTIONS, OLDEST,
    };
    use std::collections::HashMap;

    /// Returns offset, size and first version of each `Record.field`, from the headers; see the file's first lines.
    fn headers() -> HashMap<(&'static str, &'static str), [usize; 3]> {
        let lines = include_str!("layouts.txt").lines();
        lines
            .filter(|line| !line.starts_with('#') && line.contains('.'))
            .map(|line| {
                let mut words = line.split(' ');
                let (record, field) = words
                    .next()
                    .and_then(|w| w.split_once('.'))
                    .expect("Record.field");
                let numbers: Vec<usize> = words.map(|w| w.parse().expect("a number")).collect();
                ((record, field), numbers.try_into().expect("three numbers"))
            })
            .collect()
    }

    #[test]
    fn every_field_is_where_the_headers_of_cuda_12_and_13_have_it() {
        let headers = headers();
        assert!(ALL.len() > 80, "the table is not empty");
        for (record, field, offset, size) in ALL {
            let [there, bytes, first] = headers[&(*record, *field)];
            let since = match (*record, *field) {
                ("HostLaunch" | "GraphHostNode", _) => FIRST_WITH_HOST_FUNCTIONS,
                ("GraphTrace", "endDeviceId" | "endContextId") => FIRST_WITH_ENDS_OF_GRAPHS,
                ("Context", "isGreenContext") => FIRST_WITH_GREEN_CONTEXTS,
                _ => OLDEST,
            };
            assert_eq!(
                (*offset, since as usize),
                (there, first),
                "{record}.{field}"
            );
            // The headers have three fields x, y and z where this table has one.
            let parts = if *size == 12 && bytes == 4 { 3 } else { 1 };
            assert_eq!(*size, bytes * parts, "{record}.{field}");
        }
    }

    #[test]
    fn x_y_and_z_follow_each_other() {
        let headers = headers();
        for name in ["grid", "block"] {
            let at = |axis: &str| {
                let field: &'static str = Box::leak(format!("{name}{axis}").into_boxed_str());
                headers[&("Kernel", field)][0]
            };
            assert_eq!([at("Y"), at("Z")], [at("X") + 4, at("X") + 8], "{name}");
        }
    }
}
