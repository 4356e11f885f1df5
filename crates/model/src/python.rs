//! Decodes the stacks of CPython's threads from memory: 3.11 to 3.15, builds with a lock (GIL), 64 bits,
//! little-endian. A caller reads a thread state, then its frames from the innermost outwards, then the code object of
//! each with its name, path and line table, and passes the bytes of each to the method of [`Layout`] of that name.
//!
//! The functions are pure and work on bytes that the caller has read: the session (gapscope's process that writes the
//! trace) reads the memory of another process, which changes meanwhile, and the hook (gapscope's library in the
//! program) that of its own thread. The bytes are not trusted: nonsense is [`Inconsistent`].
//!
//! From 3.13 on the interpreter publishes its offsets (`_Py_DebugOffsets`, at the start of `_PyRuntime`); before that
//! they are constants of the version.

mod bytes;
mod layout;
mod lines;
mod table;
mod text;

pub use bytes::Inconsistent;
pub use layout::{
    HEADER_BYTES, Layout, Lock, LockOffsets, STRUCTURE_BYTES, TABLE_BYTES, Unsupported, Version,
};
pub use lines::Lines;
pub use text::Text;

use bytes::{at, word};
use layout::{CodeOffsets, FrameOffsets, TextOffsets, ThreadOffsets};

/// A thread state, the interpreter's structure for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The address of the next thread state, or 0.
    pub next: u64,
    /// The system's id, in the thread's own PID namespace.
    pub native_id: u64,
    /// The address of the chunk of memory with most of its frames, or 0.
    pub chunk: u64,
    /// The innermost frame.
    pub current: CurrentFrame,
}

/// The location of the innermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurrentFrame {
    /// The frame's address; 0 when the thread runs no Python.
    Frame(u64),
    /// The address of the frame's address.
    AddressAt(u64),
}

/// A frame: a call of a Python function that runs on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The address of the code object; 0 for a frame of the interpreter itself.
    pub code: u64,
    /// The address of the current instruction.
    pub instruction: u64,
    /// The address of the caller's frame, or 0.
    pub previous: u64,
}

/// The fields of a code object, which describes a compiled Python function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The address of the qualified name, a string.
    pub name: u64,
    /// The address of the file's path, a string.
    pub file: u64,
    /// The address of the line table, a `bytes`.
    pub lines: u64,
    /// The line of its `def`.
    pub first_line: i32,
    /// Offset of the first instruction in the code object.
    pub instructions: u64,
}

impl Layout {
    /// Returns the layout of a version. `table` is the first [`TABLE_BYTES`] bytes of `_PyRuntime`, or as many as
    /// exist; it is ignored before 3.13.
    pub fn for_version(version: Version, table: &[u8]) -> Result<Layout, Unsupported> {
        if version.major() != 3 || !(11..=15).contains(&version.minor()) {
            return Err(Unsupported::Version(version));
        }
        if version.is_alpha_or_beta() {
            return Err(Unsupported::Unreleased(version));
        }
        match version.minor() {
            11 => Ok(PYTHON_3_11),
            12 => Ok(PYTHON_3_12),
            _ => table::layout(version, table),
        }
    }

    /// Returns the number of bytes of a thread state that [`Self::thread`] needs; at most [`STRUCTURE_BYTES`].
    pub fn thread_bytes(&self) -> usize {
        let thread = &self.thread;
        let fields = [thread.next, thread.frame, thread.native_id, thread.chunk];
        fields.into_iter().max().unwrap_or_default() as usize + 8
    }

    /// Decodes a thread state.
    pub fn thread(&self, bytes: &[u8]) -> Result<Thread, Inconsistent> {
        let frame = word(bytes, self.thread.frame)?;
        let current = match self.thread.behind {
            None => CurrentFrame::Frame(frame),
            Some(offset) => CurrentFrame::AddressAt(
                frame
                    .checked_add(offset)
                    .ok_or(Inconsistent("the address of a frame makes no sense"))?,
            ),
        };
        Ok(Thread {
            next: word(bytes, self.thread.next)?,
            native_id: word(bytes, self.thread.native_id)?,
            chunk: word(bytes, self.thread.chunk)?,
            current,
        })
    }

    /// Returns the number of bytes of a frame that [`Self::frame`] needs; at most [`STRUCTURE_BYTES`].
    pub fn frame_bytes(&self) -> usize {
        let frame = &self.frame;
        let words = frame.code.max(frame.previous).max(frame.instruction) + 8;
        words.max(frame.owner + 1) as usize
    }

    /// Decodes a frame from its bytes.
    pub fn frame(&self, bytes: &[u8]) -> Result<Frame, Inconsistent> {
        let owner = *at::<1>(bytes, self.frame.owner)?
            .first()
            .unwrap_or(&u8::MAX);
        // The last two bits of references are flags from 3.14 on, and 0 before.
        let code = word(bytes, self.frame.code)? & !3;
        let previous = word(bytes, self.frame.previous)?;
        if owner > MAX_OWNER || previous % 8 != 0 || code % 8 != 0 {
            return Err(Inconsistent("a frame is not a frame"));
        }
        // A running generator has a caller; one that has just yielded has none.
        if owner == GENERATOR_OWNER && previous == 0 {
            return Err(Inconsistent("a generator does not run"));
        }
        let has_code = owner < INTERPRETER_OWNER;
        if has_code && code == 0 {
            return Err(Inconsistent("a frame has no code"));
        }
        Ok(Frame {
            code: if has_code { code } else { 0 },
            instruction: word(bytes, self.frame.instruction)?,
            previous,
        })
    }

    /// Returns the number of bytes of a code object that [`Self::code`] needs; at most [`STRUCTURE_BYTES`].
    pub fn code_bytes(&self) -> usize {
        let code = &self.code;
        let fields = [code.file, code.name, code.lines, code.first_line];
        fields.into_iter().max().unwrap_or_default() as usize + 8
    }

    /// Decodes a code object.
    pub fn code(&self, bytes: &[u8]) -> Result<Code, Inconsistent> {
        let code = Code {
            name: word(bytes, self.code.name)?,
            file: word(bytes, self.code.file)?,
            lines: word(bytes, self.code.lines)?,
            first_line: i32::from_le_bytes(at(bytes, self.code.first_line)?),
            instructions: self.code.instructions,
        };
        let is_object = |address: u64| address != 0 && address.is_multiple_of(8);
        if ![code.name, code.file, code.lines]
            .into_iter()
            .all(is_object)
            || code.first_line < 0
        {
            return Err(Inconsistent("a code object is not one"));
        }
        Ok(code)
    }

    /// Decodes the header of a string ([`HEADER_BYTES`]) into the location of its characters.
    pub fn text(&self, header: &[u8]) -> Result<Text, Inconsistent> {
        text::text(&self.text, header)
    }

    /// Decodes the length from the header of a `bytes` ([`HEADER_BYTES`]). Its bytes begin at [`Self::bytes_offset`].
    pub fn bytes_length(&self, header: &[u8]) -> Result<usize, Inconsistent> {
        let length = word(header, VARIABLE_LENGTH)?;
        usize::try_from(length)
            .ok()
            .filter(|length| *length <= lines::MAX_TABLE_BYTES)
            .ok_or(Inconsistent("a line table is not one"))
    }

    /// Returns the offset of the bytes in a `bytes`.
    pub fn bytes_offset(&self) -> u64 {
        self.bytes_data
    }
}

/// The owners of frames are thread, generator, frame object, interpreter, C stack.
const MAX_OWNER: u8 = 4;
/// The owner of a frame that belongs to a generator.
const GENERATOR_OWNER: u8 = 1;
/// From this owner on, a frame is the interpreter's own and has no code object.
const INTERPRETER_OWNER: u8 = 3;
/// `PyVarObject.ob_size`, the same in every build with a lock.
const VARIABLE_LENGTH: u64 = 16;

/// The offsets of 3.11, which publishes no table.
const PYTHON_3_11: Layout = Layout {
    first_interpreter: 40,
    next_interpreter: 0,
    first_thread: 16,
    lock: Lock::InRuntime(LockOffsets {
        holder: 368,
        locked: 376,
    }),
    thread: ThreadOffsets {
        next: 8,
        frame: 56,
        behind: Some(8),
        native_id: 160,
        chunk: 296,
    },
    frame: FrameOffsets {
        code: 32,
        previous: 48,
        instruction: 56,
        owner: 69,
    },
    code: CodeOffsets {
        file: 112,
        name: 128,
        lines: 136,
        first_line: 72,
        instructions: 184,
    },
    text: TextOffsets {
        length: 16,
        state: 32,
        ascii_data: 48,
        other_data: 72,
    },
    bytes_data: 32,
};

/// The offsets of 3.12, which publishes no table.
const PYTHON_3_12: Layout = Layout {
    first_thread: 72,
    lock: Lock::BehindInterpreter {
        pointer: 384,
        lock: LockOffsets {
            holder: 8,
            locked: 16,
        },
    },
    thread: ThreadOffsets {
        next: 8,
        frame: 56,
        behind: Some(0),
        native_id: 144,
        chunk: 232,
    },
    frame: FrameOffsets {
        code: 0,
        previous: 8,
        instruction: 56,
        owner: 70,
    },
    code: CodeOffsets {
        first_line: 68,
        instructions: 192,
        ..PYTHON_3_11.code
    },
    text: TextOffsets {
        ascii_data: 40,
        other_data: 56,
        ..PYTHON_3_11.text
    },
    ..PYTHON_3_11
};

#[cfg(test)]
mod tests;
