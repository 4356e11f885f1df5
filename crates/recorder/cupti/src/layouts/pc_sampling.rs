//! Declares CUPTI's structures of PC sampling (which counts how often each instruction was the next one of a sampled
//! warp) that do not begin as the others do, as cupti_pcsampling.h declares them (CUDA 12.8 and 13.5).

use std::ffi::{c_char, c_int, c_void};

/// CUpti_PCSamplingConfigurationAttributeType: the settings of sampling.
pub mod attribute {
    use std::ffi::c_int;

    pub const SAMPLING_PERIOD: c_int = 1;
    pub const STALL_REASON: c_int = 2;
    pub const HARDWARE_BUFFER_SIZE: c_int = 4;
    pub const COLLECTION_MODE: c_int = 5;
    pub const SAMPLING_DATA_BUFFER: c_int = 8;
}

/// CUpti_PCSamplingConfigurationInfo: one setting, with CUPTI's answer and the value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    kind: c_int,
    /// CUPTI's answer.
    status: c_int,
    /// The value, in the first two words at most.
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

/// CUpti_PCSamplingStallReason: the number of a reason to wait, and how many samples had it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ReasonSamples {
    pub reason: u32,
    pub samples: u32,
}

/// Declares structures that begin with their own size.
macro_rules! sized {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)+ })+) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            pub size: usize,
            $(pub $field: $type,)+
        }

        impl $name {
            pub fn new() -> $name {
                // SAFETY: the fields are numbers and pointers, for which zero is a value.
                let zeroed: $name = unsafe { std::mem::zeroed() };
                $name { size: size_of::<$name>(), ..zeroed }
            }
        }
    )+};
}

sized! {
    /// CUpti_PCSamplingPCData
    PcData {
        cubin_crc: u64,
        offset: u64,
        function_index: u32,
        padding: u32,
        function: *const c_char,
        reason_count: usize,
        reasons: *mut ReasonSamples,
        correlation: u32,
    }
    /// CUpti_PCSamplingData
    Data {
        room: usize,
        total_samples: u64,
        dropped_samples: u64,
        pcs: usize,
        remaining: usize,
        range: u64,
        data: *mut PcData,
        other_samples: u64,
        is_full: u8,
    }
    /// CUpti_GetCubinCrcParams
    CubinCrc {
        cubin_size: usize,
        cubin: *const c_void,
        crc: u64,
    }
    /// CUpti_GetSassToSourceCorrelationParams
    SassToSource {
        cubin: *const c_void,
        function: *const c_char,
        cubin_size: usize,
        line: u32,
        offset: u64,
        file: *mut c_char,
        folder: *mut c_char,
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
