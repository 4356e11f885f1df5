//! Says which submission the host waits for: keeps the one that each fence waits for, and joins those of several fences or semaphores.

use crate::handles::Handles;
use crate::submitted::Submitted;
use ash::vk;
use ash::vk::Handle;

/// What one fence, or one value of a semaphore, stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// A value that was there from the start, so that nothing is awaited.
    Nothing,
    /// The end of a submission.
    Submission(Submitted),
    /// A signal of the host or of another program, or an unknown one.
    Unknown,
}

impl Awaited {
    /// Returns the submission for which a call waits that waits for all of these; `None` if there is not one.
    pub fn all(awaited: impl Iterator<Item = Awaited>) -> Option<Submitted> {
        let mut all = None;
        for one in awaited {
            all = match (one, all) {
                (Awaited::Nothing, all) => all,
                (Awaited::Submission(submitted), None) => Some(submitted),
                (Awaited::Submission(submitted), Some(other)) => Some(submitted.later(other)?),
                (Awaited::Unknown, _) => return None,
            };
        }
        all
    }

    /// Returns the submission whose end lets a call return that waits for any of these; `None` if there is not one.
    pub fn any(awaited: impl Iterator<Item = Awaited>) -> Option<Submitted> {
        let mut any = None;
        for one in awaited {
            any = match (one, any) {
                (Awaited::Submission(submitted), None) => Some(submitted),
                (Awaited::Submission(submitted), Some(other)) => Some(submitted.earlier(other)?),
                (Awaited::Nothing | Awaited::Unknown, _) => return None,
            };
        }
        any
    }
}

/// The fences of a device that submissions signal.
#[derive(Default)]
pub struct Fences(Handles<Submitted>);

impl Fences {
    /// Notes the submission that signals a fence.
    pub fn submitted(&self, fence: vk::Fence, submitted: Submitted) {
        self.0.insert(fence.as_raw(), submitted);
    }

    /// Notes that a fence is reset or gone, or that something else signals it.
    pub fn forget(&self, fence: vk::Fence) {
        self.0.remove(fence.as_raw());
    }

    /// Returns what a wait for a fence is for.
    pub fn awaited(&self, fence: vk::Fence) -> Awaited {
        let known = self.0.get(fence.as_raw());
        known.map_or(Awaited::Unknown, Awaited::Submission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_spool::ids;

    fn submitted(submission: u64, queue: u32) -> Submitted {
        Submitted {
            submission: ids::Submission(submission),
            queue: ids::Queue(queue),
        }
    }

    #[test]
    fn of_several_on_one_queue_all_wait_for_the_last_and_any_for_the_first() {
        let on = |submission| Awaited::Submission(submitted(submission, 1));
        let several = || [on(5), on(9), on(7)].into_iter();
        assert_eq!(Awaited::all(several()), Some(submitted(9, 1)));
        assert_eq!(Awaited::any(several()), Some(submitted(5, 1)));
        let with = |more| several().chain([more]);
        let other_queue = Awaited::Submission(submitted(6, 2));
        for unknown in [other_queue, Awaited::Unknown] {
            assert_eq!(Awaited::all(with(unknown)), None);
            assert_eq!(Awaited::any(with(unknown)), None);
        }
        assert_eq!(Awaited::all(with(Awaited::Nothing)), Some(submitted(9, 1)));
        assert_eq!(Awaited::any(with(Awaited::Nothing)), None);
        assert_eq!(Awaited::all(std::iter::empty()), None);
    }

    #[test]
    fn a_fence_stands_for_its_last_submission_until_it_is_reset() {
        let fences = Fences::default();
        let fence = vk::Fence::from_raw(7);
        assert_eq!(fences.awaited(fence), Awaited::Unknown);
        fences.submitted(fence, submitted(1, 1));
        fences.submitted(fence, submitted(2, 1));
        assert_eq!(fences.awaited(fence), Awaited::Submission(submitted(2, 1)));
        fences.forget(fence);
        assert_eq!(fences.awaited(fence), Awaited::Unknown);
    }
}
