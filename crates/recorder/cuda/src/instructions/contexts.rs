//! Samples the instructions of contexts (a program's state on one GPU): takes the samples from CUPTI and writes them.

use super::samples::{FunctionFilter, SampleBatches};
use super::sentences::{SamplingError, note_end};
use crate::driver;
use crate::recorder::Recorder;
use crate::window;
use gapscope_cupti::{Failure, PcLibrary, PcSampling, SamplingPace, TakenSamples};
use gapscope_spool::event::{CudaEvent, LossKind};
use gapscope_spool::{ids, monotonic_ns};
use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::MutexGuard;

/// The number of multiprocessors and their clock in kHz that are assumed of a GPU that does not tell them: rather too
/// few samples than more than CUPTI can take.
const LARGE_GPU: (u64, u64) = (160, 2_000_000);

/// The sampled contexts.
pub struct SampledContexts {
    sampled: Vec<SampledContext>,
    filter: FunctionFilter,
}

/// A sampled context.
pub struct SampledContext {
    /// The driver's handle of the context.
    context: usize,
    device: ids::Device,
    sampling: PcSampling,
    /// The time at which samples were taken last.
    taken_ns: i64,
}

impl SampledContext {
    /// Starts to sample a context.
    ///
    /// # Errors
    /// CUPTI refuses it.
    ///
    /// # Safety
    /// The context lives until it is taken out of [`SampledContexts`].
    pub unsafe fn start(
        library: &PcLibrary,
        context: *mut c_void,
    ) -> Result<SampledContext, SamplingError> {
        // SAFETY: as the caller promises.
        unsafe {
            let device = library.device(context);
            let device = device.ok_or(SamplingError::NoDevice)?;
            Ok(SampledContext {
                context: context as usize,
                device: driver::device_id(device),
                sampling: PcSampling::start(library, context, pace(device))?,
                taken_ns: monotonic_ns(),
            })
        }
    }

    /// Returns how the context is sampled.
    pub fn definition(&self) -> CudaEvent<'_> {
        let reasons = self.sampling.counted_reasons();
        CudaEvent::InstructionSampling {
            device: self.device,
            period_cycles: self.sampling.period_cycles().unwrap_or(0),
            reasons: reasons
                .map(|(number, name)| (number, Cow::Borrowed(name)))
                .collect(),
        }
    }

    /// Ends sampling without a result.
    pub fn give_up(self) {
        // A refusal does not matter, since nobody uses the samples.
        let _ = self.sampling.stop(|_| {});
    }

    /// Returns whether recording was on all the time since samples were taken last; samples of a part of it are
    /// useless.
    fn is_recorded(&mut self) -> bool {
        let now = monotonic_ns();
        let since = std::mem::replace(&mut self.taken_ns, now);
        window::contains(since) && window::contains(now)
    }

    /// Writes the samples that CUPTI has, and counts those that were lost.
    fn take(&mut self, recorder: &Recorder, filter: &mut FunctionFilter) -> Result<(), Failure> {
        let is_recorded = self.is_recorded();
        let mut batches = SampleBatches::new(recorder, self.device, filter, is_recorded);
        let taken = self.sampling.take(|pc| batches.add(&pc));
        batches.write();
        taken.map(|taken| lose(recorder, &taken, is_recorded))
    }

    /// Ends sampling and writes the last samples.
    fn end(mut self, recorder: &Recorder, filter: &mut FunctionFilter) -> Result<(), Failure> {
        let is_recorded = self.is_recorded();
        let mut batches = SampleBatches::new(recorder, self.device, filter, is_recorded);
        let taken = self.sampling.stop(|pc| batches.add(&pc));
        batches.write();
        taken.map(|taken| lose(recorder, &taken, is_recorded))
    }
}

impl SampledContexts {
    pub fn new(filter: FunctionFilter) -> SampledContexts {
        SampledContexts {
            sampled: Vec::new(),
            filter,
        }
    }

    pub fn add(&mut self, sampled: SampledContext) {
        self.sampled.push(sampled);
    }

    /// Writes the samples that there are. A context that CUPTI refuses is no longer sampled.
    pub fn take(&mut self, recorder: &Recorder) {
        let SampledContexts { sampled, filter } = self;
        for mut context in std::mem::take(sampled) {
            match context.take(recorder, filter) {
                Ok(()) => sampled.push(context),
                Err(failure) => {
                    note_end(recorder, SamplingError::Refused(failure));
                    context.give_up();
                }
            }
        }
    }

    /// Ends the sampling of all contexts.
    pub fn finish(mut self, recorder: &Recorder) {
        for context in self.sampled {
            if let Err(failure) = context.end(recorder, &mut self.filter) {
                note_end(recorder, SamplingError::Refused(failure));
            }
        }
    }
}

/// Ends the sampling of a context that ends. CUPTI's call for that may call back, so that the lock is released
/// before.
pub fn end(
    recorder: &Recorder,
    mut contexts: MutexGuard<'_, Option<SampledContexts>>,
    context: *mut c_void,
) {
    let Some(all) = contexts.as_mut() else { return };
    let is_it = |sampled: &SampledContext| sampled.context == context as usize;
    let Some(place) = all.sampled.iter().position(is_it) else {
        return;
    };
    let sampled = all.sampled.swap_remove(place);
    let mut filter = all.filter.clone();
    drop(contexts);
    if let Err(failure) = sampled.end(recorder, &mut filter) {
        note_end(recorder, SamplingError::Refused(failure));
    }
}

/// Returns how often a GPU is sampled, by its size and clock.
fn pace(device: u32) -> SamplingPace {
    let known = |attribute, otherwise| driver::attribute(device, attribute).unwrap_or(otherwise);
    let multiprocessors = known(driver::MULTIPROCESSORS, LARGE_GPU.0);
    SamplingPace::for_device(
        multiprocessors,
        1000 * known(driver::CLOCK_KHZ, LARGE_GPU.1),
    )
}

/// Counts the samples that were lost, if they would have been recorded.
fn lose(recorder: &Recorder, taken: &TakenSamples, is_recorded: bool) {
    if !is_recorded {
        return;
    }
    let lose = |kind, count, reason| {
        if count > 0 {
            recorder.loss(kind, count, reason);
        }
    };
    lose(
        LossKind::InstructionSamples,
        taken.dropped_samples,
        "the hardware had no room for them",
    );
    lose(
        LossKind::InstructionSamples,
        taken.other_samples,
        "of code that is not the program's CUPTI names no instructions",
    );
    lose(
        LossKind::InstructionSampleBatches,
        u64::from(taken.is_full),
        "the hardware's buffer was full",
    );
}
