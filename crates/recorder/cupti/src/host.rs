//! The profiler host API plans metrics for a chip and computes them from counts. It needs neither a GPU nor a driver.
//! Order of calls: [`Host::new`], [`Host::add`], [`Host::config_image`] for the profiler, and [`Host::evaluate`] for
//! its counts.

use crate::data::{CounterData, Metrics};
use crate::failure::Failure;
use crate::functions::HostFunctions;
use crate::layouts;
use crate::library::Cupti;
use std::ffi::{CStr, CString, c_int, c_void};

/// The profiler that metrics are planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfilerKind {
    /// The range profiler, [`crate::RangeProfiler`].
    Range,
    /// The counter sampler, [`crate::PmSampling`].
    Sampling,
}

/// A profiler host object, for one thread at a time.
#[derive(Debug)]
pub struct Host {
    functions: HostFunctions,
    /// CUPTI's handle of this object.
    object: *mut c_void,
    // CUPTI may read them again.
    _chip: CString,
    _availability: Option<Box<[u8]>>,
}

// SAFETY: CUPTI's host objects are not tied to a thread; `&mut self` and the lack of Sync keep two threads from using
// one at once.
unsafe impl Send for Host {}

impl Host {
    /// Creates an object for a chip. `availability` is the device's availability image; without it, metrics may be
    /// accepted that the device lacks.
    ///
    /// # Errors
    /// libnvperf_host.so was not found ([`crate::code::NOT_INITIALIZED`]), or CUPTI does not know the chip.
    pub fn new(
        cupti: &Cupti,
        kind: ProfilerKind,
        chip: &CStr,
        availability: Option<&[u8]>,
    ) -> Result<Host, Failure> {
        let chip = chip.to_owned();
        let availability: Option<Box<[u8]>> = availability.map(Into::into);
        let mut parameters = layouts::HostInitialize::new();
        parameters.profiler_type = match kind {
            ProfilerKind::Range => 0,
            ProfilerKind::Sampling => 1,
        } as c_int;
        parameters.chip_name = chip.as_ptr();
        parameters.availability = (availability.as_ref()).map_or(std::ptr::null(), |i| i.as_ptr());
        // SAFETY: the name ends in a zero byte, and the image is CUPTI's own.
        unsafe { cupti.host.initialize.call(&mut parameters)? };
        Ok(Host {
            functions: cupti.host,
            object: parameters.host,
            _chip: chip,
            _availability: availability,
        })
    }

    /// Returns the chips that a libcupti knows.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn chips(cupti: &Cupti) -> Result<Vec<CString>, Failure> {
        let mut parameters = layouts::HostGetSupportedChips::new();
        // SAFETY: CUPTI stores a list of its own, of texts of its own.
        unsafe {
            cupti.host.supported_chips.call(&mut parameters)?;
            if parameters.names.is_null() {
                return Ok(Vec::new());
            }
            let names = std::slice::from_raw_parts(parameters.names, parameters.count);
            let names = names.iter().filter(|name| !name.is_null());
            Ok(names.map(|name| CStr::from_ptr(*name).to_owned()).collect())
        }
    }

    /// Adds metrics to the plan.
    ///
    /// # Errors
    /// The chip or the device lacks a metric: [`crate::code::UNKNOWN`] among others. The object is unusable then.
    pub fn add(&mut self, metrics: &Metrics) -> Result<(), Failure> {
        let mut parameters = layouts::HostConfigAddMetrics::new();
        parameters.host = self.object;
        parameters.names = metrics.as_ptr();
        parameters.count = metrics.len();
        // SAFETY: the object is CUPTI's, and the names, which are as many as stated, end in a zero byte.
        unsafe { self.functions.add_metrics.call(&mut parameters) }
    }

    /// Returns the configuration with which a device counts the metrics that were added.
    ///
    /// # Errors
    /// CUPTI cannot plan them.
    pub fn config_image(&mut self) -> Result<Vec<u8>, Failure> {
        let mut size = layouts::HostGetConfigImageSize::new();
        size.host = self.object;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.config_image_size.call(&mut size)? };
        let mut image = vec![0; size.size];
        let mut parameters = layouts::HostGetConfigImage::new();
        parameters.host = self.object;
        parameters.size = image.len();
        parameters.image = image.as_mut_ptr();
        // SAFETY: the object is CUPTI's, and the image is of the size that it asked for.
        unsafe { self.functions.config_image.call(&mut parameters)? };
        Ok(image)
    }

    /// Returns how often the work must run until everything in a [`Self::config_image`] is counted. Sampling takes
    /// one pass only.
    ///
    /// # Errors
    /// CUPTI does not know the image.
    pub fn passes(&self, config_image: &[u8]) -> Result<usize, Failure> {
        let mut parameters = layouts::HostGetNumOfPasses::new();
        parameters.size = config_image.len();
        parameters.image = config_image.as_ptr().cast_mut();
        // SAFETY: the image is of this size, and CUPTI only reads it.
        unsafe { self.functions.passes.call(&mut parameters)? };
        Ok(parameters.passes)
    }

    /// Computes the metrics from the counts of a range or sample, `index` in the data; `values` gets one for each
    /// name.
    ///
    /// # Errors
    /// The data has no such range, or is not of these metrics; or `values` is not as long as `metrics`.
    pub fn evaluate(
        &mut self,
        data: &CounterData,
        index: usize,
        metrics: &Metrics,
        values: &mut [f64],
    ) -> Result<(), Failure> {
        if values.len() != metrics.len() {
            return Err(Failure {
                function: "cuptiProfilerHostEvaluateToGpuValues",
                code: crate::code::INVALID_PARAMETER,
            });
        }
        let mut parameters = layouts::HostEvaluateToGpuValues::new();
        parameters.host = self.object;
        parameters.image = data.as_ptr();
        parameters.image_size = data.size();
        parameters.index = index;
        parameters.names = metrics.as_ptr();
        parameters.count = metrics.len();
        parameters.values = values.as_mut_ptr();
        // SAFETY: the object is CUPTI's, the image was initialised by it, and there is room for a value for each
        // name.
        unsafe { self.functions.evaluate.call(&mut parameters) }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the object is CUPTI's and is not used again. Nothing can be done about a refusal.
        let _ = unsafe { self.functions.deinitialize.call_with(self.object) };
    }
}
