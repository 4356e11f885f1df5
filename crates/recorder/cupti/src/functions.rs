//! The functions of CUPTI that are used, in groups that a library has or lacks as a whole.

use crate::failure::Failure;
use crate::layouts;
use crate::shared_library::SharedLibrary;
use std::ffi::c_int;

/// A function that takes one structure of parameters.
pub struct Function<P> {
    symbol: &'static str,
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
    /// # Safety
    /// The parameters are those of the function's documentation: pointers are null where that is allowed, or point to memory of the
    /// stated sizes.
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
        initialize "cuptiProfilerInitialize" Initialize,
        deinitialize "cuptiProfilerDeInitialize" DeInitialize,
        chip_name "cuptiDeviceGetChipName" DeviceGetChipName,
    }
    /// Planning and evaluation of metrics, which needs no device.
    HostFunctions {
        initialize "cuptiProfilerHostInitialize" HostInitialize,
        deinitialize "cuptiProfilerHostDeinitialize" HostDeinitialize,
        supported_chips "cuptiProfilerHostGetSupportedChips" HostGetSupportedChips,
        add_metrics "cuptiProfilerHostConfigAddMetrics" HostConfigAddMetrics,
        config_image_size "cuptiProfilerHostGetConfigImageSize" HostGetConfigImageSize,
        config_image "cuptiProfilerHostGetConfigImage" HostGetConfigImage,
        passes "cuptiProfilerHostGetNumOfPasses" HostGetNumOfPasses,
        evaluate "cuptiProfilerHostEvaluateToGpuValues" HostEvaluateToGpuValues,
    }
    /// Sampling of counters.
    PmFunctions {
        availability "cuptiPmSamplingGetCounterAvailability" PmGetCounterAvailability,
        enable "cuptiPmSamplingEnable" PmEnable,
        disable "cuptiPmSamplingDisable" PmDisable,
        set_config "cuptiPmSamplingSetConfig" PmSetConfig,
        start "cuptiPmSamplingStart" PmStart,
        stop "cuptiPmSamplingStop" PmStop,
        decode "cuptiPmSamplingDecodeData" PmDecodeData,
        data_size "cuptiPmSamplingGetCounterDataSize" PmGetCounterDataSize,
        data_initialize "cuptiPmSamplingCounterDataImageInitialize" PmCounterDataImageInitialize,
        data_info "cuptiPmSamplingGetCounterDataInfo" PmGetCounterDataInfo,
        sample_info "cuptiPmSamplingCounterDataGetSampleInfo" PmGetSampleInfo,
    }
    /// Sampling of instructions.
    PcFunctions {
        enable "cuptiPCSamplingEnable" PcEnable,
        disable "cuptiPCSamplingDisable" PcDisable,
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
        disable "cuptiRangeProfilerDisable" RangeDisable,
        set_config "cuptiRangeProfilerSetConfig" RangeSetConfig,
        start "cuptiRangeProfilerStart" RangeStart,
        stop "cuptiRangeProfilerStop" RangeStop,
        push "cuptiRangeProfilerPushRange" RangePush,
        pop "cuptiRangeProfilerPopRange" RangePop,
        decode "cuptiRangeProfilerDecodeData" RangeDecodeData,
        data_size "cuptiRangeProfilerGetCounterDataSize" RangeGetCounterDataSize,
        data_initialize "cuptiRangeProfilerCounterDataImageInitialize" RangeCounterDataImageInitialize,
        data_info "cuptiRangeProfilerGetCounterDataInfo" RangeGetCounterDataInfo,
        range_info "cuptiRangeProfilerCounterDataGetRangeInfo" RangeGetRangeInfo,
    }
}
