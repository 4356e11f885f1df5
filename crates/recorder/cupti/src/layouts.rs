//! Declares CUPTI's parameter structures, as the headers of CUPTI 13.0 declare them. An image is a block of bytes in
//! CUPTI's own format; the caller gives its address and its size in bytes.

pub mod pc_sampling;

pub use pc_sampling::{CubinCrc, SassToSource};
use std::ffi::{c_char, c_int, c_void};

/// Declares structures with the two fields that all begin with. `new` sets the size as the headers do: up to the end
/// of the last field, without padding.
macro_rules! layouts {
    ($($name:ident { $($field:ident: $type:ty,)* })+) => {
        $(
            #[repr(C)]
            #[derive(Debug, Clone, Copy)]
            pub struct $name {
                pub struct_size: usize,
                pub private: *mut c_void,
                $(pub $field: $type,)*
            }

            impl $name {
                pub const SIZE: usize = {
                    #[allow(unused_mut)]
                    let mut end = 2 * size_of::<usize>();
                    $({
                        let after = std::mem::offset_of!($name, $field) + size_of::<$type>();
                        if after > end {
                            end = after;
                        }
                    })*
                    end
                };

                pub fn new() -> $name {
                    // SAFETY: the fields are numbers and pointers, for which zero is a value.
                    let zeroed: $name = unsafe { std::mem::zeroed() };
                    $name { struct_size: $name::SIZE, ..zeroed }
                }
            }
        )+
    };
}

layouts! {
    // The parameters of functions that take nothing but their size, or nothing but an object of CUPTI's.
    Nothing {}
    Object { object: *mut c_void, }
    // The context or the index of a device, and room for the image of the counters that the device has.
    GetCounterAvailability { device: *mut c_void, size: usize, image: *mut u8, }
    CounterDataImageInitialize { object: *mut c_void, size: usize, image: *mut u8, }
    DeviceGetChipName { device_index: usize, chip_name: *const c_char, }
    // cupti_profiler_host.h
    HostInitialize {
        profiler_type: c_int,
        chip_name: *const c_char,
        availability: *const u8,
        host: *mut c_void,
    }
    HostGetSupportedChips { count: usize, names: *const *const c_char, }
    HostConfigAddMetrics { host: *mut c_void, names: *mut *const c_char, count: usize, }
    HostGetConfigImageSize { host: *mut c_void, size: usize, }
    HostGetConfigImage { host: *mut c_void, size: usize, image: *mut u8, }
    HostGetNumOfPasses { size: usize, image: *mut u8, passes: usize, }
    HostEvaluateToGpuValues {
        host: *mut c_void,
        image: *const u8,
        image_size: usize,
        index: usize,
        names: *mut *const c_char,
        count: usize,
        values: *mut f64,
    }
    // cupti_pmsampling.h
    PmEnable { device_index: usize, object: *mut c_void, }
    PmSetConfig {
        object: *mut c_void,
        config_size: usize,
        config: *const u8,
        hardware_buffer_size: usize,
        interval: u64,
        trigger: c_int,
        append: c_int,
    }
    PmDecodeData {
        object: *mut c_void,
        image: *mut u8,
        image_size: usize,
        stop_reason: c_int,
        overflow: u8,
    }
    PmGetCounterDataSize {
        object: *mut c_void,
        names: *mut *const c_char,
        count: usize,
        max_samples: u32,
        size: usize,
    }
    PmGetCounterDataInfo {
        image: *const u8,
        image_size: usize,
        total: usize,
        populated: usize,
        completed: usize,
    }
    PmGetSampleInfo {
        object: *mut c_void,
        image: *const u8,
        image_size: usize,
        index: usize,
        start: u64,
        end: u64,
    }
    // cupti_pcsampling.h
    PcCountReasons { context: *mut c_void, count: *mut usize, }
    PcReasons {
        context: *mut c_void,
        count: usize,
        numbers: *mut u32,
        names: *mut *mut c_char,
    }
    PcConfiguration { context: *mut c_void, count: usize, attributes: *mut c_void, }
    PcGetData { context: *mut c_void, data: *mut c_void, }
    // cupti_range_profiler.h
    RangeEnable { context: *mut c_void, object: *mut c_void, }
    RangeSetConfig {
        object: *mut c_void,
        config_size: usize,
        config: *const u8,
        image_size: usize,
        image: *mut u8,
        range: c_int,
        replay: c_int,
        max_ranges_per_pass: usize,
        nesting_levels: u16,
        min_nesting_level: u16,
        pass_index: usize,
        target_nesting_level: u16,
    }
    RangeStop {
        object: *mut c_void,
        pass_index: usize,
        target_nesting_level: usize,
        is_all_pass_submitted: u8,
    }
    RangeDecodeData { object: *mut c_void, dropped: usize, }
    RangeGetCounterDataSize {
        object: *mut c_void,
        names: *mut *const c_char,
        count: usize,
        max_ranges: usize,
        max_tree_nodes: u32,
        size: usize,
    }
    RangeGetCounterDataInfo { image: *const u8, image_size: usize, total: usize, }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes are what a C compiler computes for `…_STRUCT_SIZE` in the headers of CUPTI 13.0 on a 64-bit machine.
    #[test]
    fn sizes_are_those_of_the_headers() {
        let sizes = [
            (Nothing::SIZE, 16),
            (Object::SIZE, 24),
            (GetCounterAvailability::SIZE, 40),
            (CounterDataImageInitialize::SIZE, 40),
            (DeviceGetChipName::SIZE, 32),
            (HostInitialize::SIZE, 48),
            (HostGetSupportedChips::SIZE, 32),
            (HostConfigAddMetrics::SIZE, 40),
            (HostGetConfigImageSize::SIZE, 32),
            (HostGetConfigImage::SIZE, 40),
            (HostGetNumOfPasses::SIZE, 40),
            (HostEvaluateToGpuValues::SIZE, 72),
            (PmEnable::SIZE, 32),
            (PmSetConfig::SIZE, 64),
            (PmDecodeData::SIZE, 45),
            (PmGetCounterDataSize::SIZE, 56),
            (PmGetCounterDataInfo::SIZE, 56),
            (PmGetSampleInfo::SIZE, 64),
            (PcCountReasons::SIZE, 32),
            (PcReasons::SIZE, 48),
            (PcConfiguration::SIZE, 40),
            (PcGetData::SIZE, 32),
            (RangeEnable::SIZE, 32),
            (RangeSetConfig::SIZE, 90),
            (RangeStop::SIZE, 41),
            (RangeDecodeData::SIZE, 32),
            (RangeGetCounterDataSize::SIZE, 64),
            (RangeGetCounterDataInfo::SIZE, 40),
        ];
        for (at, (ours, theirs)) in sizes.into_iter().enumerate() {
            assert_eq!(ours, theirs, "structure {at}");
        }
    }
}
