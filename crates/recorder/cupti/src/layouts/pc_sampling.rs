//! Declares CUPTI's structures of PC sampling that do not begin as the others do, as cupti_pcsampling.h declares them (CUDA 12.8 and 13.5).

use std::ffi::{c_char, c_int, c_void};

/// CUpti_PCSamplingConfigurationAttributeType
pub mod attribute {
    use std::ffi::c_int;

    pub const SAMPLING_PERIOD: c_int = 1;
    pub const STALL_REASON: c_int = 2;
    pub const HARDWARE_BUFFER_SIZE: c_int = 4;
    pub const COLLECTION_MODE: c_int = 5;
    pub const SAMPLING_DATA_BUFFER: c_int = 8;
}

/// CUpti_PCSamplingConfigurationInfo
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    kind: c_int,
    status: c_int,
    data: [u64; 3],
}

impl Attribute {
    pub fn new(kind: c_int, [first, second]: [u64; 2]) -> Attribute {
        Attribute {
            kind,
            status: 0,
            data: [first, second, 0],
        }
    }

    /// Returns the value of an attribute that is a number of 32 bits.
    pub fn first_number(self) -> u32 {
        self.data[0] as u32
    }
}

/// CUpti_PCSamplingStallReason
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ReasonSamples {
    pub reason: u32,
    pub samples: u32,
}

/// CUpti_PCSamplingPCData
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PcData {
    pub size: usize,
    pub cubin_crc: u64,
    pub offset: u64,
    pub function_index: u32,
    pub padding: u32,
    pub function: *const c_char,
    pub reason_count: usize,
    pub reasons: *mut ReasonSamples,
    pub correlation: u32,
}

/// CUpti_PCSamplingData
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Data {
    pub size: usize,
    pub room: usize,
    pub total_samples: u64,
    pub dropped_samples: u64,
    pub pcs: usize,
    pub remaining: usize,
    pub range: u64,
    pub data: *mut PcData,
    pub other_samples: u64,
    pub is_full: u8,
}

/// CUpti_GetCubinCrcParams
#[repr(C)]
#[derive(Debug)]
pub struct CubinCrc {
    size: usize,
    pub cubin_size: usize,
    pub cubin: *const c_void,
    pub crc: u64,
}

impl CubinCrc {
    pub fn new() -> CubinCrc {
        CubinCrc {
            size: 32,
            cubin_size: 0,
            cubin: std::ptr::null(),
            crc: 0,
        }
    }
}

/// CUpti_GetSassToSourceCorrelationParams
#[repr(C)]
#[derive(Debug)]
pub struct SassToSource {
    size: usize,
    pub cubin: *const c_void,
    pub function: *const c_char,
    pub cubin_size: usize,
    pub line: u32,
    pub offset: u64,
    pub file: *mut c_char,
    pub folder: *mut c_char,
}

impl SassToSource {
    pub fn new() -> SassToSource {
        SassToSource {
            size: 64,
            cubin: std::ptr::null(),
            function: std::ptr::null(),
            cubin_size: 0,
            line: 0,
            offset: 0,
            file: std::ptr::null_mut(),
            folder: std::ptr::null_mut(),
        }
    }
}

// As a C compiler computes them from the headers of CUDA 12.8 and 13.5 on a 64-bit machine.
const _: () = assert!(size_of::<Attribute>() == 32);
const _: () = assert!(size_of::<ReasonSamples>() == 8);
const _: () = assert!(size_of::<PcData>() == 64);
const _: () = assert!(std::mem::offset_of!(PcData, function) == 32);
const _: () = assert!(std::mem::offset_of!(PcData, reasons) == 48);
const _: () = assert!(size_of::<Data>() == 80);
const _: () = assert!(std::mem::offset_of!(Data, data) == 56);
const _: () = assert!(std::mem::offset_of!(Data, is_full) == 72);
const _: () = assert!(size_of::<CubinCrc>() == 32);
const _: () = assert!(size_of::<SassToSource>() == 64);
const _: () = assert!(std::mem::offset_of!(SassToSource, line) == 32);
const _: () = assert!(std::mem::offset_of!(SassToSource, offset) == 40);
