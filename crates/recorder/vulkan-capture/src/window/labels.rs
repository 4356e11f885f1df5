//! Keeps the labels (texts by which the program names its work) that are open on queues and threads, because a
//! label's text may choose the window, the part of the run that is captured.

use std::cell::RefCell;
use std::sync::Mutex;

use ash::vk::Handle;
use gapscope_vulkan_layer::handles::{HandleMap, lock};

use super::submit_call::SubmitCall;

/// The labels of queues; those of threads are each thread's own.
#[derive(Default)]
pub struct Labels {
    /// The open labels of each queue, the innermost last.
    queues: Mutex<HandleMap<Vec<String>>>,
}

thread_local! {
    /// The open labels of the calling thread, the innermost last.
    static THREAD_LABELS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl Labels {
    /// Begins a label of a queue.
    pub fn begin(&self, queue: u64, text: String) {
        lock(&self.queues).entry(queue).or_default().push(text);
    }

    /// Ends the innermost label of a queue.
    pub fn end(&self, queue: u64) {
        if let Some(open) = lock(&self.queues).get_mut(&queue) {
            open.pop();
        }
    }

    /// Begins a label of the calling thread.
    pub fn push(text: String) {
        THREAD_LABELS.with_borrow_mut(|open| open.push(text));
    }

    /// Ends the innermost label of the calling thread; returns false if there is none.
    pub fn pop() -> bool {
        THREAD_LABELS.with_borrow_mut(|open| open.pop().is_some())
    }

    /// Returns whether the submission is under a label that contains the text, or has one inside.
    pub fn apply(&self, call: &SubmitCall<'_>, text: &str) -> bool {
        let contains = |open: &Vec<String>| open.iter().any(|label| label.contains(text));
        if THREAD_LABELS.with_borrow(contains) {
            return true;
        }
        if lock(&self.queues)
            .get(&call.queue.as_raw())
            .is_some_and(contains)
        {
            return true;
        }
        let mut pending = call.command_buffers();
        while let Some(buffer) = pending.pop() {
            if let Some(state) = call.device.objects.command_buffers.get(buffer.as_raw()) {
                let state = lock(&state);
                if state.labels().any(|label| label.contains(text)) {
                    return true;
                }
                pending.extend(state.dispatches().1);
            }
        }
        false
    }
}
