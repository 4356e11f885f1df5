//! Decodes `_Py_DebugOffsets`, in which an interpreter from 3.13 on publishes its offsets. The position of each
//! offset depends on the minor version.

use super::bytes::{at, word};
use super::layout::{
    CodeOffsets, FrameOffsets, HEADER_BYTES, Layout, Lock, LockOffsets, STRUCTURE_BYTES,
    TextOffsets, ThreadOffsets, Unsupported, Version,
};

/// The bytes that the table begins with.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// The greatest offset in `_PyRuntime` and interpreters, which are large; a table with a greater one is refused.
const MAX_INTERPRETER_OFFSET: u64 = 16 << 20;
/// The size of `PyCompactUnicodeObject` less that of `PyASCIIObject`.
const COMPACT_MORE_BYTES: u64 = 16;

/// The positions from here to `FIRST_THREAD`, in words, are the same in all versions.
const VERSION: u64 = 1;
const FREE_THREADED: u64 = 2;
const FIRST_INTERPRETER: u64 = 5;
const NEXT_INTERPRETER: u64 = 8;
const FIRST_THREAD: u64 = 9;

/// The positions of one offset in the table, in words (8 bytes), in Python 3.13, 3.14 and 3.15.
type Positions = [u64; 3];

const LOCKED: Positions = [17, 18, 18];
const HOLDER: Positions = [18, 19, 19];
const THREAD_NEXT: Positions = [21, 24, 24];
const CURRENT_FRAME: Positions = [23, 26, 26];
const NATIVE_ID: Positions = [25, 28, 31];
const CHUNK: Positions = [26, 29, 32];
const PREVIOUS: Positions = [29, 32, 40];
const EXECUTABLE: Positions = [30, 33, 41];
const INSTRUCTION: Positions = [31, 34, 42];
const OWNER: Positions = [33, 36, 44];
const FILE: Positions = [35, 40, 48];
const QUALIFIED_NAME: Positions = [37, 42, 50];
const LINES: Positions = [38, 43, 51];
const FIRST_LINE: Positions = [39, 44, 52];
const INSTRUCTIONS: Positions = [43, 48, 56];
const BYTES_DATA: Positions = [66, 76, 88];
const TEXT_STATE: Positions = [68, 78, 90];
const TEXT_LENGTH: Positions = [69, 79, 91];
const ASCII_BYTES: Positions = [70, 80, 92];

/// Returns the layout that a table describes. It is refused where its cookie or version differs, or an offset is too
/// large.
pub fn layout(version: Version, table: &[u8]) -> Result<Layout, Unsupported> {
    let entry = |place: u64| word(table, place * 8).map_err(|_| Unsupported::Table);
    if at(table, 0) != Ok(*COOKIE) || entry(VERSION)? != u64::from(version.0) {
        return Err(Unsupported::Table);
    }
    if entry(FREE_THREADED)? != 0 {
        return Err(Unsupported::FreeThreaded);
    }
    let column = match version.minor() {
        minor @ 13..=15 => usize::from(minor - 13),
        _ => return Err(Unsupported::Version(version)),
    };
    let below = |place: u64, max: u64| {
        entry(place).and_then(|offset| {
            let is_one = offset <= max;
            is_one.then_some(offset).ok_or(Unsupported::Table)
        })
    };
    let large = |place| below(place, MAX_INTERPRETER_OFFSET);
    // This leaves room for the word at the offset.
    let small = |positions: Positions| below(positions[column], STRUCTURE_BYTES as u64 - 8);
    let header = |positions: Positions| below(positions[column], HEADER_BYTES as u64 - 8);
    let ascii_data = header(ASCII_BYTES)?;
    Ok(Layout {
        first_interpreter: large(FIRST_INTERPRETER)?,
        next_interpreter: large(NEXT_INTERPRETER)?,
        first_thread: large(FIRST_THREAD)?,
        lock: Lock::InInterpreter(LockOffsets {
            holder: large(HOLDER[column])?,
            locked: large(LOCKED[column])?,
        }),
        thread: ThreadOffsets {
            next: small(THREAD_NEXT)?,
            frame: small(CURRENT_FRAME)?,
            behind: None,
            native_id: small(NATIVE_ID)?,
            chunk: small(CHUNK)?,
        },
        frame: FrameOffsets {
            code: small(EXECUTABLE)?,
            previous: small(PREVIOUS)?,
            instruction: small(INSTRUCTION)?,
            owner: small(OWNER)?,
        },
        code: CodeOffsets {
            file: small(FILE)?,
            name: small(QUALIFIED_NAME)?,
            lines: small(LINES)?,
            first_line: small(FIRST_LINE)?,
            instructions: small(INSTRUCTIONS)?,
        },
        text: TextOffsets {
            length: header(TEXT_LENGTH)?,
            state: header(TEXT_STATE)?,
            ascii_data,
            other_data: ascii_data + COMPACT_MORE_BYTES,
        },
        bytes_data: header(BYTES_DATA)?,
    })
}
