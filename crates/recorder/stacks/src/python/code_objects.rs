//! Reads code objects (the interpreter's objects for the code of functions) of another process: their names and lines
//! are kept by address and checked again, because another object may take the address. [`CodeObjects::number`] gives
//! a number for each frame; [`CodeObjects::location`] tells what a number stands for.

use super::no_stack::NoStack;
use crate::memory::Memory;
use gapscope_model::python::{Code, HEADER_BYTES, Inconsistent, Layout, Lines, STRUCTURE_BYTES};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A code object that was checked more recently is taken to be the same.
const CHECK_EVERY_NS: i64 = 100_000_000;
/// All are forgotten beyond this number; a large program runs about 10,000.
const MAX_CODE_OBJECTS: usize = 1 << 16;
/// All are forgotten, too, when their line tables exceed this size.
const MAX_LINE_TABLE_BYTES: usize = 64 << 20;
/// How many bytes of new line tables are read for one stack; the rest is left to the next one. Implausible memory may name a long table
/// for each frame.
const MAX_NEW_BYTES: usize = 1 << 20;
/// The offset of a code object's type; the size in instructions follows it.
const TYPE_OFFSET: usize = 8;

/// A location in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The qualified name of the function.
    pub function: Arc<str>,
    /// The file as the program names it.
    pub file: Arc<str>,
    /// The line; `None` for instructions that the compiler added.
    pub line: Option<u32>,
}

/// A code object that was read.
#[derive(Debug)]
struct CachedCode {
    /// The fields of the code object as they were read, which tell it from another one at its address.
    code: Code,
    /// The number that stands for it in those of [`CodeObjects::number`].
    serial: u32,
    function: Arc<str>,
    file: Arc<str>,
    /// Its line table, and the size of its instructions.
    lines: Box<[u8]>,
    bytes: u64,
    /// The time at which it was last compared with the process.
    checked_ns: i64,
}

/// The code objects of one interpreter.
#[derive(Debug)]
pub struct CodeObjects {
    memory: Memory,
    layout: Layout,
    /// The address of the type of code objects, where it is known.
    code_type: Option<u64>,
    /// The code objects by their addresses.
    known: FxHashMap<u64, CachedCode>,
    /// The address of a code object by its serial number. A number is never reused.
    serials: FxHashMap<u32, u64>,
    next_serial: u32,
    /// The names of files, each kept once.
    files: FxHashMap<String, Arc<str>>,
    /// The size of all line tables.
    bytes: usize,
    /// How much of [`MAX_NEW_BYTES`] is left for this stack.
    new_bytes: usize,
}

impl CodeObjects {
    pub fn new(memory: Memory, layout: Layout, code_type: Option<u64>) -> CodeObjects {
        CodeObjects {
            memory,
            layout,
            code_type,
            known: FxHashMap::default(),
            serials: FxHashMap::default(),
            next_serial: 0,
            files: FxHashMap::default(),
            bytes: 0,
            new_bytes: MAX_NEW_BYTES,
        }
    }

    /// Begins another stack, with a new allowance of line tables.
    pub fn start_stack(&mut self) {
        self.new_bytes = MAX_NEW_BYTES;
    }

    /// Returns a number that stands for an instruction of the code object at `address`: its serial number above 32
    /// bits, and the instruction's place in it.
    pub fn number(&mut self, address: u64, instruction: u64, now_ns: i64) -> Result<u64, NoStack> {
        let is_fresh = |known: &&CachedCode| now_ns - known.checked_ns < CHECK_EVERY_NS;
        if self.known.get(&address).filter(is_fresh).is_none() {
            self.check(address, now_ns)?;
        }
        let Some(known) = self.known.get(&address) else {
            return Err(Inconsistent("a code object is not one").into());
        };
        let first = address.wrapping_add(known.code.instructions);
        let offset = instruction.wrapping_sub(first) as i64;
        // An offset before the first instruction means that the frame has not begun.
        let is_of_code = offset >= -2 && offset % 2 == 0 && offset < known.bytes as i64;
        if !is_of_code {
            return Err(Inconsistent("an instruction is not of its code").into());
        }
        let offset = ((offset + 2) / 2) as u32;
        Ok(u64::from(known.serial) << 32 | u64::from(offset))
    }

    /// Returns the location that a number stands for, as long as its code object is kept.
    pub fn location(&self, number: u64) -> Option<Location> {
        let known = self
            .known
            .get(self.serials.get(&((number >> 32) as u32))?)?;
        let offset = i64::from(number as u32) * 2 - 2;
        let lines = Lines::new(&known.lines, known.code.first_line);
        Some(Location {
            function: known.function.clone(),
            file: known.file.clone(),
            line: lines.line(offset),
        })
    }

    /// Compares the code object at an address with the one that is kept, and reads it when they differ.
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
        if self.known.len() >= MAX_CODE_OBJECTS || self.bytes > MAX_LINE_TABLE_BYTES {
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

    /// Reads the names and the line table of a code object.
    fn read(&mut self, code: Code, now_ns: i64) -> Result<CachedCode, NoStack> {
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
        // Most code objects share a few files.
        let file = match self.files.get(&file) {
            Some(file) => file.clone(),
            None => {
                let shared: Arc<str> = file.as_str().into();
                self.files.insert(file, shared.clone());
                shared
            }
        };
        self.next_serial = self.next_serial.wrapping_add(1);
        Ok(CachedCode {
            code,
            serial: self.next_serial,
            function: function.into(),
            file,
            lines,
            bytes,
            checked_ns: now_ns,
        })
    }

    /// Reads the string object at an address.
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
