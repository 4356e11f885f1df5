//! Labels as signposts (marks that Apple's tools record) on Apple's systems.

#[cfg(target_vendor = "apple")]
mod apple;

#[cfg(target_vendor = "apple")]
pub use apple::OsLog;

use std::ffi::{CStr, CString};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kind of a signpost; the values are those of `os_signpost_type_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A moment.
    Event = 0,
    Begin = 1,
    End = 2,
}

/// The id of an open label, by which the system matches ends to begins.
pub type Id = NonZeroU64;

/// The destination of signposts.
pub trait Log {
    /// Returns true if a tool may want signposts now.
    fn is_enabled(&self) -> bool;

    /// Posts a signpost; an end has no text.
    fn emit(&self, mark: Mark, id: Id, text: &CStr);
}

/// The labels of a process.
#[derive(Debug)]
pub struct Signposts<L> {
    log: L,
    /// The id of the next label.
    next: AtomicU64,
}

impl<L: Log> Signposts<L> {
    pub const fn to(log: L) -> Signposts<L> {
        Signposts {
            log,
            next: AtomicU64::new(1),
        }
    }

    /// Returns true if a tool may want signposts now.
    #[cfg_attr(not(target_vendor = "apple"), allow(dead_code))]
    pub fn is_enabled(&self) -> bool {
        self.log.is_enabled()
    }

    /// Begins a label; `None` if no tool wants it, and then it has no end.
    pub fn begin(&self, text: &str) -> Option<Id> {
        self.log.is_enabled().then(|| self.mark(Mark::Begin, text))
    }

    /// Ends a label even if no tool wants signposts any more, because a tool that saw the begin may still read.
    pub fn end(&self, id: Id) {
        self.log.emit(Mark::End, id, c"");
    }

    pub fn instant(&self, text: &str) {
        if self.log.is_enabled() {
            self.mark(Mark::Event, text);
        }
    }

    /// Posts a signpost with a new id, and returns the id.
    fn mark(&self, mark: Mark, text: &str) -> Id {
        // The counter wraps after 2^64 labels.
        let id = Id::new(self.next.fetch_add(1, Relaxed)).unwrap_or(Id::MIN);
        // The replacement removes the only character that CString refuses.
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        self.log.emit(mark, id, &text);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    #[derive(Default)]
    struct FakeLog {
        disabled: AtomicBool,
        posts: Mutex<Vec<(Mark, u64, String)>>,
    }

    impl Log for FakeLog {
        fn is_enabled(&self) -> bool {
            !self.disabled.load(Relaxed)
        }

        fn emit(&self, mark: Mark, id: Id, text: &CStr) {
            let text = text.to_str().unwrap().to_owned();
            self.posts.lock().unwrap().push((mark, id.get(), text));
        }
    }

    fn post(mark: Mark, id: u64, text: &str) -> (Mark, u64, String) {
        (mark, id, text.to_owned())
    }

    #[test]
    fn labels_that_are_open_at_once_have_ids_of_their_own() {
        let signposts = Signposts::to(FakeLog::default());
        let step = signposts.begin("step").unwrap();
        let attention = signposts.begin("attention\0α").unwrap();
        signposts.instant("token");
        signposts.end(attention);
        signposts.end(step);
        assert_eq!(
            *signposts.log.posts.lock().unwrap(),
            [
                post(Mark::Begin, 1, "step"),
                post(Mark::Begin, 2, "attention α"),
                post(Mark::Event, 3, "token"),
                post(Mark::End, 2, ""),
                post(Mark::End, 1, ""),
            ]
        );
    }

    #[test]
    fn nothing_is_posted_while_no_tool_wants_it_but_ends_of_what_began() {
        let signposts = Signposts::to(FakeLog::default());
        let step = signposts.begin("step").unwrap();
        signposts.log.disabled.store(true, Relaxed);
        assert_eq!(signposts.begin("unseen"), None);
        signposts.instant("unseen");
        signposts.end(step);
        assert_eq!(
            *signposts.log.posts.lock().unwrap(),
            [post(Mark::Begin, 1, "step"), post(Mark::End, 1, "")]
        );
    }
}
