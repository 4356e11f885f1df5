//! Finds the first dispatch of a capture (recorded GPU work) that writes a NaN or an infinity, by running it dispatch
//! by dispatch and examining memory before and after each.

use std::rc::Rc;

use gapscope_capture::Capture;
use gapscope_capture::model::{Binding, Command, Dispatch};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::options::Options;
use crate::program::ProgramStep;
use crate::recording::CommandRecording;
use crate::session::{RecordingOptions, Session};
use crate::values::Element;

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Search {
    /// The first value that is NaN or infinite.
    pub found: Option<OddValue>,
    /// Number of dispatches that ran.
    pub dispatches: u64,
    /// Number of ranges that were examined.
    pub ranges: u64,
    /// Number of ranges that were not, as their kernels do not declare them as arrays of floating-point numbers.
    pub unexamined: u64,
    /// Number of ranges that had such a value before a dispatch wrote to them.
    pub before: u64,
}

/// A NaN or an infinity that a dispatch wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OddValue {
    /// Number of the dispatch.
    pub dispatch: u64,
    /// Name of its kernel.
    pub kernel: String,
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Number of the buffer.
    pub buffer: u32,
    /// The buffer's name in the program.
    pub name: Option<String>,
    /// Offset of the first such value in the buffer, in bytes.
    pub offset: u64,
    /// The type of the elements.
    pub element: Element,
    /// The value.
    pub value: String,
    /// Number of such values in the range.
    pub count: u64,
}

/// Runs a capture dispatch by dispatch until one writes a NaN or an infinity into a range that had none. Elements
/// have the type `element`, or without it the type that the kernels declare.
///
/// # Errors
/// The capture cannot be run.
pub fn find_odd_value(
    capture: &Capture,
    element: Option<Element>,
    options: &Options,
) -> Result<Search, Error> {
    if let Some(element) = element.filter(|element| !element.is_float()) {
        return Err(Error::Unsupported(format!(
            "a {} is never NaN: say --type f16, f32 or f64",
            element.name()
        )));
    }
    let mut session = Session::open(capture, options.extent, options)?;
    let program = Rc::clone(&session.program);
    session.memory.clear()?;
    let mut search = Search::default();
    for step in &program.steps {
        match step {
            ProgramStep::Content(content) => session.upload(&[content])?,
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
    /// Runs one dispatch, and examines the memory that it wrote. Returns whether a NaN or an infinity was found.
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
            .filter(|binding| binding.is_writable())
        {
            let shader = session.shaders.get(&dispatch.pipeline);
            let declared = shader.and_then(|shader| shader.element(binding));
            let Some(element) = forced.or(declared) else {
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

/// Returns the number of NaN and infinite values in a range, and the index and the text of the first.
fn look(
    session: &mut Session<'_>,
    binding: &Binding,
    element: Element,
) -> Result<(u64, Option<u64>, String), Error> {
    let place = |range| session.regions.buffer_place(session.capture, range);
    let place = binding
        .range
        .and_then(|range| Some((place(range)?, range.bytes)));
    let Some((place, bytes)) = place else {
        return Ok((0, None, String::new()));
    };
    let bytes = session.memory.read(place, bytes)?;
    let (count, first) = element.odd(&bytes);
    let value = first.map(|first| {
        let size = element.bytes() as usize;
        element.text(&bytes[first as usize * size..][..size])
    });
    Ok((count, first, value.unwrap_or_default()))
}

/// Runs one command by itself and waits for it; does nothing for barriers and labels.
fn once(session: &Session<'_>, command: &Command) -> Result<(), Error> {
    if !command.is_work() {
        return Ok(());
    }
    let recording = CommandRecording::begin(&session.gpu, 0)?;
    let source = session.stage(RecordingOptions::default());
    source.work(recording.commands, command);
    session.gpu.full_barrier(recording.commands);
    session.gpu.end(recording.commands)?;
    session.gpu.run(recording.commands, "running commands")
}
