//! Reads the events of a file whose document is `{"traceEvents": [EVENT, …], …}` or the array alone, and passes
//! them to a [`Sink`].

use super::event::Event;
use super::json::{Stop, byte, skip_space, skip_string, skip_value};
use super::source::{Ending, Source};

/// The maximum size of an event, or of a value of the object around the events. A longer value is skipped and
/// counted.
const MAX_VALUE_BYTES: usize = 64 << 20;

/// A receiver of the parts of a document.
pub(super) trait Sink {
    /// The error that stops the reading.
    type Error;
    /// Takes an event.
    fn event(&mut self, event: &Event) -> Result<(), Self::Error>;
    /// Takes a member of the object that holds the events.
    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;
    /// Notes that more bytes of the file were read.
    fn progress(&mut self, source: &Source) -> Result<(), Self::Error>;
}

/// The result of reading a document.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    /// The number of events that the sink took.
    pub(super) events: u64,
    /// The number of values of the array that are not events.
    pub(super) odd: u64,
    /// The number of events and other values that are longer than the maximum.
    pub(super) too_long: u64,
    /// The reason why the end of the document was not read; `None` if all of it was read.
    pub(super) cut: Option<String>,
    /// The start of the content if the file is not JSON of this kind.
    pub(super) foreign: Option<String>,
}

/// A document that is read through a buffer.
pub(super) struct Document {
    source: Source,
    /// The unread bytes, and those of the value that is being read.
    buffer: Vec<u8>,
    /// The position in the buffer up to which the document is read.
    at: usize,
    /// The number of bytes of the document that precede the buffer.
    before: u64,
    summary: Summary,
}

/// The error that the end of the file was reached.
struct Ended;

impl Document {
    pub(super) fn new(source: Source) -> Document {
        Document {
            source,
            buffer: Vec::new(),
            at: 0,
            before: 0,
            summary: Summary::default(),
        }
    }

    /// Reads the document into `sink`.
    ///
    /// # Errors
    /// The error of the sink.
    pub(super) fn read<S: Sink>(mut self, sink: &mut S) -> Result<Summary, S::Error> {
        self.start();
        match self.next_byte() {
            Some(b'[') => {
                self.at += 1;
                let closed = self.events(sink)?;
                // A writer that is killed leaves the closing bracket out.
                if !closed && self.summary.cut.is_none() {
                    self.summary.cut = self.broken();
                }
            }
            Some(b'{') => {
                self.at += 1;
                self.object(sink)?;
            }
            Some(_) => self.summary.foreign = Some(self.beginning()),
            None => {
                self.summary.foreign = Some(self.broken().unwrap_or("nothing".to_owned()));
            }
        }
        Ok(self.summary)
    }

    /// Skips the byte order mark that some writers put in front.
    fn start(&mut self) {
        while self.buffer.len() < 3 && self.more().is_ok() {}
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
    }

    /// Returns a text that quotes the first 32 bytes.
    fn beginning(&self) -> String {
        let rest = &self.buffer[self.at..];
        let text = String::from_utf8_lossy(&rest[..rest.len().min(32)]);
        format!("it begins with {:?}", &*text)
    }

    /// Drops the bytes that were used and reads more of the file into the buffer.
    fn more(&mut self) -> Result<(), Ended> {
        let rest = self.buffer.len() - self.at;
        self.buffer.copy_within(self.at.., 0);
        self.buffer.truncate(rest);
        self.before += self.at as u64;
        self.at = 0;
        // The buffer doubles each time, because a long value is scanned again from its start.
        let enough = rest.saturating_mul(2);
        loop {
            if !self.source.next(&mut self.buffer) {
                let grew = self.buffer.len() > rest;
                return if grew { Ok(()) } else { Err(Ended) };
            }
            if self.buffer.len() > enough {
                return Ok(());
            }
        }
    }

    /// Skips white space and returns the next byte.
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            self.at = skip_space(&self.buffer, self.at);
            match self.buffer.get(self.at) {
                Some(byte) => return Some(*byte),
                None => self.more().ok()?,
            }
        }
    }

    /// Returns the reason why reading stopped before the end of the file, if it did.
    fn broken(&self) -> Option<String> {
        match self.source.ending() {
            Some(Ending::Broken(why)) => Some(format!("the file cannot be read further: {why}")),
            _ => None,
        }
    }

    /// Notes in the summary that the document ends too early.
    fn cut(&mut self) {
        let why = self.broken();
        self.summary.cut = Some(why.unwrap_or_else(|| "the file ends in the middle".to_owned()));
    }

    /// Notes in the summary that the document is not JSON from here on.
    fn malformed(&mut self) {
        let at = self.before + self.at as u64;
        self.summary.cut = Some(format!("it is not JSON at byte {at} and behind"));
    }

    /// Reads the members of the object around the events.
    fn object<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        loop {
            match self.next_byte() {
                Some(b',') => self.at += 1,
                Some(b'}') => return Ok(()),
                Some(b'"') => {
                    let Some(key) = self.key() else { return Ok(()) };
                    if key == b"traceEvents" && self.next_byte() == Some(b'[') {
                        self.at += 1;
                        let closed = self.events(sink)?;
                        if !closed && self.summary.cut.is_none() {
                            self.cut();
                        }
                    } else {
                        self.value(&key, sink)?;
                    }
                    if self.summary.cut.is_some() {
                        return Ok(());
                    }
                }
                Some(_) => {
                    self.malformed();
                    return Ok(());
                }
                None => {
                    self.cut();
                    return Ok(());
                }
            }
        }
    }

    /// Reads the key at the position and moves behind its colon. Returns `None` if the object has no further key.
    fn key(&mut self) -> Option<Vec<u8>> {
        let end = self.whole(skip_string)?;
        let key = self.buffer[self.at + 1..end - 1].to_vec();
        self.at = end;
        match self.next_byte() {
            Some(b':') => {
                self.at += 1;
                Some(key)
            }
            Some(_) => {
                self.malformed();
                None
            }
            None => {
                self.cut();
                None
            }
        }
    }

    /// Returns the end of the value that begins at the position, which `end` finds, and reads more of the file until
    /// the value is complete. Returns `None` if the value never ends, which the summary then notes, or if it is too
    /// long and was skipped.
    fn whole(&mut self, end: impl Fn(&[u8], usize) -> Result<usize, Stop>) -> Option<usize> {
        loop {
            match end(&self.buffer, self.at) {
                Ok(end) => return Some(end),
                Err(Stop::Bad) => {
                    self.malformed();
                    return None;
                }
                Err(Stop::More) if self.buffer.len() - self.at > MAX_VALUE_BYTES => {
                    self.skip();
                    return None;
                }
                Err(Stop::More) => {
                    if self.more().is_err() {
                        self.cut();
                        return None;
                    }
                }
            }
        }
    }

    /// Reads the value of a member and passes both to the sink.
    fn value<S: Sink>(&mut self, key: &[u8], sink: &mut S) -> Result<(), S::Error> {
        if self.next_byte().is_none() {
            self.cut();
            return Ok(());
        }
        if let Some(end) = self.whole(skip_value) {
            sink.member(key, &self.buffer[self.at..end])?;
            self.at = end;
        }
        Ok(())
    }

    /// Reads events up to the end of their array. Returns false if the file ends before.
    fn events<S: Sink>(&mut self, sink: &mut S) -> Result<bool, S::Error> {
        loop {
            self.at = skip_space(&self.buffer, self.at);
            match self.buffer.get(self.at) {
                Some(b'{') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                Some(b']') => {
                    self.at += 1;
                    return Ok(true);
                }
                Some(_) => {
                    let Some(end) = self.whole(skip_value) else {
                        if self.summary.cut.is_some() {
                            return Ok(false);
                        }
                        continue;
                    };
                    self.summary.odd += 1;
                    self.at = end;
                    continue;
                }
                None => {
                    sink.progress(&self.source)?;
                    match self.more() {
                        Ok(()) => continue,
                        Err(Ended) => return Ok(false),
                    }
                }
            }
            match Event::read(&self.buffer, self.at) {
                Ok((event, end)) => {
                    self.summary.events += 1;
                    sink.event(&event)?;
                    self.at = end;
                }
                Err(Stop::More) => {
                    sink.progress(&self.source)?;
                    if self.buffer.len() - self.at > MAX_VALUE_BYTES {
                        self.skip();
                        continue;
                    }
                    if self.more().is_err() {
                        self.cut();
                        return Ok(false);
                    }
                }
                Err(Stop::Bad) => {
                    self.malformed();
                    return Ok(false);
                }
            }
        }
    }

    /// Skips a value that is longer than the maximum, and counts it.
    fn skip(&mut self) {
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
