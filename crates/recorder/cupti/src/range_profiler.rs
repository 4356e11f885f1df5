//! The range profiler: counts for single kernels in a context of this process. CUPTI runs a kernel again where the
//! metrics need several passes. Order of calls: [`RangeProfiler::enable`], `counter_data`, `configure`, `start`, the
//! kernel, `stop`, `decode`. A range is what has counts of its own, here one kernel; an image is a block of bytes in
//! CUPTI's own format.

use crate::data::{CounterData, Metrics};
use crate::failure::Failure;
use crate::functions::RangeFunctions;
use crate::layouts;
use crate::library::Cupti;
use std::ffi::{c_int, c_void};

/// CUPTI_AutoRange: each kernel is a range.
const AUTO_RANGE: c_int = 1;
/// CUPTI_KernelReplay: CUPTI runs each kernel again, with the memory that it had.
const KERNEL_REPLAY: c_int = 2;

/// A profiler of one context. Profiling ends when this is dropped.
#[derive(Debug)]
pub struct RangeProfiler {
    functions: RangeFunctions,
    /// CUPTI's handle of this profiler.
    object: *mut c_void,
    /// The configuration, which CUPTI goes on using, as it does `data`.
    config: Vec<u8>,
    /// The counts; `None` before they are configured.
    data: Option<CounterData>,
    is_running: bool,
}

// SAFETY: CUPTI's objects are not tied to a thread; `&mut self` and the lack of Sync keep two threads from using one
// at once.
unsafe impl Send for RangeProfiler {}

impl RangeProfiler {
    /// Returns the availability image of a context's device (what the device can count), for [`crate::Host::new`].
    ///
    /// # Errors
    /// CUPTI refuses it.
    ///
    /// # Safety
    /// The context is a live CUDA context, or null for the thread's current one.
    pub unsafe fn availability(cupti: &Cupti, context: *mut c_void) -> Result<Vec<u8>, Failure> {
        // SAFETY: as the caller promises.
        unsafe { cupti.range?.availability.image(context) }
    }

    /// Prepares a context for profiling.
    ///
    /// # Errors
    /// CUPTI refuses it: [`crate::code`].
    ///
    /// # Safety
    /// The context is a CUDA context, or null for the thread's current one, and lives until this value is dropped.
    pub unsafe fn enable(cupti: &Cupti, context: *mut c_void) -> Result<RangeProfiler, Failure> {
        let functions = cupti.range?;
        let mut parameters = layouts::RangeEnable::new();
        parameters.context = context;
        // SAFETY: as the caller promises; CUPTI stores an object.
        unsafe { functions.enable.call(&mut parameters)? };
        Ok(RangeProfiler {
            functions,
            object: parameters.object,
            config: Vec::new(),
            data: None,
            is_running: false,
        })
    }

    /// Creates empty data for a number of ranges.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn counter_data(
        &mut self,
        metrics: &Metrics,
        max_ranges: u32,
    ) -> Result<CounterData, Failure> {
        let mut size = layouts::RangeGetCounterDataSize::new();
        size.object = self.object;
        size.names = metrics.as_ptr();
        size.count = metrics.len();
        size.max_ranges = max_ranges as usize;
        size.max_tree_nodes = max_ranges;
        // SAFETY: the object is CUPTI's, and the names, which are as many as stated, end in a zero byte.
        unsafe { self.functions.data_size.call(&mut size)? };
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.data_initialize.data(self.object, size.size) }
    }

    /// Sets what to profile, by the image of [`crate::Host::config_image`], where the counts go, and the most kernels
    /// in a pass.
    ///
    /// # Errors
    /// Something else uses the counters ([`crate::code::HARDWARE_BUSY`]), or CUPTI refuses it for another reason. The
    /// data is lost then.
    pub fn configure(
        &mut self,
        config: Vec<u8>,
        mut data: CounterData,
        max_kernels: usize,
    ) -> Result<(), Failure> {
        let mut parameters = layouts::RangeSetConfig::new();
        parameters.object = self.object;
        parameters.config_size = config.len();
        parameters.config = config.as_ptr();
        parameters.image_size = data.size();
        parameters.image = data.as_mut_ptr();
        (parameters.range, parameters.replay) = (AUTO_RANGE, KERNEL_REPLAY);
        parameters.max_ranges_per_pass = max_kernels;
        (parameters.nesting_levels, parameters.min_nesting_level) = (1, 1);
        // SAFETY: the object is CUPTI's; config and image have these sizes and are kept as long as the object.
        unsafe { self.functions.set_config.call(&mut parameters)? };
        (self.config, self.data) = (config, Some(data));
        Ok(())
    }

    /// Starts profiling.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn start(&mut self) -> Result<(), Failure> {
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.start.call_with(self.object)? };
        self.is_running = true;
        Ok(())
    }

    /// Ends profiling.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn stop(&mut self) -> Result<(), Failure> {
        self.is_running = false;
        let mut parameters = layouts::RangeStop::new();
        parameters.object = self.object;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.stop.call(&mut parameters) }
    }

    /// Decodes the counts into the data. Returns how many ranges did not fit.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn decode(&mut self) -> Result<usize, Failure> {
        let mut parameters = layouts::RangeDecodeData::new();
        parameters.object = self.object;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.decode.call(&mut parameters)? };
        Ok(parameters.dropped)
    }

    /// Returns the data that was passed to [`Self::configure`].
    pub fn data(&self) -> Option<&CounterData> {
        self.data.as_ref()
    }

    /// Returns how many ranges the data has.
    ///
    /// # Errors
    /// CUPTI does not know it.
    pub fn ranges(&self) -> Result<usize, Failure> {
        let Some(data) = &self.data else {
            return Ok(0);
        };
        let mut parameters = layouts::RangeGetCounterDataInfo::new();
        parameters.image = data.as_ptr();
        parameters.image_size = data.size();
        // SAFETY: the image was initialised by CUPTI.
        unsafe { self.functions.data_info.call(&mut parameters)? };
        Ok(parameters.total)
    }
}

impl Drop for RangeProfiler {
    fn drop(&mut self) {
        if self.is_running {
            // Nothing can be done about a refusal, here and below.
            let _ = self.stop();
        }
        // SAFETY: the object is CUPTI's and is not used again.
        let _ = unsafe { self.functions.disable.call_with(self.object) };
    }
}
