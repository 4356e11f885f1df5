//! Counter sample buffers of Metal, into which the GPU writes its timestamps.

use crate::metal::{Clocks, CounterError, Counters, Points, SAMPLES_PER_BUFFER};
use objc2::available;
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::{NSRange, NSString};
use objc2_metal::{
    MTLCounterSampleBuffer, MTLCounterSampleBufferDescriptor, MTLCounterSamplingPoint,
    MTLCounterSet, MTLDevice, MTLStorageMode,
};
use std::ptr::NonNull;

/// A buffer of counter samples.
#[derive(Clone)]
pub struct SampleBuffer(Retained<ProtocolObject<dyn MTLCounterSampleBuffer>>);

// SAFETY: the buffer is only retained, released, named in encoders and resolved. Retaining and releasing is atomic; it
// is resolved by the thread that handles the end of its command buffer, after all use by encoders.
unsafe impl Send for SampleBuffer {}
// SAFETY: as above; no method of it is called by two threads at once.
unsafe impl Sync for SampleBuffer {}

impl SampleBuffer {
    pub fn raw(&self) -> &ProtocolObject<dyn MTLCounterSampleBuffer> {
        &self.0
    }
}

/// The timestamp counters of a device.
pub struct AppleCounters {
    device: Retained<ProtocolObject<dyn MTLDevice>>,
    /// The counter set of timestamps; `None` if the device has none.
    set: Option<Retained<ProtocolObject<dyn MTLCounterSet>>>,
}

impl AppleCounters {
    pub fn new(device: Retained<ProtocolObject<dyn MTLDevice>>) -> AppleCounters {
        // `MTLCommonCounterSetTimestamp` has this text; some drivers capitalise it.
        let set = autoreleasepool(|_| {
            let mut all = device.counterSets()?.to_vec().into_iter();
            all.find(|set| set.name().to_string().eq_ignore_ascii_case("timestamp"))
        });
        AppleCounters { device, set }
    }

    /// Returns where the device can sample; nowhere on systems before those that can be asked.
    pub fn points(&self) -> Points {
        // Before macOS 11, devices do not have this method, and calling it would end the process.
        if !available!(macos = 11.0, ios = 14.0, tvos = 14.0, visionos = 1.0) {
            return Points::default();
        }
        let at = |point| self.device.supportsCounterSampling(point);
        Points {
            timestamps: self.set.is_some(),
            dispatch: at(MTLCounterSamplingPoint::AtDispatchBoundary),
            stage: at(MTLCounterSamplingPoint::AtStageBoundary),
            ..Points::default()
        }
    }
}

impl Counters for AppleCounters {
    type Buffer = SampleBuffer;

    fn allocate(&self) -> Result<SampleBuffer, CounterError> {
        let set = self.set.as_deref().ok_or(CounterError::NoTimestamps)?;
        autoreleasepool(|_| {
            let descriptor = MTLCounterSampleBufferDescriptor::new();
            descriptor.setCounterSet(Some(set));
            descriptor.setLabel(&NSString::from_str("gapscope samples"));
            descriptor.setStorageMode(MTLStorageMode::Shared);
            // SAFETY: the count is within what Metal allows for 8-byte samples (32 768 bytes).
            unsafe { descriptor.setSampleCount(SAMPLES_PER_BUFFER as usize) };
            self.device
                .newCounterSampleBufferWithDescriptor_error(&descriptor)
                .map(SampleBuffer)
                .map_err(|error| CounterError::Device(error.localizedDescription().to_string()))
        })
    }

    fn resolve(&self, buffer: &SampleBuffer, count: u32) -> Result<Vec<u64>, CounterError> {
        let range = NSRange::new(0, count.min(SAMPLES_PER_BUFFER) as usize);
        let bytes = autoreleasepool(|_| {
            // SAFETY: the range lies within the samples that the buffer was made with.
            let data = unsafe { buffer.0.resolveCounterRange(range) };
            data.map(|data| data.to_vec())
        });
        let bytes = bytes.ok_or(CounterError::NoData)?;
        let (samples, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(CounterError::PartialSamples(bytes.len()));
        }
        Ok(samples
            .iter()
            .map(|sample| u64::from_ne_bytes(*sample))
            .collect())
    }

    fn clocks(&self) -> Clocks {
        let (mut cpu_ns, mut gpu_ticks) = (0, 0);
        // SAFETY: both pointers are of locals that outlive the call.
        unsafe {
            self.device.sampleTimestamps_gpuTimestamp(
                NonNull::from(&mut cpu_ns),
                NonNull::from(&mut gpu_ticks),
            );
        }
        Clocks { cpu_ns, gpu_ticks }
    }
}
