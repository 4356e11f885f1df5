//! One command buffer, timed.

use super::counters::{Counters, Place, Samples, Unsampled};
use super::ladder::Ladder;
use super::time::{CommandBufferError, Completion, GpuTime, UnknownTime};
use crate::kernel_profile::{
    CommandBufferEntry, CommandBufferId, DispatchEntry, Profile, host_now_ns,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command buffer, as far as timing concerns it.
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

/// The profile that is recorded to: that of the process ([`crate::kernel_profile::global`]), or one that is shared.
#[derive(Debug, Clone)]
pub enum ProfileHandle {
    /// One that lives as long as the process.
    Static(&'static Profile),
    /// One that is shared.
    Shared(Arc<Profile>),
}

impl std::ops::Deref for ProfileHandle {
    type Target = Profile;

    fn deref(&self) -> &Profile {
        match self {
            ProfileHandle::Static(profile) => profile,
            ProfileHandle::Shared(profile) => profile,
        }
    }
}

impl From<&'static Profile> for ProfileHandle {
    fn from(profile: &'static Profile) -> ProfileHandle {
        ProfileHandle::Static(profile)
    }
}

impl From<Arc<Profile>> for ProfileHandle {
    fn from(profile: Arc<Profile>) -> ProfileHandle {
        ProfileHandle::Shared(profile)
    }
}

/// How a command buffer went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Which it is in the profile.
    pub id: CommandBufferId,
    /// When the GPU ran it.
    pub time: Result<GpuTime, UnknownTime>,
    /// Pieces of work inside it whose times are known.
    pub timed: u64,
    /// Pieces of work inside it that were to be timed and were not, or whose times are not known.
    pub untimed: u64,
}

/// A command buffer with what is to be known of it afterwards. What is recorded goes to a [`Profile`], which outlives
/// it: a batch that is dropped without a commit leaves nothing.
pub struct Batch<C: Counters + 'static> {
    counters: Arc<C>,
    profile: ProfileHandle,
    ladder: Ladder,
    queue: Cow<'static, str>,
    id: CommandBufferId,
    samples: Samples<C>,
    work: Vec<(Dispatch, Result<Place, Unsampled>)>,
    /// Dispatches in passes that are timed as a whole, or not at all.
    dispatches: u32,
}

impl<C: Counters + 'static> Batch<C> {
    /// A batch for one command buffer of `queue`.
    pub fn new(
        counters: Arc<C>,
        profile: impl Into<ProfileHandle>,
        ladder: Ladder,
        queue: impl Into<Cow<'static, str>>,
    ) -> Batch<C> {
        let profile = profile.into();
        profile.set_sampling(ladder.sampling());
        if let Some(note) = ladder.note() {
            profile.note(note);
        }
        if !matches!(ladder, Ladder::CommandBuffers { .. }) {
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
            work: Vec::new(),
            dispatches: 0,
        }
    }

    /// How its work is timed.
    pub fn ladder(&self) -> Ladder {
        self.ladder
    }

    /// Where the samples of a dispatch or pass go; `None`: it is not sampled, and that is counted if it was wanted.
    pub fn sample(&mut self, work: Dispatch) -> Option<(Place, C::Buffer)> {
        if matches!(self.ladder, Ladder::CommandBuffers { .. }) {
            return None;
        }
        match self.samples.take(&self.counters) {
            Ok((place, buffer)) => {
                self.work.push((work, Ok(place)));
                Some((place, buffer))
            }
            Err(why) => {
                self.work.push((work, Err(why)));
                None
            }
        }
    }

    /// Counts a dispatch that has no samples of its own.
    pub fn count_dispatch(&mut self) {
        self.dispatches = self.dispatches.saturating_add(1);
    }

    /// Commits the command buffer, waits for its end, and records it under `label`.
    ///
    /// # Errors
    /// The command buffer failed; nothing is recorded but the failure, as a loss.
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
            self.profile.lose("command buffers", 1, "they failed");
            return Err(CommandBufferError {
                label: label.to_owned(),
                reason: reason.clone(),
            });
        }
        let time = GpuTime::of(completion);
        let passes = self.ladder == Ladder::Passes;
        let dispatches = match passes {
            true => self.dispatches,
            false => self.dispatches.saturating_add(self.work.len() as u32),
        };
        let label = Cow::<str>::Owned(label.to_owned());
        self.profile.record_command_buffer(CommandBufferEntry {
            id: Some(self.id),
            label: label.clone(),
            queue: self.queue.clone(),
            submitted_ns: Some(submitted_ns),
            start_ns: time.ok().map(|time| time.start_ns),
            end_ns: time.ok().map(|time| time.end_ns),
            seen_ns: Some(seen_ns),
            dispatches,
        });
        let (timed, untimed) = self.record_work(&label);
        Ok(Submitted {
            id: self.id,
            time,
            timed,
            untimed,
        })
    }

    /// Records the pieces of work; how many have times and how many have not.
    fn record_work(&self, label: &str) -> (u64, u64) {
        if self.work.is_empty() {
            return (0, 0);
        }
        self.profile.add_clock_pair(self.counters.clock_pair());
        let resolved = self.samples.resolve(&self.counters);
        let mut timed = 0;
        let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
        for ((dispatch, place), index) in self.work.iter().zip(0u32..) {
            let sampled = place.clone().and_then(|place| resolved.at(place));
            let times = sampled.map_err(|why| why.to_string()).and_then(|sampled| {
                let begin = self
                    .profile
                    .convert(sampled.begin)
                    .map_err(|why| why.to_string())?;
                let end = self
                    .profile
                    .convert(sampled.end)
                    .map_err(|why| why.to_string())?;
                Ok((begin.ns, end.ns))
            });
            let (start_gpu_ns, end_gpu_ns) = match times {
                Ok((start, end)) => {
                    timed += 1;
                    (Some(start), Some(end))
                }
                Err(why) => {
                    *unknown.entry(why).or_default() += 1;
                    (None, None)
                }
            };
            self.profile.record_dispatch(DispatchEntry {
                cb_label: label.to_owned().into(),
                command_buffer: Some(self.id),
                op_kind: dispatch.op_kind.clone(),
                kernel: dispatch.kernel.clone(),
                dispatch_index: index,
                groups: dispatch.groups,
                group_size: dispatch.group_size,
                gpu_ns: None,
                start_gpu_ns,
                end_gpu_ns,
            });
        }
        let untimed = unknown.values().sum();
        for (why, count) in unknown {
            self.profile.lose("counter samples", count, why);
        }
        (timed, untimed)
    }
}
