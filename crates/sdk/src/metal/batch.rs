//! One command buffer, timed.

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
    /// Sets its label.
    fn set_label(&self, label: &str);

    /// Hands it to the GPU.
    fn commit(&self);

    /// Waits until it has ended.
    fn wait(&self);

    /// What there is to say of it now.
    fn completion(&self) -> Completion;

    /// Has `done` called when it has ended, on a thread of the system. Called before [`Self::commit`].
    fn on_completed(&self, done: Box<dyn FnOnce(Completion) + Send>);
}

/// A dispatch, as the program knows it.
///
/// ```
/// # use gapscope_sdk::metal::Dispatch;
/// let softmax = Dispatch {
///     kernel: "softmax_f16".into(),
///     op_kind: "Softmax".into(),
///     groups: Some([64, 1, 1]),
///     group_size: Some([256, 1, 1]),
/// };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Name of its kernel.
    pub kernel: Cow<'static, str>,
    /// What kind of operation it is.
    pub op_kind: Cow<'static, str>,
    /// Threadgroups in x, y, z.
    pub groups: Option<[u32; 3]>,
    /// Threads of a threadgroup.
    pub group_size: Option<[u32; 3]>,
}

/// How a command buffer went.
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
pub struct Submitted {
    /// Which it is in the profile.
    pub id: CommandBufferId,
    /// When the GPU ran it.
    pub time: Result<GpuTime, UnknownTime>,
    /// Dispatches inside it whose times are known.
    pub timed: u64,
    /// Dispatches inside it whose times are not known, or were not wanted.
    pub untimed: u64,
}

/// Where the samples of a pass or dispatch are; `None`: it has none of its own.
type OwnSamples = Option<Result<SamplePair, Unsampled>>;

struct Pass {
    label: String,
    samples: OwnSamples,
    /// The index of its first dispatch in the command buffer.
    first: usize,
}

struct SampledDispatch {
    dispatch: Dispatch,
    samples: OwnSamples,
}

/// A command buffer with what is to be known of it afterwards. What is recorded goes to a [profile](ProfileHandle), which outlives
/// it: a batch that is dropped without a commit leaves nothing.
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
    ladder: Ladder,
    queue: Cow<'static, str>,
    id: CommandBufferId,
    samples: Samples<C>,
    /// Where passes or dispatches are timed, what there is of them.
    passes: Vec<Pass>,
    dispatches: Vec<SampledDispatch>,
    /// Dispatches in any case.
    dispatch_count: u32,
}

impl<C: Counters + 'static> Batch<C> {
    /// A batch for one command buffer of `queue`. [`Ladder::say`] has been called for its profile.
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
            // One sample before the work and one after it: a clock needs two.
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

    /// How its work is timed.
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

    /// Begins a pass: where the samples at its ends go, if it is to be sampled there.
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

    /// Adds a dispatch to the last pass: where the samples around it go, if it is to be sampled. They
    /// are those of its own pass where the ladder says [`Ladder::PassPerDispatch`].
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
    /// The command buffer failed; nothing is recorded but the failure, as a loss.
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

    /// Commits the command buffer and returns; it is recorded when it has ended, and `done` is told how it went.
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
        let time = GpuTime::of(completion);
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
        });
        let timed = self.record_work(label);
        Ok(Submitted {
            id: self.id,
            time,
            timed,
            untimed: u64::from(self.dispatch_count) - timed,
        })
    }

    /// Records what is inside it; of how many dispatches the times are known.
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
            })
            .collect();
        let dispatches: Vec<_> = (self.dispatches.iter())
            .map(|dispatch| dispatch.samples.as_ref().map(measured))
            .collect();
        let settled = settle(&passes, &dispatches);
        for ((pass, of), times) in self.passes.iter().zip(&passes).zip(settled.passes) {
            let inside = &of.inside;
            if inside.is_empty() && pass.samples.is_none() {
                // Nothing ran in it.
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
            });
        }
        timed
    }
}

fn pair_of<B>(taken: &Result<SampleSlot<B>, Unsampled>) -> Result<SamplePair, Unsampled> {
    taken
        .as_ref()
        .map(|slot| slot.pair)
        .map_err(Unsampled::clone)
}
