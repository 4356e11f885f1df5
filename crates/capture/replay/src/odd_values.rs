//! Which dispatch was the first to write a NaN or an infinity.

use gapscope_capture::Capture;
use gapscope_capture::model::{Binding, Command, Dispatch};
use schemars::JsonSchema;
use serde::Serialize;

use crate::comparison::is_writable;
use crate::error::Error;
use crate::program::{Extent, Program, ProgramStep};
use crate::recording::{Recording, Timed};
use crate::replay::Options;
use crate::session::{Manner, Session, upload};
use crate::values::Element;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Search {
    /// The first dispatch that wrote one.
    pub found: Option<OddValue>,
    /// Dispatches that ran.
    pub dispatches: u64,
    /// Ranges that were looked at.
    pub ranges: u64,
    /// Ranges that were not: their kernels do not declare them as arrays of floating-point numbers.
    pub unexamined: u64,
    /// Ranges that had one before a dispatch wrote to them.
    pub before: u64,
}

/// A NaN or an infinity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OddValue {
    /// The number of the dispatch.
    pub dispatch: u64,
    /// Its kernel.
    pub kernel: String,
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// The number of the buffer.
    pub buffer: u32,
    /// Its name in the program.
    pub name: Option<String>,
    /// Where the first is in the buffer, in bytes.
    pub offset: u64,
    /// The type of the elements.
    pub element: Element,
    /// The value.
    pub value: String,
    /// How many there are in the range.
    pub count: u64,
}

/// Runs a capture dispatch by dispatch until one writes a NaN or an infinity into a range that had none. Elements are what kernels
/// declare, or `element` for all ranges if that is given.
///
/// # Errors
/// The capture cannot be run.
pub fn find_odd_value(
    capture: &Capture,
    element: Option<Element>,
    options: &Options,
) -> Result<Search, Error> {
    if let Some(element) = element.filter(|element| !element.is_float()) {
        return Err(Error::Asked(format!(
            "a {} is never NaN: say --type f16, f32 or f64",
            element.name()
        )));
    }
    let mut session = Session::open(
        capture,
        options.extent,
        options.device.as_ref(),
        options.robust,
    )?;
    let program = std::mem::replace(
        &mut session.program,
        Program::of(capture, Extent::Before(0)),
    );
    session.memory.clear()?;
    let mut search = Search::default();
    for step in &program.steps {
        match step {
            ProgramStep::Content(content) => {
                upload(capture, &session.regions, &mut session.memory, &[content])?;
            }
            ProgramStep::Submission(submitted) => {
                for buffer in &submitted.buffers {
                    let mut number = buffer.first_dispatch;
                    for command in buffer.commands {
                        let Command::Dispatch(dispatch) = command else {
                            once(&session, command)?;
                            continue;
                        };
                        search.dispatches += 1;
                        if search.dispatch(&mut session, number, dispatch, element)? {
                            return Ok(search);
                        }
                        number += 1;
                    }
                }
            }
            ProgramStep::Outcome(_) => {}
        }
    }
    Ok(search)
}

impl Search {
    /// Runs one dispatch and looks at what it wrote; true: found.
    fn dispatch(
        &mut self,
        session: &mut Session<'_>,
        number: u64,
        dispatch: &Dispatch,
        forced: Option<Element>,
    ) -> Result<bool, Error> {
        let mut looked_at = Vec::new();
        for binding in dispatch
            .bindings
            .iter()
            .filter(|binding| is_writable(binding))
        {
            let Some(element) = forced.or_else(|| declared(session, dispatch, binding)) else {
                self.unexamined += 1;
                continue;
            };
            if !element.is_float() {
                continue;
            }
            self.ranges += 1;
            let (before, _, _) = look(session, binding, element)?;
            self.before += u64::from(before > 0);
            if before == 0 {
                looked_at.push((binding, element));
            }
        }
        once(session, &Command::Dispatch(dispatch.clone()))?;
        for (binding, element) in looked_at {
            let (count, first, value) = look(session, binding, element)?;
            let (Some(first), Some(range)) = (first, binding.range) else {
                continue;
            };
            let pipeline = &session.capture.pipelines[&dispatch.pipeline];
            self.found = Some(OddValue {
                dispatch: number,
                kernel: pipeline.name.clone(),
                set: binding.set,
                binding: binding.binding,
                buffer: range.buffer.0,
                name: session.capture.buffers[&range.buffer].name.clone(),
                offset: range.offset + first * element.bytes(),
                element,
                value,
                count,
            });
            return Ok(true);
        }
        Ok(false)
    }
}

/// What a kernel declares a binding to be an array of.
fn declared(session: &Session<'_>, dispatch: &Dispatch, binding: &Binding) -> Option<Element> {
    let mut slots = session.shaders.get(&dispatch.pipeline)?.slots.iter();
    slots
        .find(|slot| (slot.set, slot.binding) == (binding.set, binding.binding))?
        .element
}

/// How many odd values a range has, which is the first, and what it is.
fn look(
    session: &mut Session<'_>,
    binding: &Binding,
    element: Element,
) -> Result<(u64, Option<u64>, String), Error> {
    let Some(range) = binding.range else {
        return Ok((0, None, String::new()));
    };
    let Some(place) = session.regions.of_range(session.capture, range) else {
        return Ok((0, None, String::new()));
    };
    let bytes = session.memory.read(place, range.bytes)?;
    let (count, first) = element.odd(&bytes);
    let value = first.map(|first| {
        let size = element.bytes() as usize;
        element.text(&bytes[first as usize * size..][..size])
    });
    Ok((count, first, value.unwrap_or_default()))
}

/// Runs one command by itself.
fn once(session: &Session<'_>, command: &Command) -> Result<(), Error> {
    if !crate::recording::is_work(command) {
        return Ok(());
    }
    let recording = Recording::begin(&session.gpu, 0)?;
    let manner = Manner {
        serialised: false,
        timed: Timed::Submissions,
    };
    session.stage(manner).work(recording.commands, command);
    session.gpu.full_barrier(recording.commands);
    session.gpu.end(recording.commands)?;
    session.gpu.run(recording.commands, "running commands")
}
