//! Times one command buffer, its passes and its dispatches: [`Batch::begin_pass`] and [`Batch::dispatch`] hand out
//! slots for samples of the GPU's clock while the program encodes; after the commit they are read and recorded to a
//! profile.

use super::counters::{Counters, SamplePair, SampleSlot, Samples, Unsampled};
use super::ladder::Ladder;
use super::time::{CommandBufferError, Completion, GpuTime, UnknownTime};
use crate::interval::Interval;
use crate::kernel_profile::{
    CommandBufferEntry, CommandBufferId, DispatchEntry, LossKind, PassEntry, ProfileHandle,
    host_now_ns,
};
use crate::passes::{MeasuredInterval, MeasuredPass, WANTED_NO_MORE, settle};
use std::borrow::Cow;
use std::sync::Arc;

/// A command buffer, as far as timing concerns it. `CommandBuffer` has one of Metal's; an implementation for another
/// kind of queue:
///
/// ```
/// use gapscope_sdk::metal::{Commands, Completion};
///
/// /// Runs its work when it is committed.
/// struct AtOnce(Box<dyn Fn()>);
///
/// impl Commands for AtOnce {
///     fn set_label(&self, _: &str) {}
///     fn commit(&self) { self.0() }
///     fn wait(&self) {}
///     fn completion(&self) -> Completion {
///         Completion { finished: true, ..Completion::default() } // its times are not known
///     }
///     fn on_completed(&self, done: Box<dyn FnOnce(Completion) + Send>) { done(self.completion()) }
/// }
/// ```
pub trait Commands {
    /// Sets the label.
    fn set_label(&self, label: &str);

    /// Commits the command buffer to the GPU.
    fn commit(&self);

    /// Waits until the command buffer has ended.
    fn wait(&self);

    /// Returns the current state and the times.
    fn completion(&self) -> Completion;

    /// Calls `done` on a thread of the system when the command buffer has ended. It is called before
    /// [`Self::commit`].
    fn on_completed(&self, done: Box<dyn FnOnce(Completion) + Send>);
}

/// A dispatch with the program's description.
///
/// ```
/// # use gapscope_sdk::metal::Dispatch;
/// let softmax = Dispatch {
///     kernel: "softmax_f16".into(),
///     op_kind: "Softmax".into(),
///     groups: Some([64, 1, 1]),
///     group_size: Some([256, 1, 1]),
///     ..Dispatch::default()
/// };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// The name of the kernel.
    pub kernel: Cow<'static, str>,
    /// The kind of the operation.
    pub op_kind: Cow<'static, str>,
    /// The numbers of threadgroups in x, y and z.
    pub groups: Option<[u32; 3]>,
    /// The threads of a threadgroup in x, y and z.
    pub group_size: Option<[u32; 3]>,
    #[doc(hidden)]
    pub more_fields_may_come: (),
}

/// The result of a command buffer.
///
/// ```
/// use gapscope_sdk::metal::{CommandBufferError, Submitted};
///
/// fn said(outcome: Result<Submitted, CommandBufferError>) -> String {
///     match outcome {
///         Ok(submitted) => match submitted.time {
///             Ok(time) => format!("{} ns; {} dispatches timed", time.duration_ns(), submitted.timed),
///             Err(why) => format!("time unknown: {why}"),
///         },
///         Err(error) => error.to_string(),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// The id of the command buffer in the profile.
    pub id: CommandBufferId,
    /// The GPU time of the command buffer.
    pub time: Result<GpuTime, UnknownTime>,
    /// The number of dispatches with known times.
    pub timed: u64,
    /// The number of dispatches whose times are unknown or were not wanted.
    pub untimed: u64,
}

/// The samples of a pass or dispatch; `None` if it has none of its own.
type OwnSamples = Option<Result<SamplePair, Unsampled>>;

/// A pass that was begun.
struct Pass {
    label: String,
    samples: OwnSamples,
    /// The index of the first dispatch in the command buffer.
    first: usize,
}

/// A dispatch that was encoded.
struct SampledDispatch {
    dispatch: Dispatch,
    samples: OwnSamples,
}

/// A command buffer with its passes and dispatches, which are recorded to a [profile](ProfileHandle) that outlives
/// it. A batch that is dropped without a commit records nothing.
///
/// `CommandBuffer` is made of one, on Apple's systems. A program with command buffers of its own implements
/// [`Commands`] and [`Counters`] for them:
///
/// ```
/// use gapscope_sdk::metal::{Batch, CommandBufferError, Commands, Counters, Dispatch, Submitted};
///
/// fn run<C: Counters>(mut batch: Batch<C>, commands: &impl Commands) -> Result<Submitted, CommandBufferError> {
///     let of_pass = batch.begin_pass("layer 3"); // for the pass's descriptor
///     let of_dispatch = batch.dispatch(Dispatch { kernel: "softmax".into(), ..Dispatch::default() });
///     // … encode, with samples there …
///     batch.commit_and_wait(commands, "layer 3")
/// }
/// ```
pub struct Batch<C: Counters + 'static> {
    counters: Arc<C>,
    profile: ProfileHandle,
    /// The way in which the work is timed, from single dispatches to whole command buffers.
    ladder: Ladder,
    queue: Cow<'static, str>,
    /// The command buffer's id in the profile.
    id: CommandBufferId,
    samples: Samples<C>,
    /// The passes, if passes or dispatches are timed.
    passes: Vec<Pass>,
    dispatches: Vec<SampledDispatch>,
    /// The number of dispatches, timed or not.
    dispatch_count: u32,
}

impl<C: Counters + 'static> Batch<C> {
    /// Creates a batch for one command buffer of `queue`. [`Ladder::say`] must have been called for its profile.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile;
    /// use gapscope_sdk::metal::{Batch, Counters, Ladder};
    /// use std::sync::Arc;
    ///
    /// fn batch<C: Counters>(counters: &Arc<C>) -> Batch<C> {
    ///     Batch::new(Arc::clone(counters), kernel_profile::global(), Ladder::Passes, "Stream 0")
    /// }
    /// ```
    pub fn new(
        counters: Arc<C>,
        profile: impl Into<ProfileHandle>,
        ladder: Ladder,
        queue: impl Into<Cow<'static, str>>,
    ) -> Batch<C> {
        let profile = profile.into();
        if ladder.samples() {
            // A clock needs two samples: this one before the work and one after it.
            profile.add_clock_pair(counters.clock_pair());
        }
        Batch {
            id: profile.command_buffer(),
            counters,
            profile,
            ladder,
            queue: queue.into(),
            samples: Samples::default(),
            passes: Vec::new(),
            dispatches: Vec::new(),
            dispatch_count: 0,
        }
    }

    /// Returns how the work is timed.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Batch, CommandBufferError, Commands, Counters, Dispatch, Submitted};
    /// # fn example<C: Counters>(mut batch: Batch<C>, commands: &impl Commands) {
    /// println!("{:?}", batch.ladder());
    /// # }
    /// ```
    pub fn ladder(&self) -> Ladder {
        self.ladder
    }

    /// Begins a pass, and returns the slot for the samples at its ends if it is to be sampled.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Batch, CommandBufferError, Commands, Counters, Dispatch, Submitted};
    /// # fn example<C: Counters>(mut batch: Batch<C>, commands: &impl Commands) {
    /// if let Some(slot) = batch.begin_pass("layer 3") {
    ///     println!("samples {} and {}", slot.pair.start(), slot.pair.end());
    /// }
    /// # }
    /// ```
    pub fn begin_pass(&mut self, label: &str) -> Option<SampleSlot<C::Buffer>> {
        if !self.ladder.samples() {
            return None;
        }
        let taken = (self.ladder == Ladder::Passes).then(|| self.samples.take(&self.counters));
        self.passes.push(Pass {
            label: label.to_owned(),
            samples: taken.as_ref().map(pair_of),
            first: self.dispatches.len(),
        });
        taken?.ok()
    }

    /// Adds a dispatch to the last pass, and returns the slot for the samples around it if it is to be sampled. With
    /// [`Ladder::PassPerDispatch`], these are the samples of its own pass.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Batch, CommandBufferError, Commands, Counters, Dispatch, Submitted};
    /// # fn example<C: Counters>(mut batch: Batch<C>, commands: &impl Commands) {
    /// batch.begin_pass("layer 3");
    /// batch.dispatch(Dispatch { kernel: "softmax".into(), ..Dispatch::default() });
    /// # }
    /// ```
    pub fn dispatch(&mut self, dispatch: Dispatch) -> Option<SampleSlot<C::Buffer>> {
        self.dispatch_count = self.dispatch_count.saturating_add(1);
        if !self.ladder.samples() {
            return None;
        }
        let taken = (self.ladder != Ladder::Passes).then(|| self.samples.take(&self.counters));
        self.dispatches.push(SampledDispatch {
            dispatch,
            samples: taken.as_ref().map(pair_of),
        });
        taken?.ok()
    }

    /// Commits the command buffer, waits for its end, and records it under `label`.
    ///
    /// # Errors
    /// The command buffer failed. Only the failure is recorded, as a loss.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Batch, CommandBufferError, Commands, Counters, Dispatch, Submitted};
    /// # fn example<C: Counters>(mut batch: Batch<C>, commands: &impl Commands) {
    /// match batch.commit_and_wait(commands, "layer 3") {
    ///     Ok(submitted) => println!("{:?}", submitted.time),
    ///     Err(error) => eprintln!("{error}"),
    /// }
    /// # }
    /// ```
    pub fn commit_and_wait(
        self,
        commands: &impl Commands,
        label: &str,
    ) -> Result<Submitted, CommandBufferError> {
        commands.set_label(label);
        let submitted_ns = host_now_ns();
        commands.commit();
        commands.wait();
        self.ended(label, submitted_ns, &commands.completion())
    }

    /// Commits the command buffer and returns. When it has ended, it is recorded and `done` gets the result.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{Batch, CommandBufferError, Commands, Counters, Dispatch, Submitted};
    /// # fn example<C: Counters>(mut batch: Batch<C>, commands: &impl Commands) {
    /// batch.commit(commands, "layer 3", |outcome| println!("{outcome:?}")); // on a thread of the system
    /// # }
    /// ```
    pub fn commit(
        self,
        commands: &impl Commands,
        label: &str,
        done: impl FnOnce(Result<Submitted, CommandBufferError>) + Send + 'static,
    ) {
        commands.set_label(label);
        let label = label.to_owned();
        let submitted_ns = host_now_ns();
        commands.on_completed(Box::new(move |completion| {
            done(self.ended(&label, submitted_ns, &completion));
        }));
        commands.commit();
    }

    /// Records a command buffer that has ended, with its work; a failed one only as a loss.
    fn ended(
        self,
        label: &str,
        submitted_ns: u64,
        completion: &Completion,
    ) -> Result<Submitted, CommandBufferError> {
        let seen_ns = host_now_ns();
        if let Some(reason) = &completion.error {
            self.profile
                .lose(LossKind::CommandBuffers, 1, "they failed");
            return Err(CommandBufferError {
                label: label.to_owned(),
                reason: reason.clone(),
            });
        }
        let time = GpuTime::from_completion(completion);
        self.profile.record_command_buffer(CommandBufferEntry {
            id: Some(self.id),
            label: label.to_owned().into(),
            queue: self.queue.clone(),
            submitted_ns: Some(submitted_ns),
            start_ns: time.ok().map(|time| time.start_ns),
            end_ns: time.ok().map(|time| time.end_ns),
            seen_ns: Some(seen_ns),
            dispatches: self.dispatch_count,
            unknown_because: time
                .err()
                .map_or(Cow::Borrowed(""), |why| why.to_string().into()),
            ..CommandBufferEntry::default()
        });
        let timed = self.record_work(label);
        Ok(Submitted {
            id: self.id,
            time,
            timed,
            untimed: u64::from(self.dispatch_count) - timed,
        })
    }

    /// Records the passes and dispatches, and returns the number of dispatches with known times.
    fn record_work(&self, label: &str) -> u64 {
        if let Ladder::CommandBuffers { because } = self.ladder {
            let reason = because.unwrap_or(WANTED_NO_MORE);
            let count = self.dispatch_count.into();
            self.profile.lose(LossKind::DispatchTimes, count, reason);
            return 0;
        }
        if self.passes.is_empty() && self.dispatches.is_empty() {
            return 0;
        }
        self.profile.add_clock_pair(self.counters.clock_pair());
        let clock = self.profile.clock();
        let resolved = self.samples.resolve(&*self.counters);
        let measured = |samples: &Result<SamplePair, Unsampled>| -> MeasuredInterval {
            let ticks = samples.clone().and_then(|pair| resolved.at(pair));
            let ticks = ticks.map_err(|why| why.to_string())?;
            let host = |ticks| clock.convert(ticks).map_err(|why| why.to_string());
            Ok(Interval {
                start_ns: host(ticks.start)?.ns,
                end_ns: host(ticks.end)?.ns,
            })
        };
        let ends = self.passes.iter().skip(1).map(|next| next.first);
        let ends = ends.chain([self.dispatches.len()]);
        let passes: Vec<_> = (self.passes.iter().zip(ends))
            .map(|(pass, end)| MeasuredPass {
                inside: pass.first..end,
                measured: pass.samples.as_ref().map(measured),
                hides_dispatches: false,
            })
            .collect();
        let dispatches: Vec<_> = (self.dispatches.iter())
            .map(|dispatch| dispatch.samples.as_ref().map(measured))
            .collect();
        let settled = settle(&passes, &dispatches);
        for ((pass, of), times) in self.passes.iter().zip(&passes).zip(settled.passes) {
            let inside = &of.inside;
            if inside.is_empty() && pass.samples.is_none() {
                // Nothing ran in this pass.
                continue;
            }
            self.profile.record_pass(PassEntry {
                cb_label: label.to_owned().into(),
                command_buffer: Some(self.id),
                label: pass.label.clone().into(),
                first_dispatch: inside.start as u32,
                dispatches: inside.len() as u32,
                gpu_ns: None,
                start_gpu_ns: times.as_ref().ok().map(|times| times.start_ns),
                end_gpu_ns: times.as_ref().ok().map(|times| times.end_ns),
                unknown_because: times.err().unwrap_or_default(),
                ..PassEntry::default()
            });
        }
        let mut timed = 0;
        for ((sampled, times), index) in self.dispatches.iter().zip(settled.dispatches).zip(0..) {
            let dispatch = &sampled.dispatch;
            timed += u64::from(times.is_ok());
            self.profile.record_dispatch(DispatchEntry {
                cb_label: label.to_owned().into(),
                command_buffer: Some(self.id),
                op_kind: dispatch.op_kind.clone(),
                kernel: dispatch.kernel.clone(),
                dispatch_index: index,
                groups: dispatch.groups,
                group_size: dispatch.group_size,
                gpu_ns: None,
                start_gpu_ns: times.as_ref().ok().map(|times| times.start_ns),
                end_gpu_ns: times.as_ref().ok().map(|times| times.end_ns),
                unknown_because: times.err().unwrap_or_default(),
                ..DispatchEntry::default()
            });
        }
        timed
    }
}

/// Returns the indices of a slot.
fn pair_of<B>(taken: &Result<SampleSlot<B>, Unsampled>) -> Result<SamplePair, Unsampled> {
    taken
        .as_ref()
        .map(|slot| slot.pair)
        .map_err(Unsampled::clone)
}
