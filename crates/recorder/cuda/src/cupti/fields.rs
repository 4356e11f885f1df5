//! Where the fields of CUPTI's records are.
//!
//! CUPTI writes the newest version of each record that it knows, and new versions only append fields: in the headers of
//! CUDA 12.0 to 13.5 every field below has one offset (`layouts.txt`, made from the headers; a test compares). Fields
//! that were appended since 12.0 are read only when the library's version has them.
//!
//! Records with chosen fields ([`super::chosen`]) have them where CUPTI says, by the fields' ids (`choices.txt`).

use super::numbers::kind;
use std::marker::PhantomData;

/// A field of a record.
#[derive(Debug)]
pub struct Field<T> {
    offset: usize,
    /// The first API version whose records have it.
    since: u32,
    /// Its id among those that can be chosen.
    id: u8,
    kind: PhantomData<T>,
}

/// The id of fields that cannot be chosen.
const NO_ID: u8 = u8::MAX;
/// Ids are below this.
pub const IDS: usize = 64;

/// A field of a record with chosen fields.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Its id; those of the parts that follow it are the next ones.
    pub id: u8,
    /// The least that each part may have.
    pub bytes: usize,
    /// x, y and z are three fields there and one here.
    pub parts: u8,
}

/// Where CUPTI has put chosen fields, by their ids.
#[derive(Debug)]
pub struct Places(pub [u16; IDS]);

impl Places {
    /// CUPTI did not say where.
    pub const NOWHERE: u16 = u16::MAX;

    #[inline]
    fn of<T>(&self, field: Field<T>) -> Option<usize> {
        let place = *self.0.get(usize::from(field.id))?;
        (place != Self::NOWHERE).then_some(usize::from(place))
    }
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

/// A record in one of CUPTI's buffers.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    at: *const u8,
    version: u32,
    /// Where its fields are, when they were chosen.
    chosen: Option<&'a Places>,
    buffer: PhantomData<&'a [u8]>,
}

/// Types that any bytes are a value of.
pub trait Plain: Copy {
    /// Fields of CUPTI's.
    const PARTS: u8 = 1;
}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for [u32; 3] {
    const PARTS: u8 = 3;
}
impl Plain for [u8; 16] {}

impl Record<'_> {
    /// # Safety
    /// `at` points to a whole record, as CUPTI of API version `version` writes it, that lives for `'a`; with the places
    /// of its fields when it has chosen ones: all that are ever read.
    pub unsafe fn new<'a>(at: *const u8, version: u32, chosen: Option<&'a Places>) -> Record<'a> {
        Record {
            at,
            version,
            chosen,
            buffer: PhantomData,
        }
    }

    /// CUpti_ActivityKind.
    #[inline]
    pub fn kind(&self) -> u32 {
        // SAFETY: every record begins with its kind.
        unsafe { self.at.cast::<u32>().read_unaligned() }
    }

    /// A field that all versions have.
    ///
    /// # Safety
    /// The record is of the kind that has the field.
    #[inline]
    pub unsafe fn get<T: Plain>(&self, field: Field<T>) -> T {
        let offset = match self.chosen {
            None => field.offset,
            // A record without the field is not made; 0 is inside every record.
            Some(places) => places.of(field).unwrap_or(0),
        };
        // SAFETY: the record is whole and, as the caller promises, has the field at this offset.
        unsafe { self.at.add(offset).cast::<T>().read_unaligned() }
    }

    /// A field that newer versions have, or that cannot be chosen.
    ///
    /// # Safety
    /// As for [`Self::get`].
    #[inline]
    pub unsafe fn get_new<T: Plain>(&self, field: Field<T>) -> Option<T> {
        let known = match self.chosen {
            None => self.version >= field.since,
            Some(places) => places.of(field).is_some(),
        };
        // SAFETY: as for `get`, and this record has the field.
        known.then(|| unsafe { self.get(field) })
    }
}

macro_rules! fields {
    ($($record:literal $module:ident { $($name:ident $header:literal $type:ty = $offset:literal $(since $since:literal)? $(id $id:literal)?,)+ })+) => {
        $(
            #[allow(missing_docs)]
            pub mod $module {
                use super::{Choice, Field, Plain};
                use std::marker::PhantomData;
                $(pub const $name: Field<$type> = Field {
                    offset: $offset,
                    since: { #[allow(unused_mut, unused_assignments)] let mut since = super::super::OLDEST; $(since = $since;)? since },
                    id: { #[allow(unused_mut, unused_assignments)] let mut id = super::NO_ID; $(id = $id;)? id },
                    kind: PhantomData,
                };)+
                /// What is chosen of this record.
                pub const CHOICES: &[Choice] = &[$($(Choice {
                    id: $id,
                    bytes: size_of::<$type>() / <$type as Plain>::PARTS as usize,
                    parts: <$type as Plain>::PARTS,
                },)?)+];
            }
        )+

        /// Record, field, offset, size and first version, for the comparison with the headers.
        #[cfg(test)]
        const ALL: &[(&str, &str, usize, usize, u32)] = &[
            $($(($record, $header, $module::$name.offset, size_of::<$type>(), $module::$name.since),)+)+
        ];

        /// Record, field, id and parts, likewise.
        #[cfg(test)]
        const CHOSEN: &[(&str, &str, u8, u8)] = &[
            $($(($record, $header, $module::$name.id, <$type as Plain>::PARTS),)+)+
        ];
    };
}

fields! {
    "Kernel" kernel {
        REGISTERS "registersPerThread" u16 = 6 id 4,
        START "start" u64 = 16 id 7,
        END "end" u64 = 24 id 8,
        DEVICE "deviceId" u32 = 40 id 10,
        CONTEXT "contextId" u32 = 44 id 11,
        STREAM "streamId" u32 = 48 id 12,
        GRID "gridX" [u32; 3] = 52 id 13,
        BLOCK "blockX" [u32; 3] = 64 id 16,
        STATIC_SHARED "staticSharedMemory" u32 = 76 id 19,
        DYNAMIC_SHARED "dynamicSharedMemory" u32 = 80 id 20,
        LOCAL "localMemoryPerThread" u32 = 84 id 21,
        CORRELATION "correlationId" u32 = 92 id 22,
        NAME "name" usize = 104 id 24,
        GRAPH "graphId" u32 = 156 id 33,
    }
    "Memcpy" copy {
        KIND "copyKind" u8 = 4 id 1,
        SOURCE "srcKind" u8 = 5 id 2,
        DESTINATION "dstKind" u8 = 6 id 3,
        BYTES "bytes" u64 = 8 id 5,
        START "start" u64 = 16 id 6,
        END "end" u64 = 24 id 7,
        DEVICE "deviceId" u32 = 32 id 8,
        CONTEXT "contextId" u32 = 36 id 9,
        STREAM "streamId" u32 = 40 id 10,
        CORRELATION "correlationId" u32 = 44 id 11,
        GRAPH "graphId" u32 = 72 id 13,
    }
    "MemcpyPtoP" peer_copy {
        KIND "copyKind" u8 = 4 id 1,
        SOURCE "srcKind" u8 = 5 id 2,
        DESTINATION "dstKind" u8 = 6 id 3,
        BYTES "bytes" u64 = 8 id 5,
        START "start" u64 = 16 id 6,
        END "end" u64 = 24 id 7,
        DEVICE "deviceId" u32 = 32 id 8,
        CONTEXT "contextId" u32 = 36 id 9,
        STREAM "streamId" u32 = 40 id 10,
        SOURCE_DEVICE "srcDeviceId" u32 = 44 id 11,
        DESTINATION_DEVICE "dstDeviceId" u32 = 52 id 13,
        CORRELATION "correlationId" u32 = 60 id 15,
        GRAPH "graphId" u32 = 80 id 17,
    }
    "Memset" fill {
        BYTES "bytes" u64 = 8 id 2,
        START "start" u64 = 16 id 3,
        END "end" u64 = 24 id 4,
        DEVICE "deviceId" u32 = 32 id 5,
        CONTEXT "contextId" u32 = 36 id 6,
        STREAM "streamId" u32 = 40 id 7,
        CORRELATION "correlationId" u32 = 44 id 8,
        MEMORY "memoryKind" u16 = 50 id 10,
        GRAPH "graphId" u32 = 72 id 12,
    }
    "GraphTrace" graph {
        CORRELATION "correlationId" u32 = 4 id 1,
        START "start" u64 = 8 id 2,
        END "end" u64 = 16 id 3,
        DEVICE "deviceId" u32 = 24 id 4,
        CONTEXT "contextId" u32 = 32 id 6,
        STREAM "streamId" u32 = 36 id 7,
    }
    "Overhead" overhead {
        KIND "overheadKind" u32 = 4 id 1,
        OBJECT "objectKind" u32 = 8,
        THREAD "objectId.pt.threadId" u32 = 16 id 3,
        START "start" u64 = 24 id 4,
        END "end" u64 = 32 id 5,
    }
    "Memory" memory {
        OPERATION "memoryOperationType" u32 = 4 id 1,
        KIND "memoryKind" u32 = 8 id 2,
        ADDRESS "address" u64 = 16 id 4,
        BYTES "bytes" u64 = 24 id 5,
        AT "timestamp" u64 = 32 id 6,
        DEVICE "deviceId" u32 = 52 id 8,
        POOL_TYPE "memoryPoolConfig.memoryPoolType" u32 = 80 id 12,
    }
    "MemoryPool" pool {
        OPERATION "memoryPoolOperationType" u32 = 4 id 1,
        DEVICE "deviceId" u32 = 20 id 5,
        ADDRESS "address" u64 = 32 id 7,
        BYTES "size" u64 = 40 id 8,
        AT "timestamp" u64 = 56 id 10,
    }
    "Device" device {
        BANDWIDTH "globalMemoryBandwidth" u64 = 8 id 2,
        MEMORY "globalMemorySize" u64 = 16 id 3,
        L2 "l2CacheSize" u32 = 28 id 5,
        WARP "numThreadsPerWarp" u32 = 32 id 6,
        CLOCK "coreClockRate" u32 = 36 id 7,
        MULTIPROCESSORS "numMultiprocessors" u32 = 44 id 9,
        WARPS "maxWarpsPerMultiprocessor" u32 = 52 id 11,
        BLOCKS "maxBlocksPerMultiprocessor" u32 = 56 id 12,
        SHARED "maxSharedMemoryPerMultiprocessor" u32 = 60 id 13,
        REGISTERS "maxRegistersPerMultiprocessor" u32 = 64 id 14,
        MAJOR "computeCapabilityMajor" u32 = 104 id 24,
        MINOR "computeCapabilityMinor" u32 = 108 id 25,
        ID "id" u32 = 112 id 26,
        UUID "uuid" [u8; 16] = 120 id 28,
        NAME "name" usize = 136 id 29,
        PARTITION "isMigEnabled" u8 = 145 id 31,
        GPU_INSTANCE "gpuInstanceId" u32 = 152 id 32,
        COMPUTE_INSTANCE "computeInstanceId" u32 = 156 id 33,
        PARTITION_UUID "migUuid" [u8; 16] = 160 id 34,
    }
    "Context" context {
        ID "contextId" u32 = 4 id 1,
        DEVICE "deviceId" u32 = 8 id 2,
        DEFAULT_STREAM "nullStreamId" u16 = 14 id 4,
    }
    "Stream" stream {
        CONTEXT "contextId" u32 = 4 id 1,
        ID "streamId" u32 = 8 id 2,
        PRIORITY "priority" u32 = 12 id 3,
        FLAG "flag" u32 = 16 id 4,
    }
}

/// What is chosen of the records of a kind; `None` for kinds that are not recorded.
pub fn choices(kind: u32) -> Option<&'static [Choice]> {
    Some(match kind {
        kind::CONCURRENT_KERNEL => kernel::CHOICES,
        kind::MEMCPY => copy::CHOICES,
        kind::MEMCPY_PEER => peer_copy::CHOICES,
        kind::MEMSET => fill::CHOICES,
        kind::GRAPH_TRACE => graph::CHOICES,
        kind::OVERHEAD => overhead::CHOICES,
        kind::MEMORY2 => memory::CHOICES,
        kind::MEMORY_POOL => pool::CHOICES,
        kind::DEVICE => device::CHOICES,
        kind::CONTEXT => context::CHOICES,
        kind::STREAM => stream::CHOICES,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{ALL, CHOSEN, choices};
    use std::collections::HashMap;

    /// `Record.field offset size first-version`, from the headers; see the file's first lines.
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
        for (record, field, offset, size, since) in ALL {
            let [there, bytes, first] = headers[&(*record, *field)];
            assert_eq!(
                (*offset, *since as usize),
                (there, first),
                "{record}.{field}"
            );
            // x, y and z are three fields there and one here.
            let parts = if *size == 12 && bytes == 4 { 3 } else { 1 };
            assert_eq!(*size, bytes * parts, "{record}.{field}");
        }
    }

    #[test]
    fn every_chosen_field_has_the_id_that_the_headers_of_cuda_13_give_it() {
        let lines = include_str!("choices.txt").lines();
        let ids: HashMap<&str, (u8, usize)> = lines
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let mut words = line.split(' ');
                let mut next = || words.next().expect("three words");
                let (name, id, bytes) = (next(), next(), next());
                (
                    name,
                    (
                        id.parse().expect("a number"),
                        bytes.parse().expect("a number"),
                    ),
                )
            })
            .collect();
        let chosen = CHOSEN.iter().filter(|(_, _, id, _)| *id != super::NO_ID);
        let mut count = 0;
        for (record, field, id, parts) in chosen {
            let name = format!("{record}.{field}");
            assert_eq!(ids[name.as_str()].0, *id, "{name}");
            for (axis, after) in ["Y", "Z"].iter().zip(1..*parts) {
                let next = format!("{}{axis}", name.trim_end_matches('X'));
                assert_eq!(ids[next.as_str()].0, id + after, "{next}");
            }
            count += 1;
        }
        // All but the kind of an overhead's object.
        assert_eq!(count, ALL.len() - 1);
        for kind in 0..64 {
            for choice in choices(kind).unwrap_or_default() {
                assert!(usize::from(choice.id + choice.parts) <= super::IDS);
            }
        }
    }

    #[test]
    fn x_y_and_z_follow_each_other() {
        let headers = headers();
        for name in ["grid", "block", "cluster"] {
            let at = |axis: &str| {
                let field: &'static str = Box::leak(format!("{name}{axis}").into_boxed_str());
                headers[&("Kernel", field)][0]
            };
            assert_eq!([at("Y"), at("Z")], [at("X") + 4, at("X") + 8], "{name}");
        }
    }
}
