//! Writes an open window (the captured part of the run), one submission at a time: writes the memory that the work
//! needs, passes the submission on, waits for it, and writes what it has written. [`OpenWindow::begin`] comes first,
//! then [`OpenWindow::submit`] for each submission, and [`OpenWindow::end`] and [`OpenWindow::clean_up`] last.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ash::vk::{self, Handle};
use gapscope_capture::model::{self, Command as Record, CommandsId, EndReason, Header};
use gapscope_capture::request::Window;
use gapscope_capture::{Record as Line, Writer};
use gapscope_spool::hook;
use gapscope_vulkan_layer::handles::Serial;
use gapscope_vulkan_layer::layer::Queue;
use gapscope_vulkan_layer::submissions::SemaphoreUse;

use super::known_content::KnownContent;
use super::object_ids::ObjectIds;
use super::quiet_writes::{end_reason, quietly};
use super::resolve::{Access, AccessedRange, QueryResults, Resolver};
use super::split_submission::{SplitSubmission, lists};
use super::staging::{Failure, Staging};
use super::submit_call::{SubmitBatch, SubmitCall, TimingPair};
use crate::api::device::Device;

/// The longest wait for work that was submitted before the window; beyond it, the window ends.
const MAX_EARLIER_WORK: Duration = Duration::from_secs(20);
/// The longest wait for a submission of the window; beyond it, the window ends.
const MAX_SUBMISSION: Duration = Duration::from_secs(3600);

/// A window that is being written.
pub struct OpenWindow {
    device: &'static Device,
    path: PathBuf,
    pub(super) writer: Writer,
    /// Whether the bytes that work writes are kept, and not their hash alone.
    pub(super) keeps_outputs: bool,
    /// The start, from which times in the capture are counted.
    began: Instant,
    pub(super) numbers: ObjectIds,
    /// The layer's objects on the device; absent before the first submission.
    pub(super) staging: Option<Staging>,
    /// The content that the capture has, by allocation.
    pub(super) known: HashMap<Serial, KnownContent>,
    /// Command buffers as they were written last, with the number of that record.
    written: HashMap<vk::CommandBuffer, (Vec<Record>, CommandsId)>,
    /// The number of the next record of commands.
    next_commands: u32,
    has_work: bool,
    /// The queue on which work of the program runs that has command buffers of the layer.
    unfinished: Option<vk::Queue>,
}

/// The dispatches of a submission that are in the window.
#[derive(Debug, Clone)]
pub struct Dispatches {
    /// The captured dispatches, counted from the submission's first.
    pub captured: Range<u64>,
    /// The number of all dispatches of the submission.
    pub count: u64,
}

/// The part of a submission that is captured.
struct CapturedWork {
    /// The time of the call, counted from the window's start.
    called_ns: u64,
    /// The ranges of memory that the commands may access, in their order.
    touches: Vec<AccessedRange>,
    /// The records of the commands of each command buffer.
    commands: Vec<Vec<Record>>,
    query_results: Vec<QueryResults>,
}

impl CapturedWork {
    /// Returns true when a later command may overwrite the results of a query, which are only read afterwards.
    fn overwrites_query_results(&self) -> bool {
        self.query_results.iter().any(|results| {
            let touch = &self.touches[results.touch];
            self.touches[results.touch + 1..].iter().any(|later| {
                later.access != Access::Read
                    && later.memory.serial == touch.memory.serial
                    && later.bytes.start < touch.bytes.end
                    && later.bytes.end > touch.bytes.start
            })
        })
    }
}

/// The reason why a window cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    #[error("{} cannot be written: {error}", path.display())]
    NotWritable { path: PathBuf, error: io::Error },
}

impl OpenWindow {
    /// Begins a window on a device: makes the capture's folder `path`, with the user's choice of the window in its
    /// header.
    pub fn begin(
        device: &'static Device,
        path: &Path,
        window: &Window,
        keeps_outputs: bool,
    ) -> Result<OpenWindow, BeginError> {
        let header = Header {
            format: gapscope_capture::VULKAN_FORMAT,
            api: gapscope_capture::model::CapturedApi::Vulkan,
            gapscope: env!("CARGO_PKG_VERSION").to_owned(),
            command: hook::command_line(),
            pid: std::process::id(),
            started_unix_ns: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos() as i64),
            window: window.to_string(),
            device: device.described.clone(),
        };
        let writer =
            quietly(|| Writer::create(path, header)).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => BeginError::Exists(path.to_owned()),
                _ => BeginError::NotWritable {
                    path: path.to_owned(),
                    error,
                },
            })?;
        Ok(OpenWindow {
            device,
            path: path.to_owned(),
            writer,
            keeps_outputs,
            began: Instant::now(),
            numbers: ObjectIds::default(),
            staging: None,
            known: HashMap::new(),
            written: HashMap::new(),
            next_commands: 0,
            has_work: false,
            unfinished: None,
        })
    }

    /// Returns whether a submission has been written.
    pub fn has_work(&self) -> bool {
        self.has_work
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Writes why the window ended.
    pub fn end(&mut self, reason: EndReason) {
        let after_ns = self.began.elapsed().as_nanos() as u64;
        let end = model::End { reason, after_ns };
        // Without space a capture has no end, and is read as one that was cut off.
        let _ = quietly(|| self.writer.record(&Line::End(end)));
    }

    /// Destroys the layer's objects on the device, where no work of the window runs any more.
    pub fn clean_up(&mut self) {
        if let Some(mut staging) = self.staging.take() {
            if let Some(queue) = self.unfinished
                && staging.wait(queue, MAX_SUBMISSION).is_err()
            {
                // The objects may be in use for ever.
                return std::mem::forget(staging);
            }
            // SAFETY: each piece of work of ours has been waited for.
            unsafe { staging.destroy() };
        }
    }

    /// Captures a submission, or only the given dispatches of it. An error is the reason why the window ends; the
    /// call may then not have been passed on yet.
    ///
    /// # Safety
    /// The call is the program's own, and nobody else uses the queues.
    pub unsafe fn submit(
        &mut self,
        call: &SubmitCall<'_>,
        dispatches: Option<Dispatches>,
    ) -> Result<(), EndReason> {
        let queue = self.check(call)?;
        let split = dispatches.and_then(|of| SplitSubmission::cut(call, &of.captured, of.count));
        // SAFETY: as the caller promises.
        unsafe {
            match split {
                Some(split) => self.submit_split(call, &queue, split),
                None => self.submit_whole(call, &queue),
            }
        }
    }

    /// Returns the queue of a call that can be captured.
    fn check(&self, call: &SubmitCall<'_>) -> Result<Queue, EndReason> {
        let refused = |text: &str| Err(EndReason::Refused(text.to_owned()));
        if !std::ptr::eq(call.device, self.device) {
            return refused("work on a second device");
        }
        if self.device.is_group {
            return refused("a device that stands for several GPUs");
        }
        let Some(queue) = self.device.queue(call.queue) else {
            return refused("a queue that is not known");
        };
        if queue.is_protected || call.batches.iter().any(|batch| batch.is_protected) {
            return refused("protected work");
        }
        Ok(queue)
    }

    /// Finds the commands of the parts of a call (command buffers and indices of commands), and what they touch.
    fn resolve(
        &mut self,
        parts: impl Iterator<Item = (vk::CommandBuffer, Range<usize>)>,
    ) -> Result<CapturedWork, EndReason> {
        let called_ns = self.began.elapsed().as_nanos() as u64;
        let mut resolver = Resolver::new(self.device, &mut self.numbers);
        for (buffer, part) in parts {
            resolver.command_buffer(buffer, part)?;
        }
        let work = CapturedWork {
            called_ns,
            touches: resolver.touches,
            commands: resolver.commands,
            query_results: resolver.query_results,
        };
        match work.overwrites_query_results() {
            true => Err(EndReason::Refused(
                "results of queries that the same submission overwrites".to_owned(),
            )),
            false => Ok(work),
        }
    }

    /// Captures all of a submission.
    ///
    /// # Safety
    /// As for [`OpenWindow::submit`].
    unsafe fn submit_whole(
        &mut self,
        call: &SubmitCall<'_>,
        queue: &Queue,
    ) -> Result<(), EndReason> {
        let buffers = call.command_buffers().into_iter();
        let work = self.resolve(buffers.map(|buffer| (buffer, 0..usize::MAX)))?;
        self.start(call)?;
        self.write_before(queue, &work)?;
        let around = match call.can_have_others && !call.batches.is_empty() {
            true => self.staging(|staging| Ok(staging.around(queue.family)))?,
            false => None,
        };
        let lists = around.map(|around| surrounded(call.lists(), around));
        // SAFETY: as the caller promises.
        let result = unsafe { call.pass_on(lists.as_deref()) };
        self.finish(queue, result)?;
        let device_ns = match around {
            Some(_) => self.staging(|staging| Ok(staging.elapsed_ns(queue.family)))?,
            // Without a batch there is no work.
            None => call.batches.is_empty().then_some(0),
        };
        self.write_after(queue, work, device_ns, &call.batches)
    }

    /// Captures the part of a submission that is in the window: runs the part before, captures the part inside, and
    /// passes the call on with what is left.
    ///
    /// # Safety
    /// As for [`OpenWindow::submit`].
    unsafe fn submit_split(
        &mut self,
        call: &SubmitCall<'_>,
        queue: &Queue,
        mut split: SplitSubmission,
    ) -> Result<(), EndReason> {
        let parts = split.inside.iter();
        let work = self.resolve(parts.map(|part| (part.of, part.commands.clone())))?;
        self.start(call)?;
        // SAFETY: as the caller promises.
        self.staging(|staging| unsafe { split.record(call, queue.family, staging) })?;
        let before: Vec<_> = split.before.iter().map(|part| part.run).collect();
        if !before.is_empty() {
            // SAFETY: they are the program's, or have been recorded, and all waits of the call are over.
            self.staging(|staging| unsafe { staging.run(queue.handle, &before, MAX_SUBMISSION) })?;
        }
        let mut is_inside_done = false;
        // SAFETY: as the caller promises.
        let captured =
            unsafe { self.submit_inside(call, queue, &split, work, &mut is_inside_done) };
        if call.passed.get().is_none() {
            // Whatever became of the capture, the program's work goes on from here.
            let inside = split.inside.iter().filter(|_| !is_inside_done);
            let rest = lists(inside.chain(&split.after), call.batches.len());
            // SAFETY: as the caller promises; what has run is left out.
            let result = unsafe { call.pass_on(Some(&rest)) };
            self.unfinished = (result == vk::Result::SUCCESS).then_some(queue.handle);
        }
        captured
    }

    /// Captures the part inside. `is_done` is set once that part has been submitted.
    ///
    /// # Safety
    /// As for [`OpenWindow::submit`].
    unsafe fn submit_inside(
        &mut self,
        call: &SubmitCall<'_>,
        queue: &Queue,
        split: &SplitSubmission,
        work: CapturedWork,
        is_done: &mut bool,
    ) -> Result<(), EndReason> {
        self.write_before(queue, &work)?;
        let around = self.staging(|staging| Ok(staging.around(queue.family)))?;
        let mut batch = SubmitBatch {
            waits: Vec::new(),
            commands: split.inside.iter().map(|part| part.run).collect(),
            signals: Vec::new(),
            is_protected: false,
        };
        if split.after.is_empty() {
            let lists = lists(&split.inside, call.batches.len());
            let lists = match around {
                Some(around) => surrounded(lists, around),
                None => lists,
            };
            // SAFETY: as the caller promises; what comes before has run.
            let result = unsafe { call.pass_on(Some(&lists)) };
            *is_done = true;
            self.finish(queue, result)?;
            batch.signals = (call.batches.iter())
                .flat_map(|batch| batch.signals.iter().copied())
                .collect();
        } else {
            let lists = match around {
                Some(around) => surrounded(vec![batch.commands.clone()], around),
                None => vec![batch.commands.clone()],
            };
            // SAFETY: they are executable, and all waits of the call are over.
            self.staging(|staging| unsafe {
                staging.run(queue.handle, &lists[0], MAX_SUBMISSION)
            })?;
            *is_done = true;
        }
        let device_ns = match around {
            Some(_) => self.staging(|staging| Ok(staging.elapsed_ns(queue.family)))?,
            None => None,
        };
        self.write_after(queue, work, device_ns, &[batch])
    }

    /// Waits until the device has done what was passed on.
    fn finish(&mut self, queue: &Queue, result: vk::Result) -> Result<(), EndReason> {
        if result != vk::Result::SUCCESS {
            let text = format!("the submission was answered with {result:?}");
            return Err(EndReason::Failed(text));
        }
        self.staging(|staging| staging.wait(queue.handle, MAX_SUBMISSION))
    }

    /// Writes what the work needs that the capture does not have yet.
    fn write_before(&mut self, queue: &Queue, work: &CapturedWork) -> Result<(), EndReason> {
        self.numbers.queue(self.device, queue);
        quietly(|| self.numbers.write(&mut self.writer)).map_err(end_reason)?;
        self.write_content(queue, &work.touches)
    }

    /// Writes the work, which has run, and what it has written. `device_ns` is the time for which the device worked;
    /// `None` where the queue has no timestamps.
    fn write_after(
        &mut self,
        queue: &Queue,
        mut work: CapturedWork,
        device_ns: Option<u64>,
        batches: &[SubmitBatch],
    ) -> Result<(), EndReason> {
        for results in &work.query_results {
            let data = self.content_of(queue, &work.touches[results.touch])?;
            let (buffer, command) = results.at;
            if let Record::Update(update) = &mut work.commands[buffer][command] {
                update.data = data;
            }
        }
        let submission = model::Submission {
            queue: self.numbers.queue(self.device, queue),
            called_ns: work.called_ns,
            device_ns,
            batches: Vec::new(),
        };
        self.write_submission(submission, batches, work.commands)
            .map_err(end_reason)?;
        self.write_outcome(queue, &work.touches)
    }

    /// Waits for earlier work, and checks that nothing keeps the call from running.
    fn start(&mut self, call: &SubmitCall<'_>) -> Result<(), EndReason> {
        if self.staging.is_none() {
            self.wait_for_earlier_work()?;
        }
        match call.waits_for_what_has_not_come() {
            Some(reason) => Err(EndReason::Refused(reason)),
            None => Ok(()),
        }
    }

    /// Makes the layer's objects and waits until all queues have done what was submitted before the window.
    fn wait_for_earlier_work(&mut self) -> Result<(), EndReason> {
        let refused = |reason: &dyn Display| {
            EndReason::Refused(format!(
                "work that was submitted before the window: {reason}"
            ))
        };
        // The program may be waiting for a queue, and must be alone with it then.
        let begun = Instant::now();
        let _alone = loop {
            match self.device.waits.try_write() {
                Ok(alone) => break alone,
                Err(std::sync::TryLockError::Poisoned(alone)) => break alone.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) if begun.elapsed() < MAX_EARLIER_WORK => {
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(std::sync::TryLockError::WouldBlock) => {
                    return Err(refused(&"the program waits for it without end"));
                }
            }
        };
        let mut staging = Staging::new(self.device)?;
        let queues = gapscope_vulkan_layer::handles::lock(&self.device.queues).clone();
        for queue in queues.iter().filter(|queue| !queue.is_protected) {
            if let Err(error) = staging.wait(queue.handle, MAX_EARLIER_WORK) {
                // What the layer submitted there is still to run, so it is left behind.
                std::mem::forget(staging);
                return Err(refused(&error));
            }
        }
        self.staging = Some(staging);
        Ok(())
    }

    /// Runs `work` with the layer's objects on the device.
    pub(super) fn staging<R>(
        &mut self,
        work: impl FnOnce(&mut Staging) -> Result<R, Failure>,
    ) -> Result<R, EndReason> {
        let staging = self.staging.as_mut().ok_or(Failure::NoStaging)?;
        Ok(work(staging)?)
    }

    /// Writes a submission: its command buffers with their commands, and the semaphores of its batches.
    fn write_submission(
        &mut self,
        mut submission: model::Submission,
        batches: &[SubmitBatch],
        commands: Vec<Vec<Record>>,
    ) -> io::Result<()> {
        let mut commands = commands.into_iter();
        for batch in batches {
            let mut ids = Vec::new();
            for (buffer, commands) in batch.commands.iter().zip(commands.by_ref()) {
                ids.push(self.write_commands(*buffer, commands)?);
            }
            let numbers = &mut self.numbers;
            let semaphores = &self.device.objects.semaphores;
            let mut used = |used: &SemaphoreUse| {
                let known = semaphores.get(used.semaphore.as_raw())?;
                Some(model::SemaphoreUse {
                    semaphore: numbers.semaphore(known.serial),
                    value: known.is_timeline.then_some(used.value),
                    stages: used.stages,
                })
            };
            submission.batches.push(model::Batch {
                waits: batch.waits.iter().filter_map(&mut used).collect(),
                commands: ids,
                signals: batch.signals.iter().filter_map(&mut used).collect(),
            });
        }
        quietly(|| self.writer.record(&Line::Submission(submission)))?;
        self.has_work = true;
        Ok(())
    }

    /// Writes the commands of a command buffer, unless they were written like this before; returns their number.
    fn write_commands(
        &mut self,
        buffer: vk::CommandBuffer,
        commands: Vec<Record>,
    ) -> io::Result<CommandsId> {
        if let Some((known, id)) = self.written.get(&buffer)
            && *known == commands
        {
            return Ok(*id);
        }
        let id = CommandsId(self.next_commands);
        self.next_commands += 1;
        let record = Line::Commands(model::Commands { id, commands });
        quietly(|| self.writer.record(&record))?;
        if let Line::Commands(model::Commands { commands, .. }) = record {
            self.written.insert(buffer, (commands, id));
        }
        Ok(id)
    }
}

/// Puts command buffers of the layer around those of all batches, of which there is at least one.
fn surrounded(
    mut lists: Vec<Vec<vk::CommandBuffer>>,
    around: TimingPair,
) -> Vec<Vec<vk::CommandBuffer>> {
    if let Some(first) = lists.first_mut() {
        first.insert(0, around.before);
    }
    if let Some(last) = lists.last_mut() {
        last.push(around.after);
    }
    lists
}
