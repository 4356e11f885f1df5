//! Parses one event of a document in Chrome's JSON, an object, into the members that an import uses.

use super::json::{Stop, bare, member};
use super::number::nanoseconds;

/// An event. Its texts have no quotes and keep their escapes; absent members are empty.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Event<'a> {
    /// The phase, such as `X` for a complete event, or `B` and `E` for the ends of one; 0 if absent.
    pub(super) phase: u8,
    pub(super) category: &'a [u8],
    pub(super) name: &'a [u8],
    /// The process, or the text in its place.
    pub(super) pid: &'a [u8],
    /// The thread, or the text in its place.
    pub(super) tid: &'a [u8],
    /// The start; `None` if it is absent or impossible.
    pub(super) start_ns: Option<i64>,
    pub(super) duration_ns: Option<i64>,
    /// The start and the duration as the file writes them.
    pub(super) written: [&'a [u8]; 2],
    /// The id that joins the parts of asynchronous events and of flows.
    pub(super) id: &'a [u8],
    /// The object of arguments, with its brackets, which `json::members` reads.
    pub(super) args: &'a [u8],
}

impl<'a> Event<'a> {
    /// Reads the event whose bracket is at `at`, and returns it with the position behind it.
    pub(super) fn read(bytes: &'a [u8], at: usize) -> Result<(Event<'a>, usize), Stop> {
        let mut event = Event::default();
        let mut at = at + 1;
        loop {
            let (found, next) = member(bytes, at)?;
            at = next;
            let Some((key, value)) = found else {
                return Ok((event, at));
            };
            match key {
                b"ph" => event.phase = bare(value).first().copied().unwrap_or(0),
                // A category that is no text says nothing.
                b"cat" => event.category = if value[0] == b'"' { bare(value) } else { b"" },
                b"name" => event.name = bare(value),
                b"pid" => event.pid = bare(value),
                b"tid" => event.tid = bare(value),
                b"ts" => {
                    event.written[0] = bare(value);
                    event.start_ns = nanoseconds(event.written[0]);
                }
                b"dur" => {
                    event.written[1] = bare(value);
                    event.duration_ns = nanoseconds(event.written[1]);
                }
                b"id" | b"id2" => event.id = bare(value),
                b"args" => event.args = value,
                _ => {}
            }
        }
    }

    /// Returns whether the event has no member that an import uses.
    pub(super) fn is_empty(&self) -> bool {
        let texts = [
            self.category,
            self.name,
            self.pid,
            self.tid,
            self.id,
            self.args,
        ];
        texts.iter().all(|text| text.is_empty()) && self.start_ns.is_none()
    }

    /// Returns the end; `None` if a time is absent or impossible.
    pub(super) fn end_ns(&self) -> Option<i64> {
        let duration_ns = self.duration_ns.filter(|ns| *ns >= 0)?;
        self.start_ns?.checked_add(duration_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_may_stand_in_any_order() {
        let text = br#"x{"args": {"a": {"ph": "Q"}}, "dur": "1.5", "ts":2, "tid":"main", "pid":7,"name":"a\"b","cat":"c","ph":"X"}y"#;
        let (event, end) = Event::read(text, 1).unwrap();
        assert_eq!(text[end], b'y');
        assert_eq!(
            (event.phase, event.category, event.pid),
            (b'X', &b"c"[..], &b"7"[..])
        );
        assert_eq!((event.tid, event.name), (&b"main"[..], &br#"a\"b"#[..]));
        assert_eq!((event.start_ns, event.end_ns()), (Some(2000), Some(3500)));
        assert_eq!(event.args, br#"{"a": {"ph": "Q"}}"#);
        assert_eq!(Event::read(&text[..end - 1], 1).unwrap_err(), Stop::More);
        assert_eq!(Event::read(b"{1}", 0).unwrap_err(), Stop::Bad);
    }
}
