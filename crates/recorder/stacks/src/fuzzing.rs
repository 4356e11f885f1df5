//! The reader of Python stacks by itself, for fuzzing with made-up memory.

use crate::memory::Memory;
use crate::python::{NoStack, read_at};

/// The addresses of an interpreter's symbols in its process.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter {
    /// The address of `_PyRuntime`.
    pub runtime: u64,
    /// The address of `Py_Version`.
    pub version: u64,
    /// The address of `PyCode_Type`, where it is known.
    pub code_type: Option<u64>,
}

/// A frame: function, file and line.
pub type Frame = (String, String, Option<u32>);

/// Reads the stack of a thread at each of some moments (ns) as the sampler does, outermost frame first; `None` where
/// it could not be read. The holder of the lock at address `lock` is looked up, too. Returns nothing when the process
/// `pid` has no interpreter there that can be read.
pub fn stacks(
    pid: u32,
    interpreter: Interpreter,
    thread: u32,
    lock: u64,
    moments_ns: &[i64],
) -> Vec<Option<Vec<Frame>>> {
    let Interpreter {
        runtime,
        version,
        code_type,
    } = interpreter;
    let Ok(Ok(Some(mut reader))) = read_at(Memory::new(pid), runtime, version, code_type) else {
        return Vec::new();
    };
    let mut numbers = Vec::new();
    let mut stack = |now_ns: &i64| {
        let read: Result<(), NoStack> = reader.stack(thread, *now_ns, &mut numbers);
        let _ = reader.lock_holder(thread, lock);
        read.ok()?;
        let frame = |number: &u64| {
            let location = reader.location(*number)?;
            Some((
                location.function.to_string(),
                location.file.to_string(),
                location.line,
            ))
        };
        Some(numbers.iter().filter_map(frame).collect())
    };
    moments_ns.iter().map(&mut stack).collect()
}
