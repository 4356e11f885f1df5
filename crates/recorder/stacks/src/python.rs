//! Reads the Python stacks of one interpreter in a process that keeps running: [`attach()`] finds the interpreter and
//! makes a [`Reader`], [`Reader::stack`] reads a thread's stack as numbers, and [`Reader::location`] tells the
//! function, file and line of a number.
//!
//! A stack that is read while it changes mixes moments some microseconds apart. It is therefore read twice and believed where both
//! reads agree except for the innermost frame, whose caller was there all the time. A stack that does not agree is read again, a few times.

mod attach;
mod code_objects;
mod no_stack;

pub use attach::{Attachment, attach, read_at};
pub use code_objects::Location;
pub use no_stack::NoStack;

use crate::memory::{Memory, Snapshot};
use code_objects::CodeObjects;
use gapscope_model::python::{
    CurrentFrame, Inconsistent, Layout, Lock, LockOffsets, STRUCTURE_BYTES,
};
use rustc_hash::FxHashMap;
use std::io;

/// How often a stack is read before it is given up.
const MAX_READS: u32 = 16;
/// A deeper stack is taken for a torn one. Python's own limit is 1,000.
const MAX_FRAMES: usize = 4096;
/// The limits over all interpreters together: torn lists may be circular.
const MAX_THREADS: usize = 16_384;
const MAX_INTERPRETERS: usize = 256;
/// The size below which an address belongs to a lock: the address that a thread waits at tells which lock it waits for.
const LOCK_BYTES: u64 = 256;
/// How long a thread that the interpreter does not know is not looked up again.
const UNKNOWN_KEPT_NS: i64 = 100_000_000;

/// A frame as it is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RawFrame {
    /// The frame's address.
    frame: u64,
    /// The address of its code object (the interpreter's object for the code of a function).
    code: u64,
    /// The address of the instruction in it.
    instruction: u64,
}

/// A thread's state and the pages that hold its stack.
#[derive(Debug, Default)]
struct KnownThread {
    /// The address of the interpreter's structure for the thread.
    state: u64,
    /// The address of the (sub)interpreter that the thread belongs to.
    interpreter: u64,
    /// The pages that the last sample used.
    pages: Vec<u64>,
}

/// A reader of the stacks of one interpreter.
#[derive(Debug)]
pub struct Reader {
    memory: Memory,
    /// The offsets of fields in the structures of the interpreter's version.
    layout: Layout,
    /// The address of `_PyRuntime`.
    runtime: u64,
    codes: CodeObjects,
    /// The threads that were found, by their numbers.
    threads: FxHashMap<u32, KnownThread>,
    /// The threads that the interpreter does not know, with the time of the last search.
    unknown: FxHashMap<u32, i64>,
    snapshot: Snapshot,
    /// Buffers for the two reads of a stack.
    first: Vec<RawFrame>,
    second: Vec<RawFrame>,
}

impl Reader {
    fn new(memory: Memory, layout: Layout, runtime: u64, code_type: Option<u64>) -> Reader {
        Reader {
            memory,
            layout,
            runtime,
            codes: CodeObjects::new(memory, layout, code_type),
            threads: FxHashMap::default(),
            unknown: FxHashMap::default(),
            snapshot: Snapshot::default(),
            first: Vec::new(),
            second: Vec::new(),
        }
    }

    /// Reads the stack of a thread, outermost frame first, as numbers for [`Self::location`]. `thread` is its number in its own PID namespace.
    pub fn stack(&mut self, thread: u32, now_ns: i64, into: &mut Vec<u64>) -> Result<(), NoStack> {
        into.clear();
        if let Some(asked) = self.unknown.get(&thread)
            && now_ns - asked < UNKNOWN_KEPT_NS
        {
            return Err(NoStack::NotPython);
        }
        self.codes.start_stack();
        let mut last = NoStack::Changing;
        for tried in 0..MAX_READS {
            match self.try_stack(thread, now_ns, into) {
                Ok(()) => return Ok(()),
                Err(NoStack::NotPython) => {
                    if self.unknown.len() >= MAX_THREADS {
                        self.unknown.clear();
                    }
                    self.unknown.insert(thread, now_ns);
                    return Err(NoStack::NotPython);
                }
                Err(NoStack::Memory(error)) if error.raw_os_error() != Some(libc::EFAULT) => {
                    return Err(NoStack::Memory(error));
                }
                // A missing page is the fault of a torn pointer, not of the process.
                Err(torn) => {
                    // The thread itself may have ended.
                    if tried == MAX_READS / 2 {
                        self.threads.remove(&thread);
                    }
                    last = torn;
                }
            }
        }
        Err(last)
    }

    /// Reads the stack once, see [`Self::stack`].
    fn try_stack(&mut self, thread: u32, now_ns: i64, into: &mut Vec<u64>) -> Result<(), NoStack> {
        let mut known = match self.threads.remove(&thread) {
            Some(known) => known,
            None => self.find(thread)?,
        };
        // Where pages of the last sample are gone, those of this sample are read one by one.
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
                into.push(self.codes.number(raw.code, raw.instruction, now_ns)?);
            }
            Ok(())
        });
        (self.first, self.second) = (first, second);
        self.threads.insert(thread, known);
        result
    }

    /// Reads the frames twice, in memory that is read anew; fails when the reads do not agree.
    fn walk_twice(
        &mut self,
        thread: u32,
        known: &mut KnownThread,
        first: &mut Vec<RawFrame>,
        second: &mut Vec<RawFrame>,
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

    /// Reads the frames of a thread, innermost first.
    fn walk(&mut self, thread: u32, state: u64, into: &mut Vec<RawFrame>) -> Result<(), NoStack> {
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
            if frames > MAX_FRAMES {
                return Err(Inconsistent("a stack has no end").into());
            }
            self.snapshot.read(self.memory, frame, bytes_of_frame)?;
            let read = self.layout.frame(bytes_of_frame)?;
            if read.code != 0 {
                into.push(RawFrame {
                    frame,
                    code: read.code,
                    instruction: read.instruction,
                });
            }
            frame = read.previous;
        }
        Ok(())
    }

    /// Searches the interpreter's list of threads; fails with [`NoStack::NotPython`] when the thread is not in it.
    fn find(&self, thread: u32) -> Result<KnownThread, NoStack> {
        let mut interpreter = self
            .memory
            .word(sum(self.runtime, self.layout.first_interpreter)?)?;
        let mut bytes = [0; STRUCTURE_BYTES];
        let bytes = &mut bytes[..self.layout.thread_bytes()];
        let mut threads = 0..MAX_THREADS;
        for _ in 0..MAX_INTERPRETERS {
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
                    return Ok(KnownThread {
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

    /// Returns the thread that holds the interpreter's lock, where `thread` waits for it at `address`, the first argument of `futex`.
    pub fn lock_holder(&self, thread: u32, address: u64) -> Option<u32> {
        let known = self.threads.get(&thread)?;
        let (base, lock) = self.lock(known.interpreter)?;
        let start = sum(base, lock.holder).ok()?;
        // The words that a thread waits at follow the fields that name the holder.
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

    /// Returns the address from which the lock's fields are counted, and their offsets.
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

    /// Returns the location of a number from [`Self::stack`], as long as its code object is kept.
    pub fn location(&self, number: u64) -> Option<Location> {
        self.codes.location(number)
    }
}

/// Adds an offset to an address that may be torn.
fn sum(base: u64, offset: u64) -> io::Result<u64> {
    base.checked_add(offset)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))
}

/// Returns whether the second read of a stack has all frames of the first, or all but the innermost, and maybe more.
fn agree(first: &[RawFrame], second: &[RawFrame]) -> bool {
    let pairs = first.iter().rev().zip(second.iter().rev());
    let same = pairs
        .take_while(|(a, b)| a.frame == b.frame && a.code == b.code)
        .count();
    first.len() - same <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stack of these code objects, given outermost first, as two reads are compared: innermost first.
    fn stack(codes: &[u64]) -> Vec<RawFrame> {
        let raw = |(depth, code): (usize, &u64)| RawFrame {
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
