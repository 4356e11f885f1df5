//! Decodes `_Py_DebugOffsets`, in which an interpreter from 3.13 on publishes its offsets. The position of each
//! offset depends on the minor version.

use super::bytes::{at, word};
use super::layout::{
    CodeOffsets, FrameOffsets, HEADER_BYTES, Layout, Lock, LockOffsets, STRUCTURE_BYTES,
    TextOffsets, ThreadOffsets, Unsupported, Version,
};

const COOKIE: &[u8; 8] = b"xdebugpy";
/// The greatest offset in `_PyRuntime` and interpreters, which are large; a table with a greater one is refused.
const MAX_INTERPRETER_OFFSET: u64 = 16 << 20;
/// The size of `PyCompactUnicodeObject` less that of `PyASCIIObject`.
const COMPACT_MORE_BYTES: u64 = 16;

/// The positions of the offsets in the table, in words.
struct Words {
    locked: u64,
    holder: u64,
    thread_next: u64,
    current_frame: u64,
    native_id: u64,
    chunk: u64,
    previous: u64,
    executable: u64,
    instruction: u64,
    owner: u64,
    file: u64,
    qualified_name: u64,
    lines: u64,
    first_line: u64,
    instructions: u64,
    bytes_data: u64,
    text_state: u64,
    text_length: u64,
    ascii_bytes: u64,
}

/// These positions are the same in all versions.
const VERSION: u64 = 1;
const FREE_THREADED: u64 = 2;
const FIRST_INTERPRETER: u64 = 5;
const NEXT_INTERPRETER: u64 = 8;
const FIRST_THREAD: u64 = 9;

const PYTHON_3_13: Words = Words {
    locked: 17,
    holder: 18,
    thread_next: 21,
    current_frame: 23,
    native_id: 25,
    chunk: 26,
    previous: 29,
    executable: 30,
    instruction: 31,
    owner: 33,
    file: 35,
    qualified_name: 37,
    lines: 38,
    first_line: 39,
    instructions: 43,
    bytes_data: 66,
    text_state: 68,
    text_length: 69,
    ascii_bytes: 70,
};

const PYTHON_3_14: Words = Words {
    locked: 18,
    holder: 19,
    thread_next: 24,
    current_frame: 26,
    native_id: 28,
    chunk: 29,
    previous: 32,
    executable: 33,
    instruction: 34,
    owner: 36,
    file: 40,
    qualified_name: 42,
    lines: 43,
    first_line: 44,
    instructions: 48,
    bytes_data: 76,
    text_state: 78,
    text_length: 79,
    ascii_bytes: 80,
};

const PYTHON_3_15: Words = Words {
    locked: 18,
    holder: 19,
    thread_next: 24,
    current_frame: 26,
    native_id: 31,
    chunk: 32,
    previous: 40,
    executable: 41,
    instruction: 42,
    owner: 44,
    file: 48,
    qualified_name: 50,
    lines: 51,
    first_line: 52,
    instructions: 56,
    bytes_data: 88,
    text_state: 90,
    text_length: 91,
    ascii_bytes: 92,
};

pub fn layout(version: Version, table: &[u8]) -> Result<Layout, Unsupported> {
    let entry = |place: u64| word(table, place * 8).map_err(|_| Unsupported::Table);
    if at(table, 0) != Ok(*COOKIE) || entry(VERSION)? != u64::from(version.0) {
        return Err(Unsupported::Table);
    }
    if entry(FREE_THREADED)? != 0 {
        return Err(Unsupported::FreeThreaded);
    }
    let words = match version.minor() {
        13 => PYTHON_3_13,
        14 => PYTHON_3_14,
        15 => PYTHON_3_15,
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
    let small = |place| below(place, STRUCTURE_BYTES as u64 - 8);
    let header = |place| below(place, HEADER_BYTES as u64 - 8);
    let ascii_data = header(words.ascii_bytes)?;
    Ok(Layout {
        first_interpreter: large(FIRST_INTERPRETER)?,
        next_interpreter: large(NEXT_INTERPRETER)?,
        first_thread: large(FIRST_THREAD)?,
        lock: Lock::InInterpreter(LockOffsets {
            holder: large(words.holder)?,
            locked: large(words.locked)?,
        }),
        thread: ThreadOffsets {
            next: small(words.thread_next)?,
            frame: small(words.current_frame)?,
            behind: None,
            native_id: small(words.native_id)?,
            chunk: small(words.chunk)?,
        },
        frame: FrameOffsets {
            code: small(words.executable)?,
            previous: small(words.previous)?,
            instruction: small(words.instruction)?,
            owner: small(words.owner)?,
        },
        code: CodeOffsets {
            file: small(words.file)?,
            name: small(words.qualified_name)?,
            lines: small(words.lines)?,
            first_line: small(words.first_line)?,
            instructions: small(words.instructions)?,
        },
        text: TextOffsets {
            length: header(words.text_length)?,
            state: header(words.text_state)?,
            ascii_data,
            other_data: ascii_data + COMPACT_MORE_BYTES,
        },
        bytes_data: header(words.bytes_data)?,
    })
}
