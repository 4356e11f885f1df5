//! The reader of Python's stacks by itself: what fuzzing gives made-up memory to.

use crate::memory::Memory;
use crate::python::{NoStack, read_at};

/// Where a process has what, by its own addresses.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter {
    /// `_PyRuntime`.
    pub runtime: u64,
    /// `Py_Version`.
    pub version: u64,
    /// `PyCode_Type`, where it is known.
    pub code_type: Option<u64>,
}

/// A frame: function, file and line.
pub type Frame = (String, String, Option<u32>);

/// The frames of a thread at each of some moments, in ns, outermost first, read as the sampler reads them; `None` where there were none to be had. `lock`: an
/// address at which the thread waits, for which its holder is looked up, too.
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
    let Ok(Ok(Some(mut reader))) = read_at(Memory::of(pid), runtime, version, code_type) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    let mut stack = |now_ns: &i64| {
        let read: Result<(), NoStack> = reader.stack(thread, *now_ns, &mut places);
        let _ = reader.lock_holder(thread, lock);
        read.ok()?;
        let frame = |place: &u64| {
            let place = reader.place(*place)?;
            Some((
                place.function.to_string(),
                place.file.to_string(),
                place.line,
            ))
        };
        Some(places.iter().filter_map(frame).collect())
    };
    moments_ns.iter().map(&mut stack).collect()
}
