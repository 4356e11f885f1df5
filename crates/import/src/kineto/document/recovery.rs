//! Finds the next event or document behind a part of a file that is not JSON, and counts what lies between.

use super::{Document, Element, Ended, Unread};
use crate::kineto::event::Event;
use crate::kineto::json::{Stop, byte};
use crate::kineto::preface;

/// The maximum size of an event at which reading goes on behind a part that is not JSON. Longer ones are taken for
/// strings that begin inside of that part. A longer value in which an event lies is taken for one without its end.
pub(super) const MAX_RECOVERED_BYTES: usize = 1 << 20;

/// The maximum number of bytes that the searches for the next event behind broken parts may read in vain.
const MAX_SEARCHED_BYTES: usize = 1 << 30;

impl Document {
    /// Returns whether an event begins at the position. Reads more of the file until that is known; an object that is
    /// longer than an event is none.
    pub(super) fn is_at_event(&mut self) -> bool {
        loop {
            match Event::read(&self.buffer, self.at) {
                Ok((event, _)) => return event.phase != 0,
                Err(Stop::Bad) => return false,
                Err(Stop::More) => {
                    let is_long = self.buffer.len() - self.at > MAX_RECOVERED_BYTES;
                    let is_document = preface::is_document(&self.buffer, self.at);
                    if is_long || is_document || self.more().is_err() {
                        return false;
                    }
                }
            }
        }
    }

    /// Returns the position of the next bracket in the buffer, from `next` on, with which an event or a document begins, and
    /// whether all of it is there; `None` where there is none.
    fn next_start(&mut self, mut next: usize) -> Option<(usize, bool)> {
        while self.searched < MAX_SEARCHED_BYTES {
            let rest = self.buffer.get(next..)?;
            next += memchr::memchr(b'{', rest)?;
            let read = Event::read(&self.buffer, next).map(|(event, _)| event.phase);
            let is_event = read.is_ok_and(|phase| phase != 0);
            if is_event || read != Err(Stop::Bad) && preface::is_document(&self.buffer, next) {
                return Some((next, true));
            }
            if read != Err(Stop::More) {
                next += 1;
                continue;
            }
            let bytes = self.buffer.len() - next;
            self.searched += bytes;
            if bytes <= MAX_RECOVERED_BYTES {
                return Some((next, false));
            }
            next += 1;
        }
        None
    }

    /// Returns whether an event lies in the value at the position, of which the end is missing.
    pub(super) fn has_event_inside(&mut self) -> bool {
        let mut next = self.at + 1;
        while let Some((start, is_whole)) = self.next_start(next) {
            if is_whole {
                return true;
            }
            next = start + 1;
        }
        false
    }

    /// Moves from a part that is not JSON, which begins at `from`, to the next event or document behind the position, and
    /// counts what lies between. Returns false if there is none.
    pub(super) fn recover(&mut self, from: usize) -> bool {
        let from = self.before + from as u64;
        let mut next = self.at + 1;
        let found = loop {
            let start = self.next_start(next);
            self.at = start.map_or(self.buffer.len(), |(start, _)| start);
            // An event that is not complete yet is read again with more of the file.
            next = match start {
                Some((_, true)) => break true,
                Some((_, false)) => match self.more() {
                    Ok(()) => 0,
                    Err(Ended) => 1,
                },
                None => match self.more() {
                    Ok(()) => 0,
                    Err(Ended) => break false,
                },
            };
        };
        let summary = &mut self.summary;
        if summary.broken_parts == 0 {
            summary.first_broken_at = from;
        }
        let bytes = self.before + self.at as u64 - from;
        summary.broken_parts += 1;
        summary.broken_bytes += bytes;
        self.broken_behind += bytes;
        found
    }

    /// Moves behind a value that was not read.
    pub(super) fn behind(&mut self, unread: Unread) -> Element {
        let is_behind = match unread {
            Unread::Bad => self.recover(self.at),
            Unread::Gone => self.summary.cut.is_none(),
        };
        match is_behind {
            true => Element::Read,
            false => Element::FileEnd,
        }
    }

    /// Skips a value that is longer than the maximum, and counts it.
    pub(super) fn skip(&mut self) {
        self.summary.too_long += 1;
        let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
        loop {
            while let Ok(next) = byte(&self.buffer, self.at) {
                self.at += 1;
                match (in_string, next) {
                    (true, _) if escaped => escaped = false,
                    (true, b'\\') => escaped = true,
                    (_, b'"') => in_string = !in_string,
                    (false, b'{' | b'[') => depth += 1,
                    (false, b'}' | b']') => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 && !in_string {
                    return;
                }
            }
            if self.more().is_err() {
                self.cut();
                return;
            }
        }
    }
}
