//! Simulates queues. Each is a thread that takes submissions in their order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use ash::vk;

use crate::command::{CommandBuffer, Program};
use crate::config::{Family, config};
use crate::device::{Device, lock};
use crate::execution::{Cursor, Execution};
use crate::external_sync::ExternalSync;
use crate::object::{self, Body, Object};
use crate::performance::Tally;
use crate::sync::{self, Fence, Semaphore};
use crate::{clock, truth};

pub struct Queue {
    pub device: &'static Object<Device>,
    pub family: u32,
    pub index: u32,
    pub flags: vk::QueueFlags,
    timestamp_bits: u32,
    submissions: Mutex<VecDeque<Submission>>,
    arrived: Condvar,
    /// The number of submissions that are not complete.
    outstanding: AtomicUsize,
    pub sync: ExternalSync,
}

impl Body for Queue {
    type Handle = vk::Queue;
}

/// A batch of a submit call.
#[derive(Default)]
pub struct Submission {
    pub call: &'static str,
    pub submitted_ns: u64,
    pub waits: Vec<SemaphoreOperation>,
    pub command_buffers: Vec<(&'static Object<CommandBuffer>, Arc<Program>)>,
    pub signals: Vec<SemaphoreOperation>,
    pub fence: Option<&'static Object<Fence>>,
}

pub struct SemaphoreOperation {
    pub semaphore: &'static Object<Semaphore>,
    pub value: u64,
}

impl Queue {
    pub fn new(
        device: &'static Object<Device>,
        index_of_family: u32,
        index: u32,
        family: &Family,
    ) -> Self {
        Self {
            device,
            family: index_of_family,
            index,
            flags: family.flags,
            timestamp_bits: family.timestamp_bits,
            submissions: Mutex::default(),
            arrived: Condvar::new(),
            outstanding: AtomicUsize::new(0),
            sync: ExternalSync::default(),
        }
    }

    pub fn is_busy(&self) -> bool {
        self.outstanding.load(Acquire) > 0
    }

    pub fn push(&self, submission: Submission) {
        self.outstanding.fetch_add(1, AcqRel);
        lock(&self.submissions).push_back(submission);
        self.arrived.notify_one();
    }

    /// Makes the thread see that the device is closing.
    pub fn wake(&self) {
        let _submissions = lock(&self.submissions);
        self.arrived.notify_one();
    }

    fn next(&self) -> Option<Submission> {
        let mut submissions = lock(&self.submissions);
        loop {
            if self.device.closing.load(Acquire) {
                return None;
            }
            if let Some(submission) = submissions.pop_front() {
                return Some(submission);
            }
            submissions = self
                .arrived
                .wait(submissions)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Runs the thread of the queue.
pub fn run(queue: &Object<Queue>) {
    clock::sleep_precisely();
    let mut cursor = Cursor::default();
    let mut number = 0;
    while let Some(submission) = queue.next() {
        execute(queue, &mut cursor, number, submission);
        number += 1;
    }
}

fn execute(queue: &Queue, cursor: &mut Cursor, number: u64, submission: Submission) {
    let waited = wait(queue, &submission.waits);
    let executes = waited.is_some() && queue.device.execute_one();
    let loses = waited.is_some() && !executes;
    let end_ns = waited
        .filter(|_| executes)
        .map(|waited_ns| work(queue, cursor, number, &submission, waited_ns));
    // The allocations are released before the program can see the end, as from then on it may record into them again.
    for (buffer, program) in submission.command_buffers {
        if !config().null {
            program.end_use();
            buffer.header.end_use();
        }
    }
    sync::update(|| {
        if loses {
            queue.device.lose();
        }
        if let Some(fence) = submission.fence {
            fence.submitted.store(false, Release);
        }
        if let Some(end_ns) = end_ns {
            for signal in &submission.signals {
                signal
                    .semaphore
                    .signal(submission.call, signal.value, end_ns);
            }
            if let Some(fence) = submission.fence {
                fence.signalled.store(true, Release);
            }
        }
        queue.outstanding.fetch_sub(1, AcqRel);
    });
}

/// Returns when the last of the semaphores was signalled; `None` if the device went away first.
fn wait(queue: &Queue, waits: &[SemaphoreOperation]) -> Option<u64> {
    let mut reached_ns = Some(0);
    let closing = || queue.device.closing.load(Acquire);
    let result = sync::wait(queue.device, None, || {
        let mut times = waits
            .iter()
            .map(|wait| wait.semaphore.reached_at(wait.value));
        reached_ns = times.try_fold(0, |latest, at_ns| Some(latest.max(at_ns?)));
        if reached_ns.is_some() {
            waits.iter().for_each(|wait| wait.semaphore.consume());
        }
        reached_ns.is_some() || closing()
    });
    reached_ns.filter(|_| result == vk::Result::SUCCESS && !closing())
}

/// Runs the command buffers and returns when they end on the simulated clock, which is not before that moment.
fn work(
    queue: &Queue,
    cursor: &mut Cursor,
    number: u64,
    submission: &Submission,
    waited_ns: u64,
) -> u64 {
    let start_ns = if config().null {
        clock::monotonic_ns()
    } else {
        waited_ns.max(submission.submitted_ns + config().submit_ns)
    };
    cursor.arrive(start_ns);
    let mut execution = Execution {
        cursor,
        timestamp_bits: queue.timestamp_bits,
        command_buffer: 0,
        truth: truth::Lines::new(queue.family, queue.index, number),
        tally: Tally::default(),
    };
    for (ordinal, (_, program)) in submission.command_buffers.iter().enumerate() {
        execution.command_buffer = ordinal;
        execution.run(program);
    }
    let end_ns = execution.finish();
    if let Some(mut truth) = execution.truth {
        truth.submission(
            submission.submitted_ns,
            (start_ns, end_ns),
            submission.command_buffers.len(),
        );
        truth.write();
    }
    end_ns
}

pub unsafe extern "system" fn wait_idle(queue: vk::Queue) -> vk::Result {
    const CALL: &str = "vkQueueWaitIdle";
    let Some(queue) = object::get::<Queue>(CALL, queue) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = queue.sync.enter(CALL, "queue");
    sync::wait(queue.device, None, || !queue.is_busy())
}
