//! Looks up the functions of CUPTI that are used, in groups that a library has or lacks as a whole. An image is a
//! block of bytes in CUPTI's own format: of a device's counters, of a configuration, or of counts.

use crate::data::CounterData;
use crate::failure::Failure;
use crate::layouts;
use crate::shared_library::SharedLibrary;
use std::ffi::{c_int, c_void};

/// A function that takes one structure of parameters.
pub struct Function<P> {
    /// The name in the library.
    symbol: &'static str,
    /// The address.
    at: unsafe extern "C" fn(*mut P) -> c_int,
}

impl<P> Clone for Function<P> {
    fn clone(&self) -> Function<P> {
        *self
    }
}

impl<P> Copy for Function<P> {}

impl<P> std::fmt::Debug for Function<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.symbol)
    }
}

impl<P> Function<P> {
    /// Calls the function; a result other than 0 is a failure.
    ///
    /// # Safety
    /// The parameters are those of the function's documentation: pointers are null where that is allowed, or point to
    /// memory of the stated sizes.
    pub unsafe fn call(&self, parameters: &mut P) -> Result<(), Failure> {
        // SAFETY: as the caller promises.
        match unsafe { (self.at)(parameters) } {
            0 => Ok(()),
            code => Err(Failure {
                function: self.symbol,
                code,
            }),
        }
    }
}

impl Function<layouts::Object> {
    /// Calls a function that takes nothing but an object, or a context.
    ///
    /// # Safety
    /// The object is CUPTI's, or the context one of CUDA's that lives.
    pub unsafe fn call_with(&self, object: *mut c_void) -> Result<(), Failure> {
        let mut parameters = layouts::Object::new();
        parameters.object = object;
        // SAFETY: as the caller promises.
        unsafe { self.call(&mut parameters) }
    }
}

impl Function<layouts::GetCounterAvailability> {
    /// Returns the image of the counters that a device has, by its context or its index.
    ///
    /// # Safety
    /// The device is named as the function asks for it: by a context that lives, or by an index.
    pub unsafe fn image(&self, device: *mut c_void) -> Result<Vec<u8>, Failure> {
        let mut parameters = layouts::GetCounterAvailability::new();
        parameters.device = device;
        // SAFETY: as the caller promises; without an image CUPTI stores the size.
        unsafe { self.call(&mut parameters)? };
        let mut image = vec![0; parameters.size];
        parameters.image = image.as_mut_ptr();
        // SAFETY: as the caller promises; the image has the size that CUPTI asked for.
        unsafe { self.call(&mut parameters)? };
        image.truncate(parameters.size);
        Ok(image)
    }
}

impl Function<layouts::CounterDataImageInitialize> {
    /// Returns empty counter data of a size that CUPTI asked for.
    ///
    /// # Safety
    /// The object is CUPTI's.
    pub unsafe fn data(&self, object: *mut c_void, size: usize) -> Result<CounterData, Failure> {
        let mut data = CounterData::with_size(size);
        let mut parameters = layouts::CounterDataImageInitialize::new();
        parameters.object = object;
        parameters.size = data.size();
        parameters.image = data.as_mut_ptr();
        // SAFETY: as the caller promises; the image has the size that CUPTI asked for.
        unsafe { self.call(&mut parameters)? };
        Ok(data)
    }
}

/// Declares groups: each line has the field's name, the symbol in the library, and the structure of parameters.
macro_rules! functions {
    ($($(#[$doc:meta])* $group:ident { $($name:ident $symbol:literal $parameters:ident,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $group {
                $(pub $name: Function<layouts::$parameters>,)+
            }

            impl $group {
                /// Looks up all functions of the group; an error is the name of a missing one.
                ///
                /// # Safety
                /// The library is a libcupti, or lacks these names.
                pub unsafe fn load(library: SharedLibrary) -> Result<$group, &'static str> {
                    $(
                        // SAFETY: as the caller promises; all these functions have this type.
                        let at = unsafe { library.function($symbol) };
                        let $name = Function::<layouts::$parameters> {
                            symbol: $symbol,
                            at: at.ok_or($symbol)?,
                        };
                    )+
                    Ok($group { $($name,)+ })
                }
            }
        )+
    };
}

functions! {
    /// Functions that all profiling needs.
    Profiler {
        initialize "cuptiProfilerInitialize" Nothing,
        deinitialize "cuptiProfilerDeInitialize" Nothing,
        chip_name "cuptiDeviceGetChipName" DeviceGetChipName,
    }
    /// Planning and evaluation of metrics, which needs no device.
    HostFunctions {
        initialize "cuptiProfilerHostInitialize" HostInitialize,
        deinitialize "cuptiProfilerHostDeinitialize" Object,
        supported_chips "cuptiProfilerHostGetSupportedChips" HostGetSupportedChips,
        add_metrics "cuptiProfilerHostConfigAddMetrics" HostConfigAddMetrics,
        config_image_size "cuptiProfilerHostGetConfigImageSize" HostGetConfigImageSize,
        config_image "cuptiProfilerHostGetConfigImage" HostGetConfigImage,
        passes "cuptiProfilerHostGetNumOfPasses" HostGetNumOfPasses,
        evaluate "cuptiProfilerHostEvaluateToGpuValues" HostEvaluateToGpuValues,
    }
    /// Sampling of counters.
    PmFunctions {
        availability "cuptiPmSamplingGetCounterAvailability" GetCounterAvailability,
        enable "cuptiPmSamplingEnable" PmEnable,
        disable "cuptiPmSamplingDisable" Object,
        set_config "cuptiPmSamplingSetConfig" PmSetConfig,
        start "cuptiPmSamplingStart" Object,
        stop "cuptiPmSamplingStop" Object,
        decode "cuptiPmSamplingDecodeData" PmDecodeData,
        data_size "cuptiPmSamplingGetCounterDataSize" PmGetCounterDataSize,
        data_initialize "cuptiPmSamplingCounterDataImageInitialize" CounterDataImageInitialize,
        data_info "cuptiPmSamplingGetCounterDataInfo" PmGetCounterDataInfo,
        sample_info "cuptiPmSamplingCounterDataGetSampleInfo" PmGetSampleInfo,
    }
    /// Sampling of instructions.
    PcFunctions {
        enable "cuptiPCSamplingEnable" Object,
        disable "cuptiPCSamplingDisable" Object,
        count_reasons "cuptiPCSamplingGetNumStallReasons" PcCountReasons,
        reasons "cuptiPCSamplingGetStallReasons" PcReasons,
        configure "cuptiPCSamplingSetConfigurationAttribute" PcConfiguration,
        configuration "cuptiPCSamplingGetConfigurationAttribute" PcConfiguration,
        data "cuptiPCSamplingGetData" PcGetData,
    }
    /// Checksums and source lines of cubins.
    SourceFunctions {
        cubin_crc "cuptiGetCubinCrc" CubinCrc,
        line "cuptiGetSassToSourceCorrelation" SassToSource,
    }
    /// Profiling of ranges.
    RangeFunctions {
        availability "cuptiProfilerGetCounterAvailability" GetCounterAvailability,
        enable "cuptiRangeProfilerEnable" RangeEnable,
        disable "cuptiRangeProfilerDisable" Object,
        set_config "cuptiRangeProfilerSetConfig" RangeSetConfig,
        start "cuptiRangeProfilerStart" Object,
        stop "cuptiRangeProfilerStop" RangeStop,
        decode "cuptiRangeProfilerDecodeData" RangeDecodeData,
        data_size "cuptiRangeProfilerGetCounterDataSize" RangeGetCounterDataSize,
        data_initialize "cuptiRangeProfilerCounterDataImageInitialize" CounterDataImageInitialize,
        data_info "cuptiRangeProfilerGetCounterDataInfo" RangeGetCounterDataInfo,
    }
}
