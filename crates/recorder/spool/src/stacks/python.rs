//! Reads the frames of the calling thread.
//!
//! Before the first stack is taken by plain reads, one is read through `/proc/self/mem`, which refuses a wrong address where a
//! plain read would end the program. What a line is called is always read so: once for each line.

use gapscope_model::python::{Code, Current, Inconsistent, Layout, Lines, TABLE_BYTES, Version};
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Frames of one stack; of deeper ones the outermost are left out.
pub const MOST_FRAMES: usize = 128;
/// Long enough for each structure that is read plainly.
const MOST_BYTES: usize = 512;
/// The parts of strings and of `bytes` that say how long they are: no such object is shorter.
const TEXT_HEADER_BYTES: usize = 40;
const BYTES_HEADER_BYTES: usize = 24;

/// So often an interpreter is tried out before it is taken for one that cannot be read.
const MOST_TRIES: u32 = 32;
static TRIES: AtomicU32 = AtomicU32::new(0);

/// Where a frame is in its code. The name tells a code object from another one that took its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    code: u64,
    name: u64,
    instruction: u64,
}

impl Place {
    pub fn hash(&self) -> usize {
        let mixed =
            (self.code ^ self.instruction.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
}

/// A line of a function.
pub struct Line {
    pub function: String,
    pub file: String,
    /// 0: not known.
    pub line: u32,
}

/// The interpreter of this process.
#[derive(Debug)]
pub struct Python {
    layout: Layout,
    thread_state: unsafe extern "C" fn() -> *const c_void,
    is_initialized: unsafe extern "C" fn() -> c_int,
}

/// How memory of this process is read.
trait Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()>;
}

/// By a plain read.
struct Plain;

impl Memory for Plain {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
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

/// By the system, which refuses what is not mapped.
struct Checked(File);

impl Checked {
    fn open() -> Option<Checked> {
        File::open("/proc/self/mem").ok().map(Checked)
    }
}

impl Memory for Checked {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.0.read_exact_at(bytes, address).ok()
    }
}

impl Python {
    /// The interpreter that this process is, or has loaded for all to see; `Some(None)`: there is none that can be read. `None`: the calling thread
    /// runs no Python, and another one has to find out.
    pub fn find() -> Option<Option<Python>> {
        let Some(python) = Python::of_process() else {
            return Some(None);
        };
        if python.thread_state() == 0 {
            return None;
        }
        let mut places = [Place::default(); MOST_FRAMES];
        let is_read = Checked::open().is_some_and(|memory| {
            let found = python.walk(&memory, &mut places);
            found.is_some_and(|places| python.line(&places[0]).is_some())
        });
        match is_read {
            true => Some(Some(python)),
            // A thread that has a state may run no Python.
            false if TRIES.fetch_add(1, Relaxed) < MOST_TRIES => None,
            false => Some(None),
        }
    }

    fn of_process() -> Option<Python> {
        let runtime = symbol(c"_PyRuntime")?;
        let version = symbol(c"Py_Version")?;
        let thread_state = symbol(c"PyGILState_GetThisThreadState")?;
        let is_initialized = symbol(c"Py_IsInitialized")?;
        let memory = Checked::open()?;
        let mut number = [0; 4];
        memory.read(version, &mut number)?;
        let mut table = [0; TABLE_BYTES];
        memory.read(runtime, &mut table)?;
        let layout = Layout::of(Version(u32::from_ne_bytes(number)), &table).ok()?;
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
        let has_room = lengths.into_iter().all(|length| length <= MOST_BYTES);
        has_room.then_some(python)
    }

    /// The address of the state of this thread; 0 where it has none, or the interpreter is about to end and takes states apart.
    fn thread_state(&self) -> u64 {
        // SAFETY: both read variables, of the process and of the thread.
        unsafe {
            match (self.is_initialized)() {
                0 => 0,
                _ => (self.thread_state)() as u64,
            }
        }
    }

    /// The stack of this thread, the innermost frame first, as deep as there is room. `None`: it runs no Python.
    pub fn stack<'a>(&self, places: &'a mut [Place]) -> Option<&'a [Place]> {
        self.walk(&Plain, places)
    }

    fn walk<'a>(&self, memory: &impl Memory, places: &'a mut [Place]) -> Option<&'a [Place]> {
        let state = self.thread_state();
        let mut bytes = [0; MOST_BYTES];
        let state = self.read(
            memory,
            state,
            self.layout.thread_bytes(),
            &mut bytes,
            Layout::thread,
        )?;
        let mut at = match state.current {
            Current::Frame(at) => at,
            Current::AddressAt(address) => {
                let mut at = [0; 8];
                memory.read(address, &mut at)?;
                u64::from_ne_bytes(at)
            }
        };
        let mut found = 0;
        // The interpreter's own frames between others take no room.
        for _ in 0..4 * places.len() {
            if at == 0 || found == places.len() {
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
                places[found] = Place {
                    code: frame.code,
                    name: code.name,
                    instruction: frame.instruction,
                };
                found += 1;
            }
            at = frame.previous;
        }
        (found > 0).then(|| &places[..found])
    }

    fn code(&self, memory: &impl Memory, address: u64) -> Option<Code> {
        let mut bytes = [0; MOST_BYTES];
        self.read(
            memory,
            address,
            self.layout.code_bytes(),
            &mut bytes,
            Layout::code,
        )
    }

    fn read<T>(
        &self,
        memory: &impl Memory,
        address: u64,
        length: usize,
        bytes: &mut [u8; MOST_BYTES],
        parse: impl FnOnce(&Layout, &[u8]) -> Result<T, Inconsistent>,
    ) -> Option<T> {
        let bytes = bytes.get_mut(..length)?;
        memory.read(address, bytes)?;
        parse(&self.layout, bytes).ok()
    }

    /// What a place is called.
    pub fn line(&self, place: &Place) -> Option<Line> {
        let memory = Checked::open()?;
        let code = self.code(&memory, place.code)?;
        let mut header = [0; BYTES_HEADER_BYTES];
        memory.read(code.lines, &mut header)?;
        let mut table = vec![0; self.layout.bytes_length(&header).ok()?];
        memory.read(
            code.lines.checked_add(self.layout.bytes_offset())?,
            &mut table,
        )?;
        let first = place.code.checked_add(code.instructions)?;
        let offset = place.instruction.wrapping_sub(first) as i64;
        let line = Lines::new(&table, code.first_line).line(offset);
        Some(Line {
            function: self.text(&memory, code.name)?,
            file: self.text(&memory, code.file)?,
            line: line.unwrap_or_default(),
        })
    }

    fn text(&self, memory: &impl Memory, address: u64) -> Option<String> {
        let mut header = [0; TEXT_HEADER_BYTES];
        memory.read(address, &mut header)?;
        let text = self.layout.text(&header).ok()?;
        let mut bytes = vec![0; text.bytes()];
        memory.read(address.checked_add(text.offset)?, &mut bytes)?;
        Some(text.decode(&bytes))
    }
}

/// The address of what the program, or a library that is loaded for all to see, calls so.
fn symbol(name: &CStr) -> Option<u64> {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address as u64)
}
