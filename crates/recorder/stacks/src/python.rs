//! Stacks of Python: of one interpreter, in one process, which runs while it is read.
//!
//! What is read is a mixture of moments some microseconds apart. So it is read twice, and believed where both agree but for the innermost
//! frame: its caller was there all the time, and it was called from there. What does not agree is read again, a few times.

mod attach;
mod codes;

pub use attach::{Attached, attach, read_at};
pub use codes::Place;

use crate::memory::{Memory, Snapshot};
use codes::Codes;
use gapscope_model::python::{CurrentFrame, Inconsistent, Layout, Lock, LockOffsets, STRUCTURE_BYTES};
use rustc_hash::FxHashMap;
use std::io;

/// A stack is read so many times before it is given up.
const TRIES: u32 = 16;
/// A deeper one is taken for a torn one. Python's own limit is 1,000.
const MOST_FRAMES: usize = 4096;
/// Of all interpreters together: their lists may be torn into circles.
const MOST_THREADS: usize = 16_384;
const MOST_INTERPRETERS: usize = 256;
/// A lock is not larger: the address that a thread waits at tells which one it is.
const LOCK_BYTES: u64 = 256;
/// A thread that the interpreter does not know is not asked for again before.
const UNKNOWN_NS: i64 = 100_000_000;

/// Why there is no stack.
#[derive(Debug)]
pub enum NoStack {
    /// The interpreter knows no such thread.
    NotPython,
    /// It changed each time that it was read.
    Changing,
    /// What was read made no sense each time.
    Inconsistent,
    /// The memory cannot be read.
    Memory(io::Error),
}

impl From<io::Error> for NoStack {
    fn from(error: io::Error) -> NoStack {
        NoStack::Memory(error)
    }
}

impl From<Inconsistent> for NoStack {
    fn from(_: Inconsistent) -> NoStack {
        NoStack::Inconsistent
    }
}

/// A frame as it is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Raw {
    /// Its address.
    frame: u64,
    code: u64,
    instruction: u64,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Known {
    state: u64,
    interpreter: u64,
    /// The pages that the last sample used.
    pages: Vec<u64>,
}

/// A reader of one interpreter's stacks.
#[derive(Debug)]
pub struct Reader {
    memory: Memory,
    layout: Layout,
    runtime: u64,
    codes: Codes,
    threads: FxHashMap<u32, Known>,
    unknown: FxHashMap<u32, i64>,
    snapshot: Snapshot,
    first: Vec<Raw>,
    second: Vec<Raw>,
}

impl Reader {
    fn new(memory: Memory, layout: Layout, runtime: u64, code_type: Option<u64>) -> Reader {
        Reader {
            memory,
            layout,
            runtime,
            codes: Codes::new(memory, layout, code_type),
            threads: FxHashMap::default(),
            unknown: FxHashMap::default(),
            snapshot: Snapshot::default(),
            first: Vec::new(),
            second: Vec::new(),
        }
    }

    /// Where a thread is, outermost first, as places that [`Self::place`] knows. `thread`: as it calls itself.
    pub fn stack(&mut self, thread: u32, now_ns: i64, into: &mut Vec<u64>) -> Result<(), NoStack> {
        into.clear();
        if let Some(asked) = self.unknown.get(&thread)
            && now_ns - asked < UNKNOWN_NS
        {
            return Err(NoStack::NotPython);
        }
        self.codes.start_stack();
        let mut last = NoStack::Changing;
        for tried in 0..TRIES {
            match self.try_stack(thread, now_ns, into) {
                Ok(()) => return Ok(()),
                Err(NoStack::NotPython) => {
                    if self.unknown.len() >= MOST_THREADS {
                        self.unknown.clear();
                    }
                    self.unknown.insert(thread, now_ns);
                    return Err(NoStack::NotPython);
                }
                Err(NoStack::Memory(error)) if error.raw_os_error() != Some(libc::EFAULT) => {
                    return Err(NoStack::Memory(error));
                }
                // A page that has gone is no error of the process, but of a torn pointer.
                Err(torn) => {
                    // It may be the thread itself that has gone.
                    if tried == TRIES / 2 {
                        self.threads.remove(&thread);
                    }
                    last = torn;
                }
            }
        }
        Err(last)
    }

    fn try_stack(&mut self, thread: u32, now_ns: i64, into: &mut Vec<u64>) -> Result<(), NoStack> {
        let mut known = match self.threads.remove(&thread) {
            Some(known) => known,
            None => self.find(thread)?,
        };
        // Where pages of the last time have gone, those of this time are read one by one.
        if self.snapshot.take(self.memory, &known.pages).is_err() {
            self.snapshot.take(self.memory, &[])?;
        }
        let (mut first, mut second) = (
            std::mem::take(&mut self.first),
            std::mem::take(&mut self.second),
        );
        let agreed = self.walk_twice(thread, &mut known, &mut first, &mut second);
        let result = agreed.and_then(|()| {
            into.clear();
            for raw in first.iter().rev() {
                into.push(self.codes.place(raw.code, raw.instruction, now_ns)?);
            }
            Ok(())
        });
        (self.first, self.second) = (first, second);
        self.threads.insert(thread, known);
        result
    }

    fn walk_twice(
        &mut self,
        thread: u32,
        known: &mut Known,
        first: &mut Vec<Raw>,
        second: &mut Vec<Raw>,
    ) -> Result<(), NoStack> {
        self.walk(thread, known.state, first)?;
        known.pages.clear();
        known.pages.extend(self.snapshot.used());
        self.snapshot.take(self.memory, &known.pages)?;
        self.walk(thread, known.state, second)?;
        if agree(first, second) {
            Ok(())
        } else {
            Err(NoStack::Changing)
        }
    }

    /// The frames of a thread, innermost first.
    fn walk(&mut self, thread: u32, state: u64, into: &mut Vec<Raw>) -> Result<(), NoStack> {
        into.clear();
        let mut bytes = [0; STRUCTURE_BYTES];
        let bytes_of_state = &mut bytes[..self.layout.thread_bytes()];
        self.snapshot.read(self.memory, state, bytes_of_state)?;
        let found = self.layout.thread(bytes_of_state)?;
        if found.native_id != u64::from(thread) {
            return Err(Inconsistent("a thread has ended").into());
        }
        let mut frame = match found.current {
            CurrentFrame::Frame(frame) => frame,
            CurrentFrame::AddressAt(address) => {
                let mut word = [0; 8];
                self.snapshot.read(self.memory, address, &mut word)?;
                u64::from_le_bytes(word)
            }
        };
        let bytes_of_frame = &mut bytes[..self.layout.frame_bytes()];
        let mut frames = 0;
        while frame != 0 {
            frames += 1;
            if frames > MOST_FRAMES {
                return Err(Inconsistent("a stack has no end").into());
            }
            self.snapshot.read(self.memory, frame, bytes_of_frame)?;
            let read = self.layout.frame(bytes_of_frame)?;
            if read.code != 0 {
                into.push(Raw {
                    frame,
                    code: read.code,
                    instruction: read.instruction,
                });
            }
            frame = read.previous;
        }
        Ok(())
    }

    fn find(&self, thread: u32) -> Result<Known, NoStack> {
        let mut interpreter = self
            .memory
            .word(sum(self.runtime, self.layout.first_interpreter)?)?;
        let mut bytes = [0; STRUCTURE_BYTES];
        let bytes = &mut bytes[..self.layout.thread_bytes()];
        let mut threads = 0..MOST_THREADS;
        for _ in 0..MOST_INTERPRETERS {
            if interpreter == 0 {
                break;
            }
            let field = |offset| self.memory.word(sum(interpreter, offset)?);
            let mut state = field(self.layout.first_thread)?;
            for _ in threads.by_ref() {
                if state == 0 {
                    break;
                }
                self.memory.read(state, bytes)?;
                let found = self.layout.thread(bytes)?;
                if found.native_id == u64::from(thread) {
                    return Ok(Known {
                        state,
                        interpreter,
                        pages: Vec::new(),
                    });
                }
                state = found.next;
            }
            if threads.is_empty() {
                break;
            }
            interpreter = field(self.layout.next_interpreter)?;
        }
        Err(NoStack::NotPython)
    }

    /// The thread that has the lock of the interpreter, where `thread` waits for it: at `address`, the first argument of `futex`.
    pub fn lock_holder(&self, thread: u32, address: u64) -> Option<u32> {
        let known = self.threads.get(&thread)?;
        let (base, lock) = self.lock(known.interpreter)?;
        let start = sum(base, lock.holder).ok()?;
        // The words that a thread waits at come after those that say who has the lock.
        (start..start.saturating_add(LOCK_BYTES))
            .contains(&address)
            .then_some(())?;
        let mut locked = [0; 4];
        let is_locked = |locked: [u8; 4]| i32::from_le_bytes(locked) == 1;
        self.memory
            .read(sum(base, lock.locked).ok()?, &mut locked)
            .ok()?;
        let state = self.memory.word(start).ok()?;
        if !is_locked(locked) || state == known.state || state == 0 {
            return None;
        }
        let mut bytes = [0; STRUCTURE_BYTES];
        let bytes = &mut bytes[..self.layout.thread_bytes()];
        self.memory.read(state, bytes).ok()?;
        let holder = self.layout.thread(bytes).ok()?.native_id;
        u32::try_from(holder)
            .ok()
            .filter(|holder| *holder != 0 && *holder != thread)
    }

    fn lock(&self, interpreter: u64) -> Option<(u64, LockOffsets)> {
        match self.layout.lock {
            Lock::InRuntime(lock) => Some((self.runtime, lock)),
            Lock::InInterpreter(lock) => Some((interpreter, lock)),
            Lock::BehindInterpreter { pointer, lock } => {
                let base = self.memory.word(sum(interpreter, pointer).ok()?).ok()?;
                Some((base, lock))
            }
        }
    }

    /// Where a number of [`Self::stack`] is, while it is new.
    pub fn place(&self, place: u64) -> Option<Place> {
        self.codes.find(place)
    }
}

fn sum(base: u64, offset: u64) -> io::Result<u64> {
    base.checked_add(offset)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))
}

/// True where a stack is the same in two reads, but for its innermost frame, or has grown or shrunk. Both are innermost first.
fn agree(first: &[Raw], second: &[Raw]) -> bool {
    let pairs = first.iter().rev().zip(second.iter().rev());
    let same = pairs
        .take_while(|(a, b)| a.frame == b.frame && a.code == b.code)
        .count();
    first.len() - same <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(codes: &[u64]) -> Vec<Raw> {
        let raw = |(depth, code): (usize, &u64)| Raw {
            frame: depth as u64 * 100,
            code: *code,
            instruction: 0,
        };
        codes.iter().enumerate().map(raw).rev().collect()
    }

    #[test]
    fn what_changed_at_the_inner_end_is_believed() {
        let first = stack(&[1, 2, 3]);
        assert!(agree(&first, &stack(&[1, 2, 3])));
        assert!(agree(&first, &stack(&[1, 2])), "it returned");
        assert!(agree(&first, &stack(&[1, 2, 3, 4, 5])), "it called");
        assert!(agree(&first, &stack(&[1, 2, 9])), "it returned and called");
        assert!(!agree(&first, &stack(&[1, 9, 3])), "another caller");
        assert!(!agree(&first, &stack(&[1])));
        assert!(agree(&[], &[]));
    }
}
