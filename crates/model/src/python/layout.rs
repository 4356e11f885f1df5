//! Defines [`Layout`], the offsets of fields in the memory structures of a Python interpreter that its stacks are
//! read from, and lists them by version.

use std::fmt;

/// Number of bytes from the start of `_PyRuntime` that [`Layout::for_version`] needs.
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

    pub(super) fn major(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Returns true before the first release candidate, whose level is `0xc`.
    pub(super) fn is_alpha_or_beta(self) -> bool {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The layout of this version is unknown.
    #[error("Python {0}: 3.11 to 3.15 can be read")]
    Version(Version),
    /// The layout of this version may differ from that of the release.
    #[error("Python {0} is an alpha or beta version")]
    Unreleased(Version),
    /// The interpreter has no lock, and other object headers.
    #[error("a free-threaded Python cannot be read")]
    FreeThreaded,
    /// The interpreter's table of offsets is missing or makes no sense.
    #[error("the interpreter's table of offsets makes no sense")]
    Table,
}

/// The memory layout of an interpreter. Offsets are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Offset in `_PyRuntime` of the address of the first interpreter.
    pub first_interpreter: u64,
    /// Offset in an interpreter of the address of the next one.
    pub next_interpreter: u64,
    /// Offset in an interpreter of the address of its first thread state.
    pub first_thread: u64,
    /// Position of the interpreter's lock (GIL).
    pub lock: Lock,
    pub(super) thread: ThreadOffsets,
    pub(super) frame: FrameOffsets,
    pub(super) code: CodeOffsets,
    pub(super) text: TextOffsets,
    /// Offset in a `bytes` object of its first byte.
    pub(super) bytes_data: u64,
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
        /// Offsets in the structure that the pointer points to.
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

/// The offsets of fields of a thread state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadOffsets {
    pub next: u64,
    /// Offset of the frame's address; where `behind` is set, of the address of a structure with the frame at offset
    /// `behind`.
    pub frame: u64,
    /// The frame's offset in that structure; `None` where the thread state has the frame's address itself.
    pub behind: Option<u64>,
    pub native_id: u64,
    /// Offset of the address of the chunk of memory with most frames.
    pub chunk: u64,
}

/// The offsets of fields of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameOffsets {
    pub code: u64,
    pub previous: u64,
    pub instruction: u64,
    /// Offset of the byte that says whose frame it is.
    pub owner: u64,
}

/// The offsets of fields of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeOffsets {
    pub file: u64,
    pub name: u64,
    /// Offset of the address of the line table.
    pub lines: u64,
    pub first_line: u64,
    /// Offset of the first instruction itself, which is part of the code object.
    pub instructions: u64,
}

/// The offsets of fields of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextOffsets {
    pub length: u64,
    /// Offset of the bits that say how characters are stored.
    pub state: u64,
    /// Offset of the characters of a string that is all ASCII.
    pub ascii_data: u64,
    /// Offset of the characters of any other string.
    pub other_data: u64,
}
