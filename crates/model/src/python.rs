//! Decodes the stacks of CPython's threads from memory: 3.11 to 3.15, builds with a lock (GIL), 64 bits,
//! little-endian.
//!
//! The functions are pure and work on bytes that the caller has read: the session reads the memory of another
//! process, which changes meanwhile, and the hook that of its own thread. The bytes are not trusted: nonsense is
//! [`Inconsistent`].
//!
//! From 3.13 on the interpreter publishes its offsets (`_Py_DebugOffsets`, at the start of `_PyRuntime`); before that
//! they are constants of the version.

mod lines;
mod table;
mod text;

pub use lines::Lines;
pub use text::Text;

use std::fmt;

/// Number of bytes from the start of `_PyRuntime` that [`Layout::of`] needs.
pub const TABLE_BYTES: usize = 128 * 8;

/// Number of bytes of an object that [`Layout::text`] and [`Layout::bytes_length`] need.
pub const HEADER_BYTES: usize = 64;

/// The most bytes that this module asks for of any structure.
pub const STRUCTURE_BYTES: usize = 4096;

/// A version of Python, encoded like `Py_Version`: `0x030c01f0` is 3.12.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub u32);

impl Version {
    /// Returns the minor version, such as the 12 of 3.12.1.
    pub fn minor(self) -> u8 {
        (self.0 >> 16) as u8
    }

    fn major(self) -> u8 {
        (self.0 >> 24) as u8
    }

    fn is_alpha_or_beta(self) -> bool {
        (self.0 >> 4) & 0xf < 0xc
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())?;
        write!(f, ".{}", (self.0 >> 8) as u8)
    }
}

/// Why the stacks of an interpreter cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// The layout of this version is unknown.
    Version(Version),
    /// The layout of this version may differ from that of the release.
    Unreleased(Version),
    /// The interpreter has no lock, and other object headers.
    FreeThreaded,
    /// The interpreter's table of offsets is missing or makes no sense.
    Table,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "Python {version}: 3.11 to 3.15 can be read"),
            Self::Unreleased(version) => {
                write!(f, "Python {version} is an alpha or beta version")
            }
            Self::FreeThreaded => f.write_str("a free-threaded Python cannot be read"),
            Self::Table => f.write_str("the interpreter's table of offsets makes no sense"),
        }
    }
}

impl std::error::Error for Unsupported {}

/// Bytes that are inconsistent, because they changed while they were read or are something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inconsistent(pub &'static str);

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Inconsistent {}

/// The memory layout of an interpreter. Offsets are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Offset in `_PyRuntime` of the address of the first interpreter.
    pub first_interpreter: u64,
    /// Offset in an interpreter of the address of the next one.
    pub next_interpreter: u64,
    /// Offset in an interpreter of the address of its first thread state.
    pub first_thread: u64,
    /// Position of the lock.
    pub lock: Lock,
    thread: ThreadOffsets,
    frame: FrameOffsets,
    code: CodeOffsets,
    text: TextOffsets,
    /// Offset in a `bytes` object of its first byte.
    bytes_data: u64,
}

/// The position of the interpreter's lock (GIL), which knows its last holder and whether it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// The lock is in `_PyRuntime`.
    InRuntime(LockOffsets),
    /// The lock is in the interpreter.
    InInterpreter(LockOffsets),
    /// The interpreter has a pointer to the lock.
    BehindInterpreter {
        /// Offset of the pointer in the interpreter.
        pointer: u64,
        /// Offsets in the structure that it points to.
        lock: LockOffsets,
    },
}

/// Offsets of the two fields of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockOffsets {
    /// The address of the thread state that holds or held the lock: 8 bytes.
    pub holder: u64,
    /// Whether the lock is held: 1 in 4 bytes.
    pub locked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ThreadOffsets {
    next: u64,
    /// Offset of the frame's address; where `behind` is set, of the address of a structure with the frame at offset
    /// `behind`.
    frame: u64,
    behind: Option<u64>,
    native_id: u64,
    chunk: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameOffsets {
    code: u64,
    previous: u64,
    instruction: u64,
    owner: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeOffsets {
    file: u64,
    name: u64,
    lines: u64,
    first_line: u64,
    instructions: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextOffsets {
    length: u64,
    state: u64,
    ascii_data: u64,
    other_data: u64,
}

/// A thread state of the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The address of the next thread state, or 0.
    pub next: u64,
    /// The system's id, in the thread's own PID namespace.
    pub native_id: u64,
    /// The address of the chunk of memory with most of its frames, or 0.
    pub chunk: u64,
    /// The innermost frame.
    pub current: Current,
}

/// The location of the innermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Current {
    /// The frame's address; 0 when the thread runs no Python.
    Frame(u64),
    /// The address of the frame's address.
    AddressAt(u64),
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The address of the code object; 0 for a frame of the interpreter itself.
    pub code: u64,
    /// The address of the current instruction.
    pub instruction: u64,
    /// The address of the caller's frame, or 0.
    pub previous: u64,
}

/// The fields of a code object.
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
    pub fn of(version: Version, table: &[u8]) -> Result<Layout, Unsupported> {
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
            None => Current::Frame(frame),
            Some(offset) => Current::AddressAt(
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

    /// Decodes a frame.
    pub fn frame(&self, bytes: &[u8]) -> Result<Frame, Inconsistent> {
        let owner = *at::<1>(bytes, self.frame.owner)?
            .first()
            .unwrap_or(&u8::MAX);
        // The last two bits of references are flags from 3.14 on, and 0 before.
        let code = word(bytes, self.frame.code)? & !3;
        let previous = word(bytes, self.frame.previous)?;
        if owner > MOST_OWNER || previous % 8 != 0 || code % 8 != 0 {
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
            .filter(|length| *length <= lines::MOST_BYTES)
            .ok_or(Inconsistent("a line table is not one"))
    }

    /// Returns the offset of the bytes in a `bytes`.
    pub fn bytes_offset(&self) -> u64 {
        self.bytes_data
    }
}

/// The owners of frames are thread, generator, frame object, interpreter, C stack.
const MOST_OWNER: u8 = 4;
const GENERATOR_OWNER: u8 = 1;
const INTERPRETER_OWNER: u8 = 3;
/// `PyVarObject.ob_size`, the same in every build with a lock.
const VARIABLE_LENGTH: u64 = 16;

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

const PYTHON_3_12: Layout = Layout {
    first_interpreter: 40,
    next_interpreter: 0,
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
        file: 112,
        name: 128,
        lines: 136,
        first_line: 68,
        instructions: 192,
    },
    text: TextOffsets {
        length: 16,
        state: 32,
        ascii_data: 40,
        other_data: 56,
    },
    bytes_data: 32,
};

fn word(bytes: &[u8], offset: u64) -> Result<u64, Inconsistent> {
    Ok(u64::from_le_bytes(at(bytes, offset)?))
}

fn at<const N: usize>(bytes: &[u8], offset: u64) -> Result<[u8; N], Inconsistent> {
    let start = usize::try_from(offset).ok();
    start
        .and_then(|start| bytes.get(start..)?.first_chunk::<N>())
        .copied()
        .ok_or(Inconsistent("fewer bytes than a structure has"))
}

#[cfg(test)]
mod tests;
