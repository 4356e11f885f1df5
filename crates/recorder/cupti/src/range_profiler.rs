//! The range profiler: counts for single kernels, or for ranges of work, in a context of this process. Work is run again where the
//! metrics need several passes.

use crate::data::{CounterData, Metrics};
use crate::failure::Failure;
use crate::functions::RangeFunctions;
use crate::layouts;
use crate::library::Cupti;
use std::ffi::{CStr, CString, c_int, c_void};

/// The extent of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// Each kernel is a range.
    Auto,
    /// A range lies between [`RangeProfiler::push`] and [`RangeProfiler::pop`].
    User,
}

/// Who runs the work again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// The user runs the whole program again.
    Application,
    /// CUPTI runs each kernel again, with the memory that it had.
    Kernel,
    /// The user runs the ranges again.
    User,
}

/// The settings of a range profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeSettings {
    /// The extent of a range.
    pub range: Range,
    /// Who runs it again.
    pub replay: Replay,
    /// The most ranges in a pass.
    pub max_ranges_per_pass: usize,
    /// The deepest nesting of ranges; 1 for [`Range::Auto`].
    pub nesting_levels: u16,
    /// The depth from which on ranges are profiled; 1 for [`Range::Auto`].
    pub min_nesting_level: u16,
    /// The pass to go on with, from [`Stopped`]; 0 at first.
    pub pass_index: usize,
    /// The depth to go on with, from [`Stopped`]; 0 at first.
    pub target_nesting_level: u16,
}

impl RangeSettings {
    /// Profiles each kernel by itself, and has CUPTI run it again.
    pub fn each_kernel(max_kernels: usize) -> RangeSettings {
        RangeSettings {
            range: Range::Auto,
            replay: Replay::Kernel,
            max_ranges_per_pass: max_kernels,
            nesting_levels: 1,
            min_nesting_level: 1,
            pass_index: 0,
            target_nesting_level: 0,
        }
    }
}

/// The position that a profile has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// The pass after the last one.
    pub pass_index: usize,
    /// The nesting depth of that pass.
    pub target_nesting_level: usize,
    /// Nothing has to be run again.
    pub all_passes_submitted: bool,
}

/// A profiler of one context. Profiling ends when this is dropped.
#[derive(Debug)]
pub struct RangeProfiler {
    functions: RangeFunctions,
    object: *mut c_void,
    /// CUPTI goes on using both.
    config: Vec<u8>,
    data: Option<CounterData>,
    is_running: bool,
}

// SAFETY: CUPTI's objects are not tied to a thread; `&mut self` and the lack of Sync keep two threads from using one at once.
unsafe impl Send for RangeProfiler {}

impl RangeProfiler {
    /// Returns the availability image of a context's device, for [`crate::Host::new`].
    ///
    /// # Errors
    /// CUPTI refuses it.
    ///
    /// # Safety
    /// The context is a live CUDA context, or null for the thread's current one.
    pub unsafe fn availability(cupti: &Cupti, context: *mut c_void) -> Result<Vec<u8>, Failure> {
        let functions = cupti.range?;
        let mut parameters = layouts::GetCounterAvailability::new();
        parameters.context = context;
        // SAFETY: as the caller promises; without an image CUPTI stores the size.
        unsafe { functions.availability.call(&mut parameters)? };
        let mut image = vec![0; parameters.size];
        parameters.image = image.as_mut_ptr();
        // SAFETY: as above; the image has the size that CUPTI asked for.
        unsafe { functions.availability.call(&mut parameters)? };
        image.truncate(parameters.size);
        Ok(image)
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
        let mut data = CounterData::with_size(size.size);
        let mut parameters = layouts::RangeCounterDataImageInitialize::new();
        parameters.object = self.object;
        parameters.size = data.size();
        parameters.image = data.as_mut_ptr();
        // SAFETY: the object is CUPTI's, and the image has the size that it asked for.
        unsafe { self.functions.data_initialize.call(&mut parameters)? };
        Ok(data)
    }

    /// Sets what to profile, by the image of [`crate::Host::config_image`], and where the counts go.
    ///
    /// # Errors
    /// Something else uses the counters ([`crate::code::HARDWARE_BUSY`]), or CUPTI refuses it for another reason. The data is lost then.
    pub fn configure(
        &mut self,
        config: Vec<u8>,
        mut data: CounterData,
        settings: &RangeSettings,
    ) -> Result<(), Failure> {
        let mut parameters = layouts::RangeSetConfig::new();
        parameters.object = self.object;
        parameters.config_size = config.len();
        parameters.config = config.as_ptr();
        parameters.image_size = data.size();
        parameters.image = data.as_mut_ptr();
        parameters.range = match settings.range {
            Range::Auto => 1,
            Range::User => 2,
        } as c_int;
        parameters.replay = match settings.replay {
            Replay::Application => 1,
            Replay::Kernel => 2,
            Replay::User => 3,
        } as c_int;
        parameters.max_ranges_per_pass = settings.max_ranges_per_pass;
        parameters.nesting_levels = settings.nesting_levels;
        parameters.min_nesting_level = settings.min_nesting_level;
        parameters.pass_index = settings.pass_index;
        parameters.target_nesting_level = settings.target_nesting_level;
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
        let mut parameters = layouts::RangeStart::new();
        parameters.object = self.object;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.start.call(&mut parameters)? };
        self.is_running = true;
        Ok(())
    }

    /// Ends profiling, or a pass of it.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn stop(&mut self) -> Result<Stopped, Failure> {
        self.is_running = false;
        let mut parameters = layouts::RangeStop::new();
        parameters.object = self.object;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.stop.call(&mut parameters)? };
        Ok(Stopped {
            pass_index: parameters.pass_index,
            target_nesting_level: parameters.target_nesting_level,
            all_passes_submitted: parameters.is_all_pass_submitted != 0,
        })
    }

    /// Begins a range of [`Range::User`].
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn push(&mut self, name: &CStr) -> Result<(), Failure> {
        let mut parameters = layouts::RangePush::new();
        parameters.object = self.object;
        parameters.name = name.as_ptr();
        // SAFETY: the object is CUPTI's, and the name ends in a zero byte.
        unsafe { self.functions.push.call(&mut parameters) }
    }

    /// Ends the range that began last.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn pop(&mut self) -> Result<(), Failure> {
        let mut parameters = layouts::RangePop::new();
        parameters.object = self.object;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.pop.call(&mut parameters) }
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

    /// Returns the name of a range; for [`Range::Auto`] it is a number.
    ///
    /// # Errors
    /// There is no such range.
    pub fn name(&self, index: usize) -> Result<CString, Failure> {
        let Some(data) = &self.data else {
            return Ok(CString::default());
        };
        let mut parameters = layouts::RangeGetRangeInfo::new();
        parameters.image = data.as_ptr();
        parameters.image_size = data.size();
        parameters.index = index;
        parameters.delimiter = c"/".as_ptr();
        // SAFETY: the image was initialised by CUPTI, which stores a text of its own.
        unsafe {
            self.functions.range_info.call(&mut parameters)?;
            if parameters.name.is_null() {
                return Ok(CString::default());
            }
            Ok(CStr::from_ptr(parameters.name).to_owned())
        }
    }
}

impl Drop for RangeProfiler {
    fn drop(&mut self) {
        if self.is_running {
            // Nothing can be done about a refusal, here and below.
            let _ = self.stop();
        }
        let mut parameters = layouts::RangeDisable::new();
        parameters.object = self.object;
        // SAFETY: the object is CUPTI's and is not used again.
        let _ = unsafe { self.functions.disable.call(&mut parameters) };
    }
}
