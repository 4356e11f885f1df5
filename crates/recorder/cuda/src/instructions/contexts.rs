//! Contexts that are sampled.

use super::samples::{Batches, Filter};
use super::sentences::{note_end, refusal};
use crate::driver;
use crate::recorder::Recorder;
use crate::window;
use gapscope_cupti::{Failure, Pace, PcLibrary, PcSampling, Taken};
use gapscope_spool::event::{CudaEvent, LossKind};
use gapscope_spool::{ids, monotonic_ns};
use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::MutexGuard;

/// Multiprocessors and kHz of a GPU that does not say its own: rather too few samples than more than CUPTI takes.
const LARGE_GPU: (u64, u64) = (160, 2_000_000);

/// All of them.
pub struct Contexts {
    sampled: Vec<Sampled>,
    filter: Filter,
}

/// One of them.
pub struct Sampled {
    context: usize,
    device: ids::Device,
    sampling: PcSampling,
    /// When samples were taken last.
    taken_ns: i64,
}

impl Sampled {
    /// Starts to sample a context.
    ///
    /// # Errors
    /// A sentence without its full stop.
    ///
    /// # Safety
    /// The context lives until it is taken out of [`Contexts`].
    pub unsafe fn start(library: &PcLibrary, context: *mut c_void) -> Result<Sampled, String> {
        // SAFETY: as the caller promises.
        unsafe {
            let device = library.device(context);
            let device = device.ok_or("CUPTI does not say which device a context is of")?;
            Ok(Sampled {
                context: context as usize,
                device: driver::device_id(device),
                sampling: PcSampling::start(library, context, pace(device)).map_err(refusal)?,
                taken_ns: monotonic_ns(),
            })
        }
    }

    /// How it is sampled.
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

    /// Ends it without a result.
    pub fn give_up(self) {
        // That CUPTI refuses to end what nobody uses is of no consequence.
        let _ = self.sampling.stop(|_| {});
    }

    /// True where recording was on all the time since samples were taken last; a part of them is of no use.
    fn is_recorded(&mut self) -> bool {
        let now = monotonic_ns();
        let since = std::mem::replace(&mut self.taken_ns, now);
        window::contains(since) && window::contains(now)
    }

    fn take(&mut self, recorder: &Recorder, filter: &mut Filter) -> Result<(), Failure> {
        let is_recorded = self.is_recorded();
        let mut batches = Batches::new(recorder, self.device, filter, is_recorded);
        let taken = self.sampling.take(|pc| batches.add(&pc));
        batches.write();
        taken.map(|taken| lose(recorder, &taken, is_recorded))
    }

    fn end(mut self, recorder: &Recorder, filter: &mut Filter) -> Result<(), Failure> {
        let is_recorded = self.is_recorded();
        let mut batches = Batches::new(recorder, self.device, filter, is_recorded);
        let taken = self.sampling.stop(|pc| batches.add(&pc));
        batches.write();
        taken.map(|taken| lose(recorder, &taken, is_recorded))
    }
}

impl Contexts {
    pub fn new(filter: Filter) -> Contexts {
        Contexts {
            sampled: Vec::new(),
            filter,
        }
    }

    pub fn add(&mut self, sampled: Sampled) {
        self.sampled.push(sampled);
    }

    /// Writes what there is. A context that CUPTI refuses is sampled no more.
    pub fn take(&mut self, recorder: &Recorder) {
        let Contexts { sampled, filter } = self;
        for mut context in std::mem::take(sampled) {
            match context.take(recorder, filter) {
                Ok(()) => sampled.push(context),
                Err(failure) => {
                    note_end(recorder, &refusal(failure));
                    context.give_up();
                }
            }
        }
    }

    /// Ends all of them.
    pub fn finish(mut self, recorder: &Recorder) {
        for context in self.sampled {
            if let Err(failure) = context.end(recorder, &mut self.filter) {
                note_end(recorder, &refusal(failure));
            }
        }
    }
}

/// A context ends. What CUPTI does for that may call back: the lock is let go before.
pub fn end(
    recorder: &Recorder,
    mut contexts: MutexGuard<'_, Option<Contexts>>,
    context: *mut c_void,
) {
    let Some(all) = contexts.as_mut() else { return };
    let is_it = |sampled: &Sampled| sampled.context == context as usize;
    let Some(place) = all.sampled.iter().position(is_it) else {
        return;
    };
    let sampled = all.sampled.swap_remove(place);
    let mut filter = all.filter.clone();
    drop(contexts);
    if let Err(failure) = sampled.end(recorder, &mut filter) {
        note_end(recorder, &refusal(failure));
    }
}

fn pace(device: u32) -> Pace {
    let known = |attribute, otherwise| driver::attribute(device, attribute).unwrap_or(otherwise);
    let multiprocessors = known(driver::MULTIPROCESSORS, LARGE_GPU.0);
    Pace::of_device(
        multiprocessors,
        1000 * known(driver::CLOCK_KHZ, LARGE_GPU.1),
    )
}

fn lose(recorder: &Recorder, taken: &Taken, is_recorded: bool) {
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
