//! PM sampling: reads the counters of a device at a fixed rate, whoever uses the device. Order of calls:
//! [`PmSampling::enable`], `configure`, `counter_data`, `start`, then `decode` again and again, and `stop`. A sample
//! has the counts of one interval; an image is a block of bytes in CUPTI's own format.

use crate::data::{CounterData, Metrics};
use crate::failure::Failure;
use crate::functions::PmFunctions;
use crate::layouts;
use crate::library::Cupti;
use std::ffi::c_void;

/// The settings of counter sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingSettings {
    /// The time between two samples, in nanoseconds of a fixed clock. Turing and GA100 do not support it.
    pub interval_ns: u64,
    /// The size of the buffer in host memory into which the device writes. A full buffer keeps its samples, and
    /// [`Decoded::overflow`] tells that later ones are missing.
    pub hardware_buffer_bytes: usize,
}

/// The outcome of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Whether no further sample fits into the counter data, so that samples which were not decoded yet may be lost.
    pub is_data_full: bool,
    /// Whether the hardware buffer was full.
    pub overflow: bool,
}

/// The numbers of samples in counter data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleCounts {
    /// The samples for which there is room.
    pub total: usize,
    /// The samples that have counts of some units at least.
    pub populated: usize,
    /// The samples that have counts of all units: only these have values.
    pub completed: usize,
}

/// Sampling of one device. It ends when this is dropped.
#[derive(Debug)]
pub struct PmSampling {
    functions: PmFunctions,
    /// CUPTI's handle of this sampling.
    object: *mut c_void,
    /// The configuration, which CUPTI goes on reading.
    config: Vec<u8>,
    is_running: bool,
}

// SAFETY: CUPTI's objects are not tied to a thread; `&mut self` and the lack of Sync keep two threads from using one
// at once.
unsafe impl Send for PmSampling {}

impl PmSampling {
    /// Returns the availability image of a device, for [`crate::Host::new`]. It must be called before sampling
    /// starts.
    ///
    /// # Errors
    /// CUPTI refuses it, or has no sampling ([`crate::code::NOT_SUPPORTED`]).
    pub fn availability(cupti: &Cupti, device_index: usize) -> Result<Vec<u8>, Failure> {
        let index = std::ptr::without_provenance_mut(device_index);
        // SAFETY: this function takes the index of a device in the place of a context.
        unsafe { cupti.pm?.availability.image(index) }
    }

    /// Prepares a device for sampling, by its ordinal in this process.
    ///
    /// # Errors
    /// CUPTI refuses it: [`crate::code`].
    pub fn enable(cupti: &Cupti, device_index: usize) -> Result<PmSampling, Failure> {
        let functions = cupti.pm?;
        let mut parameters = layouts::PmEnable::new();
        parameters.device_index = device_index;
        // SAFETY: CUPTI stores an object.
        unsafe { functions.enable.call(&mut parameters)? };
        Ok(PmSampling {
            functions,
            object: parameters.object,
            config: Vec::new(),
            is_running: false,
        })
    }

    /// Sets what to sample: the image of [`crate::Host::config_image`].
    ///
    /// # Errors
    /// Another process samples the device ([`crate::code::HARDWARE_BUSY`]), or CUPTI refuses it for another reason.
    pub fn configure(
        &mut self,
        config: Vec<u8>,
        settings: &SamplingSettings,
    ) -> Result<(), Failure> {
        let mut parameters = layouts::PmSetConfig::new();
        parameters.object = self.object;
        parameters.config_size = config.len();
        parameters.config = config.as_ptr();
        parameters.hardware_buffer_size = settings.hardware_buffer_bytes;
        parameters.interval = settings.interval_ns;
        // CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
        parameters.trigger = 1;
        // CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST
        parameters.append = 0;
        // SAFETY: the object is CUPTI's; the config has this size and is kept as long as the object.
        unsafe { self.functions.set_config.call(&mut parameters)? };
        self.config = config;
        Ok(())
    }

    /// Creates empty data for a number of samples, after [`Self::configure`].
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn counter_data(
        &mut self,
        metrics: &Metrics,
        max_samples: u32,
    ) -> Result<CounterData, Failure> {
        let mut size = layouts::PmGetCounterDataSize::new();
        size.object = self.object;
        size.names = metrics.as_ptr();
        size.count = metrics.len();
        size.max_samples = max_samples;
        // SAFETY: the object is CUPTI's, and the names, which are as many as stated, end in a zero byte.
        unsafe { self.functions.data_size.call(&mut size)? };
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.data_initialize.data(self.object, size.size) }
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn start(&mut self) -> Result<(), Failure> {
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.start.call_with(self.object)? };
        self.is_running = true;
        Ok(())
    }

    /// Ends sampling; the samples can still be decoded.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn stop(&mut self) -> Result<(), Failure> {
        self.is_running = false;
        // SAFETY: the object is CUPTI's.
        unsafe { self.functions.stop.call_with(self.object) }
    }

    /// Appends the samples that the device has written to the data.
    ///
    /// # Errors
    /// CUPTI refuses it; [`crate::code::OUT_OF_MEMORY`] where samples have lost step, which ends only with a stop and
    /// a start.
    pub fn decode(&mut self, data: &mut CounterData) -> Result<Decoded, Failure> {
        let mut parameters = layouts::PmDecodeData::new();
        parameters.object = self.object;
        parameters.image = data.as_mut_ptr();
        parameters.image_size = data.size();
        // SAFETY: the object is CUPTI's, and the image was initialised by it.
        unsafe { self.functions.decode.call(&mut parameters)? };
        Ok(Decoded {
            // CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
            is_data_full: parameters.stop_reason == 1,
            overflow: parameters.overflow != 0,
        })
    }

    /// Returns how many samples the data has.
    ///
    /// # Errors
    /// CUPTI does not know it.
    pub fn counts(&self, data: &CounterData) -> Result<SampleCounts, Failure> {
        let mut parameters = layouts::PmGetCounterDataInfo::new();
        parameters.image = data.as_ptr();
        parameters.image_size = data.size();
        // SAFETY: the image was initialised by CUPTI.
        unsafe { self.functions.data_info.call(&mut parameters)? };
        Ok(SampleCounts {
            total: parameters.total,
            populated: parameters.populated,
            completed: parameters.completed,
        })
    }

    /// Returns start and end of a completed sample, on the clock of [`Cupti::set_clock`].
    ///
    /// # Errors
    /// There is no such sample.
    pub fn times(&self, data: &CounterData, index: usize) -> Result<(u64, u64), Failure> {
        let mut parameters = layouts::PmGetSampleInfo::new();
        parameters.object = self.object;
        parameters.image = data.as_ptr();
        parameters.image_size = data.size();
        parameters.index = index;
        // SAFETY: the object is CUPTI's, and the image was initialised by it.
        unsafe { self.functions.sample_info.call(&mut parameters)? };
        Ok((parameters.start, parameters.end))
    }
}

impl Drop for PmSampling {
    fn drop(&mut self) {
        if self.is_running {
            // Nothing can be done about a refusal, here and below.
            let _ = self.stop();
        }
        // SAFETY: the object is CUPTI's and is not used again.
        let _ = unsafe { self.functions.disable.call_with(self.object) };
    }
}
