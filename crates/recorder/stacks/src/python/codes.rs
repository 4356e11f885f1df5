//! Code objects: their names and lines, kept by address, and checked, as another one may take the address.

use super::NoStack;
use crate::memory::Memory;
use gapscope_model::python::{Code, HEADER_BYTES, Inconsistent, Layout, Lines, STRUCTURE_BYTES};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One that was looked at more recently is believed to be the same.
const CHECK_EVERY_NS: i64 = 100_000_000;
/// All are forgotten when there are more: a large program has some 10,000 that run.
const MOST_CODES: usize = 1 << 16;
/// And where their line tables take more.
const MOST_BYTES: usize = 64 << 20;
/// When so much has been read for one stack of line tables that are new, the rest is left to the next one: memory that makes no sense may
/// have a long table for each frame.
const MOST_NEW_BYTES: usize = 1 << 20;
/// A code object's type, and its size in instructions, come first.
const TYPE_OFFSET: usize = 8;

/// A place in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The qualified name of the function.
    pub function: Arc<str>,
    /// As the program names it.
    pub file: Arc<str>,
    /// `None` for what the compiler has added.
    pub line: Option<u32>,
}

#[derive(Debug)]
struct Known {
    /// As it was read: what tells it from another one at its address.
    code: Code,
    serial: u32,
    function: Arc<str>,
    file: Arc<str>,
    lines: Box<[u8]>,
    bytes: u64,
    checked_ns: i64,
}

#[derive(Debug)]
pub struct Codes {
    memory: Memory,
    layout: Layout,
    code_type: Option<u64>,
    known: FxHashMap<u64, Known>,
    /// The address of a code object by its number. A number is never given twice.
    serials: FxHashMap<u32, u64>,
    next_serial: u32,
    files: FxHashMap<String, Arc<str>>,
    bytes: usize,
    /// Of [`MOST_NEW_BYTES`], what is left for this stack.
    new_bytes: usize,
}

impl Codes {
    pub fn new(memory: Memory, layout: Layout, code_type: Option<u64>) -> Codes {
        Codes {
            memory,
            layout,
            code_type,
            known: FxHashMap::default(),
            serials: FxHashMap::default(),
            next_serial: 0,
            files: FxHashMap::default(),
            bytes: 0,
            new_bytes: MOST_NEW_BYTES,
        }
    }

    /// What comes is another stack.
    pub fn start_stack(&mut self) {
        self.new_bytes = MOST_NEW_BYTES;
    }

    /// A number for an instruction of a code object: the code object's and the instruction's.
    pub fn place(&mut self, address: u64, instruction: u64, now_ns: i64) -> Result<u64, NoStack> {
        let is_fresh = |known: &&Known| now_ns - known.checked_ns < CHECK_EVERY_NS;
        if self.known.get(&address).filter(is_fresh).is_none() {
            self.check(address, now_ns)?;
        }
        let Some(known) = self.known.get(&address) else {
            return Err(Inconsistent("a code object is not one").into());
        };
        let first = address.wrapping_add(known.code.instructions);
        let offset = instruction.wrapping_sub(first) as i64;
        // One instruction before the first: it has not begun.
        let is_of_code = offset >= -2 && offset % 2 == 0 && offset < known.bytes as i64;
        if !is_of_code {
            return Err(Inconsistent("an instruction is not of its code").into());
        }
        let offset = ((offset + 2) / 2) as u32;
        Ok(u64::from(known.serial) << 32 | u64::from(offset))
    }

    /// What a number means, as long as its code object is known.
    pub fn find(&self, place: u64) -> Option<Place> {
        let known = self.known.get(self.serials.get(&((place >> 32) as u32))?)?;
        let offset = i64::from(place as u32) * 2 - 2;
        let lines = Lines::new(&known.lines, known.code.first_line);
        Some(Place {
            function: known.function.clone(),
            file: known.file.clone(),
            line: lines.line(offset),
        })
    }

    fn check(&mut self, address: u64, now_ns: i64) -> Result<(), NoStack> {
        let mut bytes = [0; STRUCTURE_BYTES];
        let bytes = &mut bytes[..self.layout.code_bytes().max(TYPE_OFFSET + 8)];
        self.memory.read(address, bytes)?;
        let kind = bytes[TYPE_OFFSET..]
            .first_chunk()
            .map(|kind| u64::from_le_bytes(*kind));
        if self.code_type.is_some() && kind != self.code_type {
            return Err(Inconsistent("a code object is not one").into());
        }
        let code = self.layout.code(bytes)?;
        if let Some(known) = self.known.get_mut(&address)
            && known.code == code
        {
            known.checked_ns = now_ns;
            return Ok(());
        }
        let known = self.read(code, now_ns)?;
        if self.known.len() >= MOST_CODES || self.bytes > MOST_BYTES {
            self.known.clear();
            self.serials.clear();
            self.files.clear();
            self.bytes = 0;
        }
        self.bytes += known.lines.len();
        self.serials.insert(known.serial, address);
        if let Some(other) = self.known.insert(address, known) {
            self.serials.remove(&other.serial);
            self.bytes -= other.lines.len();
        }
        Ok(())
    }

    fn read(&mut self, code: Code, now_ns: i64) -> Result<Known, NoStack> {
        let function = self.text(code.name)?;
        let file = self.text(code.file)?;
        let mut header = [0; HEADER_BYTES];
        let length = self.memory.read_some(code.lines, &mut header)?;
        let length = self.layout.bytes_length(&header[..length])?;
        if self.new_bytes == 0 {
            return Err(Inconsistent("a stack has more new code than one has").into());
        }
        self.new_bytes = self.new_bytes.saturating_sub(length);
        let mut lines = vec![0; length].into_boxed_slice();
        let at = code.lines.wrapping_add(self.layout.bytes_offset());
        self.memory.read(at, &mut lines)?;
        let bytes = Lines::new(&lines, code.first_line).code_bytes();
        if bytes == 0 || function.is_empty() {
            return Err(Inconsistent("a code object is not one").into());
        }
        // Most are of few files.
        let file = match self.files.get(&file) {
            Some(file) => file.clone(),
            None => {
                let shared: Arc<str> = file.as_str().into();
                self.files.insert(file, shared.clone());
                shared
            }
        };
        self.next_serial = self.next_serial.wrapping_add(1);
        Ok(Known {
            code,
            serial: self.next_serial,
            function: function.into(),
            file,
            lines,
            bytes,
            checked_ns: now_ns,
        })
    }

    fn text(&self, address: u64) -> Result<String, NoStack> {
        let mut header = [0; HEADER_BYTES];
        let length = self.memory.read_some(address, &mut header)?;
        let text = self.layout.text(&header[..length])?;
        let mut bytes = vec![0; text.bytes()];
        self.memory
            .read(address.wrapping_add(text.offset), &mut bytes)?;
        Ok(text.decode(&bytes))
    }
}
