//! Labels that are open on queues and threads.

use std::cell::RefCell;
use std::sync::Mutex;

use ash::vk::Handle;
use gapscope_vulkan_layer::handles::{HandleMap, lock};

use super::call::Call;

/// Labels of queues; those of threads are each thread's own.
#[derive(Default)]
pub struct Labels {
    queues: Mutex<HandleMap<Vec<String>>>,
}

thread_local! {
    static OF_THREAD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl Labels {
    pub fn begin(&self, queue: u64, text: String) {
        lock(&self.queues).entry(queue).or_default().push(text);
    }

    pub fn end(&self, queue: u64) {
        if let Some(open) = lock(&self.queues).get_mut(&queue) {
            open.pop();
        }
    }

    /// A label of the calling thread begins.
    pub fn push(text: String) {
        OF_THREAD.with_borrow_mut(|open| open.push(text));
    }

    /// The innermost label of the calling thread ends; false: there is none.
    pub fn pop() -> bool {
        OF_THREAD.with_borrow_mut(|open| open.pop().is_some())
    }

    /// The submission is under a label that contains the text, or has one inside.
    pub fn apply(&self, call: &Call<'_>, text: &str) -> bool {
        let contains = |open: &Vec<String>| open.iter().any(|label| label.contains(text));
        if OF_THREAD.with_borrow(contains) {
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
