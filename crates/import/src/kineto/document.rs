//! Reads the events of a file whose documents are `{"traceEvents": [EVENT, …], …}` or the array alone, and passes
//! them to a [`Sink`]. A file may hold several documents, one behind the other. A part that is not JSON costs itself
//! only: reading goes on at the next event.

mod recovery;

use super::event::Event;
use super::json::{Stop, skip_space, skip_string, skip_value};
use super::preface;
use super::source::{Ending, Source};
use crate::counted::ends_in_the_middle;

/// The maximum size of an event, or of a value of the object around the events. A longer value is skipped and
/// counted.
const MAX_VALUE_BYTES: usize = 64 << 20;

/// A receiver of the parts of a document.
pub(super) trait Sink {
    /// The error that stops the reading.
    type Error;
    /// Notes that the document with a number begins; the first one has the number 0. Returns false to stop reading.
    fn document(&mut self, _: u64) -> bool {
        true
    }
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
    /// The reason why the end of the file was not read; `None` if all of it was read.
    pub(super) cut: Option<String>,
    /// The number of documents.
    pub(super) documents: u64,
    /// The number of parts that are not JSON, their bytes, and the byte at which the first of them begins.
    pub(super) broken_parts: u64,
    pub(super) broken_bytes: u64,
    pub(super) first_broken_at: u64,
    /// The parts that are not JSON and lie between events of known times.
    pub(super) holes: Vec<Hole>,
    /// The number of documents that end before they are complete, with another one behind them.
    pub(super) unclosed_documents: u64,
    /// The number of bytes of the file, decompressed, as far as it could be read.
    pub(super) bytes: u64,
    /// The start of the content if the file is not JSON of this kind.
    pub(super) foreign: Option<String>,
}

/// A part of a file that is not JSON, between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) bytes: u64,
    /// The starts of the events before and behind it, by the file's clock.
    pub(super) before_ns: i64,
    pub(super) after_ns: i64,
}

/// The most holes that are kept: of more, nobody needs each.
const MAX_HOLES: usize = 1 << 10;

/// A document that is read through a buffer.
pub(super) struct Document {
    source: Source,
    /// The unread bytes, and those of the value that is being read.
    buffer: Vec<u8>,
    /// The position in the buffer up to which the document is read.
    at: usize,
    /// The number of bytes of the document that precede the buffer.
    before: u64,
    /// The number of bytes that searches for the next event have read in vain.
    searched: usize,
    /// The start of the last event, and the bytes of broken parts behind it.
    last_ns: Option<i64>,
    broken_behind: u64,
    summary: Summary,
}

/// The error that the end of the file was reached.
struct Ended;

/// The next thing in a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    /// An event or a broken part, which was read.
    Read,
    /// The end of the list, which was read.
    Closed,
    /// A document, at whose beginning the position is.
    Document,
    /// Nothing: the file ends.
    FileEnd,
}

/// The reason why a value was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// It is not JSON, or its end is missing and events follow.
    Bad,
    /// It never ends, which the summary notes, or it is too long and was skipped.
    Gone,
}

impl Document {
    pub(super) fn new(source: Source) -> Document {
        Document {
            source,
            buffer: Vec::new(),
            at: 0,
            before: 0,
            searched: 0,
            last_ns: None,
            broken_behind: 0,
            summary: Summary::default(),
        }
    }

    /// Reads the documents into `sink`.
    ///
    /// # Errors
    /// The error of the sink.
    pub(super) fn read<S: Sink>(mut self, sink: &mut S) -> Result<Summary, S::Error> {
        self.start();
        match self.next_byte() {
            Some(_) => self.skip_preface(),
            None => {
                self.summary.foreign = Some(self.broken().unwrap_or("nothing".to_owned()));
            }
        }
        // True behind the first event without an array around it.
        let mut has_bare_events = false;
        while self.summary.foreign.is_none() && self.summary.cut.is_none() {
            match self.next_byte() {
                // An array of documents.
                Some(b'[') if preface::is_around_documents(&self.buffer[self.at..]) => self.at += 1,
                Some(b'[') => {
                    if !self.begin(sink) {
                        break;
                    }
                    self.at += 1;
                    // A writer that is killed leaves the closing bracket out.
                    if self.events(sink)? == Element::FileEnd && self.summary.cut.is_none() {
                        self.summary.cut = self.broken();
                    }
                }
                Some(b'{') => {
                    // Events without an array around them, such as one a line, are one document.
                    if !has_bare_events && self.is_at_event() {
                        has_bare_events = true;
                        if self.summary.documents == 0 && !self.begin(sink) {
                            break;
                        }
                    }
                    if !has_bare_events && preface::has_phase(&self.buffer, self.at) {
                        // An event that is damaged.
                        self.recover(self.at);
                    } else if !has_bare_events || self.element(sink)? == Element::Document {
                        if !self.begin(sink) {
                            break;
                        }
                        self.at += 1;
                        self.object(sink)?;
                    }
                }
                // Writers of a document a line may put something between them, such as a comma or a zero byte.
                Some(b',' | b']' | 0) => self.at += 1,
                Some(_) => {
                    self.recover(self.at);
                }
                None => {
                    self.summary.cut = self.broken();
                    break;
                }
            }
        }
        self.summary.bytes = self.before + self.buffer.len() as u64;
        Ok(self.summary)
    }

    /// Begins a document. Returns false if the sink stops the reading.
    fn begin<S: Sink>(&mut self, sink: &mut S) -> bool {
        let number = self.summary.documents;
        self.summary.documents += 1;
        sink.document(number)
    }

    /// Moves behind text in front of the first document, such as lines of a log, and counts it as a part that is not JSON.
    fn skip_preface(&mut self) {
        match preface::bytes(&self.buffer[self.at..]) {
            Some(0) => {}
            Some(bytes) => {
                self.summary.first_broken_at = self.before + self.at as u64;
                self.summary.broken_parts += 1;
                self.summary.broken_bytes += bytes as u64;
                self.at += bytes;
            }
            None => self.summary.foreign = Some(self.beginning()),
        }
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
        let bytes = self.before + self.buffer.len() as u64;
        self.summary.cut = Some(why.unwrap_or_else(|| ends_in_the_middle(bytes)));
    }

    /// Reads events behind a part of the document that is not JSON. Returns false unless the end of their list comes.
    fn go_on<S: Sink>(&mut self, sink: &mut S) -> Result<bool, S::Error> {
        Ok(self.recover(self.at) && self.events(sink)? == Element::Closed)
    }

    /// Reads the members of the object around the events.
    fn object<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        loop {
            match self.next_byte() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'"') => {
                    let key = match self.key() {
                        Ok(key) => key,
                        Err(Unread::Bad) => {
                            if !self.go_on(sink)? {
                                return Ok(());
                            }
                            continue;
                        }
                        Err(Unread::Gone) => return Ok(()),
                    };
                    if key == b"traceEvents" && self.next_byte() == Some(b'[') {
                        self.at += 1;
                        match self.events(sink)? {
                            Element::FileEnd if self.summary.cut.is_none() => self.cut(),
                            Element::Document => return Ok(()),
                            _ => {}
                        }
                    } else if !self.value(&key, sink)? && !self.go_on(sink)? {
                        return Ok(());
                    }
                    if self.summary.cut.is_some() {
                        return Ok(());
                    }
                }
                Some(_) => {
                    if !self.go_on(sink)? {
                        return Ok(());
                    }
                }
                None => {
                    self.cut();
                    return Ok(());
                }
            }
        }
    }

    /// Reads the key at the position and moves behind its colon.
    fn key(&mut self) -> Result<Vec<u8>, Unread> {
        let end = self.whole(skip_string)?;
        let key = self.buffer[self.at + 1..end - 1].to_vec();
        self.at = end;
        match self.next_byte() {
            Some(b':') => {
                self.at += 1;
                Ok(key)
            }
            Some(_) => Err(Unread::Bad),
            None => {
                self.cut();
                Err(Unread::Gone)
            }
        }
    }

    /// Returns the end of the value that begins at the position, which `end` finds, and reads more of the file until
    /// the value is complete.
    fn whole(
        &mut self,
        end: impl Fn(&[u8], usize) -> Result<usize, Stop>,
    ) -> Result<usize, Unread> {
        loop {
            match end(&self.buffer, self.at) {
                Ok(end) => return Ok(end),
                Err(Stop::Bad) => return Err(Unread::Bad),
                Err(Stop::More) => self.extend()?,
            }
        }
    }

    /// Reads more of the file for the value at the position, which is not complete.
    ///
    /// # Errors
    /// The value has no end, or it is too long.
    fn extend(&mut self) -> Result<(), Unread> {
        let bytes = self.buffer.len() - self.at;
        let is_ended = bytes <= MAX_VALUE_BYTES && self.more().is_err();
        if (is_ended || bytes > recovery::MAX_RECOVERED_BYTES) && self.has_event_inside() {
            return Err(Unread::Bad);
        }
        if is_ended {
            self.cut();
        } else if bytes > MAX_VALUE_BYTES {
            self.skip();
        } else {
            return Ok(());
        }
        Err(Unread::Gone)
    }

    /// Reads the value of a member and passes both to the sink. Returns false if the value is not JSON.
    fn value<S: Sink>(&mut self, key: &[u8], sink: &mut S) -> Result<bool, S::Error> {
        if self.next_byte().is_none() {
            self.cut();
            return Ok(true);
        }
        match self.whole(skip_value) {
            Ok(end) => {
                sink.member(key, &self.buffer[self.at..end])?;
                self.at = end;
                Ok(true)
            }
            Err(unread) => Ok(unread == Unread::Gone),
        }
    }

    /// Reads events up to the end of their list, the end of the file, or another document, which is counted.
    fn events<S: Sink>(&mut self, sink: &mut S) -> Result<Element, S::Error> {
        loop {
            match self.element(sink)? {
                Element::Read => {}
                Element::Document => {
                    self.summary.unclosed_documents += 1;
                    return Ok(Element::Document);
                }
                end => return Ok(end),
            }
        }
    }

    /// Reads the next element of a list of events.
    #[inline]
    fn element<S: Sink>(&mut self, sink: &mut S) -> Result<Element, S::Error> {
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
                    return Ok(Element::Closed);
                }
                Some(_) => return Ok(self.odd_value()),
                None => {
                    sink.progress(&self.source)?;
                    match self.more() {
                        Ok(()) => continue,
                        Err(Ended) => return Ok(Element::FileEnd),
                    }
                }
            }
            match Event::read(&self.buffer, self.at) {
                Ok((event, _))
                    if event.phase == 0 && preface::is_document(&self.buffer, self.at) =>
                {
                    return Ok(Element::Document);
                }
                Ok((event, end)) => {
                    self.summary.events += 1;
                    let start_ns = event.start_ns.filter(|ns| *ns != 0 && event.phase != b'M');
                    if start_ns.is_some() {
                        let before_ns = std::mem::replace(&mut self.last_ns, start_ns);
                        let bytes = std::mem::take(&mut self.broken_behind);
                        let is_hole = bytes > 0 && self.summary.holes.len() < MAX_HOLES;
                        if let Some((before_ns, after_ns)) =
                            before_ns.zip(start_ns).filter(|_| is_hole)
                        {
                            let hole = Hole {
                                bytes,
                                before_ns,
                                after_ns,
                            };
                            self.summary.holes.push(hole);
                        }
                    }
                    sink.event(&event)?;
                    self.at = end;
                    return Ok(Element::Read);
                }
                Err(Stop::More) if preface::is_document(&self.buffer, self.at) => {
                    return Ok(Element::Document);
                }
                Err(Stop::More) => {
                    sink.progress(&self.source)?;
                    if let Err(unread) = self.extend() {
                        return Ok(self.behind(unread));
                    }
                }
                Err(Stop::Bad) => return Ok(self.behind(Unread::Bad)),
            }
        }
    }

    /// Moves behind a value of a list of events that is no object, and counts it.
    fn odd_value(&mut self) -> Element {
        if preface::is_array_of_events(&self.buffer[self.at..]) {
            return Element::Document;
        }
        match self.whole(skip_value) {
            Ok(end) if preface::is_text(&self.buffer[self.at..end]) => self.behind(Unread::Bad),
            Ok(end) => {
                self.summary.odd += 1;
                self.at = end;
                Element::Read
            }
            Err(unread) => self.behind(unread),
        }
    }
}
