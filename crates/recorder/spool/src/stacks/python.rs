//! Reads the Python frames of the calling thread from the interpreter's memory in this process: [`Python::find`]
//! once, [`Python::stack`] for each stack (positions in code come out), and [`Python::line`] for the function, file
//! and line of a position.
//!
//! Before stacks are taken by plain reads, one is read through `/proc/self/mem`, which refuses a wrong address where
//! a plain read would end the program. Names and lines are always read that way, once for each line.

use gapscope_model::python::{
    Code, CurrentFrame, Inconsistent, Layout, Lines, TABLE_BYTES, Version,
};
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The most frames of a stack; the outermost frames of deeper ones are left out.
pub const MAX_FRAMES: usize = 128;
/// The most bytes of any structure that is read by plain reads.
const MAX_STRUCTURE_BYTES: usize = 512;
/// The bytes of the headers of strings and `bytes` that hold their lengths: no such object is shorter.
const TEXT_HEADER_BYTES: usize = 40;
const BYTES_HEADER_BYTES: usize = 24;

/// The number of attempts after which an interpreter counts as unreadable.
const MAX_ATTEMPTS: u32 = 32;
/// The attempts so far at which the interpreter could not be read.
static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

/// A position in code. The name detects another code object at the same address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodePosition {
    /// The address of the code object (the interpreter's object for the code of a function).
    code: u64,
    /// The address of the function's name.
    name: u64,
    /// The address of the instruction.
    instruction: u64,
}

impl CodePosition {
    /// Returns a hash of the position, for caches.
    pub fn hash(&self) -> usize {
        let mixed =
            (self.code ^ self.instruction.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
}

/// A line of a function.
pub struct SourceLine {
    pub function: String,
    pub file: String,
    /// The number of the line; 0 when unknown.
    pub line: u32,
}

/// The interpreter of this process.
#[derive(Debug)]
pub struct Python {
    /// The offsets of the fields in the structures of this interpreter's version.
    layout: Layout,
    /// `PyGILState_GetThisThreadState`, which returns the calling thread's state.
    thread_state: unsafe extern "C" fn() -> *const c_void,
    /// `Py_IsInitialized`.
    is_initialized: unsafe extern "C" fn() -> c_int,
}

/// A way to read memory of this process; `None` where an address cannot be read.
trait Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()>;
}

/// Reads memory by plain reads, which end the program at an unmapped address.
struct DirectMemory;

impl Memory for DirectMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        // Nothing of an interpreter lies so low: such an address is a null pointer with an offset.
        if address < 1 << 16 {
            return None;
        }
        // SAFETY: it is only used for frames and code objects of the calling thread, at addresses that the interpreter has, whose
        // layout was tried out on this interpreter by reads that may fail; they live as long as the thread is in this call.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len());
        }
        Some(())
    }
}

/// Reads memory through the system, which refuses unmapped addresses.
struct CheckedMemory(File);

impl CheckedMemory {
    fn open() -> Option<CheckedMemory> {
        File::open("/proc/self/mem").ok().map(CheckedMemory)
    }
}

impl Memory for CheckedMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.0.read_exact_at(bytes, address).ok()
    }
}

/// Returns whether an interpreter is among this process's global symbols, without a system call.
pub fn is_loaded() -> bool {
    symbol(c"_PyRuntime").is_some()
}

impl Python {
    /// Finds the interpreter in this process's global symbols. Returns `Some(None)` where there is none that can be
    /// read, and `None` where the calling thread runs no Python, so that another thread must try.
    pub fn find() -> Option<Option<Python>> {
        let Some(python) = Python::in_process() else {
            return Some(None);
        };
        if python.thread_state() == 0 {
            return None;
        }
        let mut positions = [CodePosition::default(); MAX_FRAMES];
        let is_read = CheckedMemory::open().is_some_and(|memory| {
            let found = python.walk(&memory, &mut positions);
            found.is_some_and(|positions| python.line(&positions[0]).is_some())
        });
        match is_read {
            true => Some(Some(python)),
            // A thread with a state may still run no Python.
            false if ATTEMPTS.fetch_add(1, Relaxed) < MAX_ATTEMPTS => None,
            false => Some(None),
        }
    }

    /// Finds the interpreter by its symbols; `None` when one is missing or its version has no known layout.
    fn in_process() -> Option<Python> {
        let runtime = symbol(c"_PyRuntime")?;
        let version = symbol(c"Py_Version")?;
        let thread_state = symbol(c"PyGILState_GetThisThreadState")?;
        let is_initialized = symbol(c"Py_IsInitialized")?;
        let memory = CheckedMemory::open()?;
        let mut number = [0; 4];
        memory.read(version, &mut number)?;
        let mut table = [0; TABLE_BYTES];
        memory.read(runtime, &mut table)?;
        let layout = Layout::for_version(Version(u32::from_ne_bytes(number)), &table).ok()?;
        let python = Python {
            layout,
            // SAFETY: the function of this name has this type in every version that has a layout.
            thread_state: unsafe {
                std::mem::transmute::<u64, unsafe extern "C" fn() -> *const c_void>(thread_state)
            },
            // SAFETY: as above.
            is_initialized: unsafe {
                std::mem::transmute::<u64, unsafe extern "C" fn() -> c_int>(is_initialized)
            },
        };
        let lengths = [
            layout.thread_bytes(),
            layout.frame_bytes(),
            layout.code_bytes(),
        ];
        let has_room = lengths
            .into_iter()
            .all(|length| length <= MAX_STRUCTURE_BYTES);
        has_room.then_some(python)
    }

    /// Returns the address of this thread's state; 0 where it has none, or the interpreter is shutting down and
    /// destroys states.
    fn thread_state(&self) -> u64 {
        // SAFETY: both read variables, of the process and of the thread.
        unsafe {
            match (self.is_initialized)() {
                0 => 0,
                _ => (self.thread_state)() as u64,
            }
        }
    }

    /// Returns this thread's stack, innermost frame first, as far as it fits; `None` when it runs no Python.
    pub fn stack<'a>(&self, positions: &'a mut [CodePosition]) -> Option<&'a [CodePosition]> {
        self.walk(&DirectMemory, positions)
    }

    /// Reads this thread's frames with `memory` into `positions`, see [`Self::stack`].
    fn walk<'a>(
        &self,
        memory: &impl Memory,
        positions: &'a mut [CodePosition],
    ) -> Option<&'a [CodePosition]> {
        let state = self.thread_state();
        let mut bytes = [0; MAX_STRUCTURE_BYTES];
        let state = self.read(
            memory,
            state,
            self.layout.thread_bytes(),
            &mut bytes,
            Layout::thread,
        )?;
        let mut at = match state.current {
            CurrentFrame::Frame(at) => at,
            CurrentFrame::AddressAt(address) => {
                let mut at = [0; 8];
                memory.read(address, &mut at)?;
                u64::from_ne_bytes(at)
            }
        };
        let mut found = 0;
        // The interpreter's own frames in between take no room.
        for _ in 0..4 * positions.len() {
            if at == 0 || found == positions.len() {
                break;
            }
            let frame = self.read(
                memory,
                at,
                self.layout.frame_bytes(),
                &mut bytes,
                Layout::frame,
            )?;
            if frame.code != 0 {
                let code = self.code(memory, frame.code)?;
                positions[found] = CodePosition {
                    code: frame.code,
                    name: code.name,
                    instruction: frame.instruction,
                };
                found += 1;
            }
            at = frame.previous;
        }
        (found > 0).then(|| &positions[..found])
    }

    /// Reads the code object at an address.
    fn code(&self, memory: &impl Memory, address: u64) -> Option<Code> {
        let mut bytes = [0; MAX_STRUCTURE_BYTES];
        self.read(
            memory,
            address,
            self.layout.code_bytes(),
            &mut bytes,
            Layout::code,
        )
    }

    /// Reads `length` bytes at an address into `bytes` and parses them; `None` when either fails.
    fn read<T>(
        &self,
        memory: &impl Memory,
        address: u64,
        length: usize,
        bytes: &mut [u8; MAX_STRUCTURE_BYTES],
        parse: impl FnOnce(&Layout, &[u8]) -> Result<T, Inconsistent>,
    ) -> Option<T> {
        let bytes = bytes.get_mut(..length)?;
        memory.read(address, bytes)?;
        parse(&self.layout, bytes).ok()
    }

    /// Returns the function, file and line of a position.
    pub fn line(&self, position: &CodePosition) -> Option<SourceLine> {
        let memory = CheckedMemory::open()?;
        let code = self.code(&memory, position.code)?;
        let mut header = [0; BYTES_HEADER_BYTES];
        memory.read(code.lines, &mut header)?;
        let mut table = vec![0; self.layout.bytes_length(&header).ok()?];
        memory.read(
            code.lines.checked_add(self.layout.bytes_offset())?,
            &mut table,
        )?;
        let first = position.code.checked_add(code.instructions)?;
        let offset = position.instruction.wrapping_sub(first) as i64;
        let line = Lines::new(&table, code.first_line).line(offset);
        Some(SourceLine {
            function: self.text(&memory, code.name)?,
            file: self.text(&memory, code.file)?,
            line: line.unwrap_or_default(),
        })
    }

    /// Reads the string object at an address.
    fn text(&self, memory: &impl Memory, address: u64) -> Option<String> {
        let mut header = [0; TEXT_HEADER_BYTES];
        memory.read(address, &mut header)?;
        let text = self.layout.text(&header).ok()?;
        let mut bytes = vec![0; text.bytes()];
        memory.read(address.checked_add(text.offset)?, &mut bytes)?;
        Some(text.decode(&bytes))
    }
}

/// Returns the address of a global symbol of the program or its libraries.
fn symbol(name: &CStr) -> Option<u64> {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address as u64)
}
