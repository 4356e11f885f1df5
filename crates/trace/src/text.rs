//! Reads and writes traces as text, for tests and for small traces.
//!
//! ```text
//! # A comment.
//! manifest sampling_mode=dispatch start_ns=0 end_ns=1ms exit.code=0 command=python command="my program.py"
//! queue id=1 device=0 capabilities=compute capabilities=transfer
//! kernel id=1 name="sin, f32" name_source=entry-point
//! dispatch command_buffer=1 queue=1 kernel=1 start_ns=100us duration_ns=1.5us
//! ```
//!
//! One line a row. Its first word is [`Table::ROW`], or `manifest`, `process`, `thread`, `device`, `queue`, `loss` or
//! `unmeasured` for a part of the manifest; then come `column=value` pairs.
//!
//! - A value with spaces, quotes or `#` stands in double quotes, with `\"`, `\\`, `\n`, `\r`, `\t` and `\u{…}` inside.
//! - Columns whose names end in `_ns` take a unit, `ns`, `us`, `ms` or `s`, also with a fraction (`1.5us`). Without a
//!   unit they are nanoseconds.
//! - In the manifest a dot reaches into a part (`clock.error_ns=100`), and a repeated name appends to a list.
//! - A column that is left out has no value if it may lack one, else 0 or the empty text, but: `format_version` is this
//!   version's and `complete` is true; a host call's `count` is 1 and its `busy_ns` is its `duration_ns`; the `timing`
//!   of a command buffer with `start_ns` is `measured`, the `kind` of a submission `command-buffers`.

mod line;
mod problem;
mod value;

use crate::manifest::{FORMAT_VERSION, Manifest};
use crate::tables::*;
use crate::{Trace, for_each_table};
use line::{Line, write_pair};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write;

pub use problem::TextProblem;

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub problem: TextProblem,
}

/// The value of a column that the line leaves out.
enum Omission {
    /// A fixed value.
    Is(&'static str),
    /// The value of another column, if that is given.
    SameAs(&'static str),
    /// A fixed value, if another column is given.
    With(&'static str, &'static str),
}

/// Rows, and a column of each that has a value although the line leaves it out.
const OMITTED: &[(&str, &str, Omission)] = &[
    (Submissions::ROW, "kind", Omission::Is("command-buffers")),
    (HostCalls::ROW, "count", Omission::Is("1")),
    (HostCalls::ROW, "busy_ns", Omission::SameAs("duration_ns")),
    (
        CommandBuffers::ROW,
        "timing",
        Omission::With("start_ns", "measured"),
    ),
];

/// Returns the manifest of a text that has no `manifest` line.
fn base_manifest() -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION,
        complete: true,
        ..Manifest::default()
    }
}

impl Trace {
    /// Reads the [text form](crate::text).
    ///
    /// # Errors
    /// Returns the first line that cannot be read, and why.
    pub fn from_text(text: &str) -> Result<Trace, TextError> {
        let mut trace = Trace {
            manifest: base_manifest(),
            ..Trace::default()
        };
        for (index, line) in text.lines().enumerate() {
            trace.read_line(line).map_err(|problem| TextError {
                line: index + 1,
                problem,
            })?;
        }
        Ok(trace)
    }

    /// Adds what a line describes; nothing for an empty line or a comment.
    fn read_line(&mut self, text: &str) -> Result<(), TextProblem> {
        let Some(line) = Line::parse(text)? else {
            return Ok(());
        };
        let manifest = &mut self.manifest;
        macro_rules! read_row {
            ($($field:ident: $table:ty,)+) => {
                match line.word.as_str() {
                    "manifest" => *manifest = read_manifest_part(manifest, &line)?,
                    "process" => manifest.processes.push(read_manifest_part(&Default::default(), &line)?),
                    "thread" => manifest.threads.push(read_manifest_part(&Default::default(), &line)?),
                    "device" => manifest.devices.push(read_manifest_part(&Default::default(), &line)?),
                    "queue" => manifest.queues.push(read_manifest_part(&Default::default(), &line)?),
                    "loss" => manifest.losses.push(read_manifest_part(&Default::default(), &line)?),
                    "unmeasured" => manifest.unmeasured.push(read_manifest_part(&Default::default(), &line)?),
                    $(<$table>::ROW => self.tables.$field.push(read_row::<$table>(&line)?),)+
                    other => {
                        let tables = [$(<$table>::ROW),+].join(", ");
                        return Err(TextProblem::UnknownRow {
                            word: other.to_owned(),
                            tables,
                        });
                    }
                }
            };
        }
        for_each_table!(read_row);
        Ok(())
    }

    /// Writes the [text form](crate::text) of this trace. [`Trace::from_text`] reads it back unchanged.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let m = &self.manifest;
        let whole = Manifest {
            processes: Vec::new(),
            threads: Vec::new(),
            devices: Vec::new(),
            queues: Vec::new(),
            losses: Vec::new(),
            unmeasured: Vec::new(),
            ..m.clone()
        };
        write_manifest_part(&mut text, "manifest", &base_manifest(), &whole);
        write_manifest_parts(&mut text, "process", &m.processes);
        write_manifest_parts(&mut text, "thread", &m.threads);
        write_manifest_parts(&mut text, "device", &m.devices);
        write_manifest_parts(&mut text, "queue", &m.queues);
        write_manifest_parts(&mut text, "loss", &m.losses);
        write_manifest_parts(&mut text, "unmeasured", &m.unmeasured);
        macro_rules! write_rows {
            ($($field:ident: $table:ty,)+) => { $(write_rows::<$table>(&mut text, &self.tables.$field);)+ };
        }
        for_each_table!(write_rows);
        text
    }
}

/// Reads a row of table `T`, with the values of [`OMITTED`] for columns that the line leaves out.
fn read_row<T: Table>(line: &Line) -> Result<T::Row, TextProblem> {
    let mut row = T::blank();
    for (column, value) in &line.pairs {
        let column = column.as_str();
        if !T::COLUMNS.contains(&column) {
            return Err(TextProblem::UnknownColumn {
                row: T::ROW,
                column: column.to_owned(),
                known: T::COLUMNS.join(", "),
            });
        }
        if line.pairs.iter().filter(|(c, _)| c == column).count() > 1 {
            return Err(TextProblem::GivenTwice(column.to_owned()));
        }
        set::<T>(&mut row, column, value)?;
    }
    let omitted = OMITTED.iter().filter(|(row, ..)| *row == T::ROW);
    for (_, column, value) in omitted.filter(|(_, column, _)| line.get(column).is_none()) {
        let value = match value {
            Omission::Is(value) => Some(*value),
            Omission::SameAs(other) => line.get(other),
            Omission::With(other, value) => line.get(other).map(|_| *value),
        };
        if let Some(value) = value {
            set::<T>(&mut row, column, value)?;
        }
    }
    Ok(row)
}

/// Sets a column of a row from its text, which may have a unit of time.
fn set<T: Table>(row: &mut T::Row, column: &str, text: &str) -> Result<(), TextProblem> {
    let plain = value::without_unit(column, text)?;
    if T::set_from_text(row, column, &plain) {
        Ok(())
    } else {
        Err(TextProblem::not_a_value(text, column))
    }
}

/// Appends a line for each row of a table.
fn write_rows<T: Table>(text: &mut String, table: &T) {
    for index in 0..table.len() {
        text.push_str(T::ROW);
        for (column, value) in T::row_to_text(&table.row(index)) {
            write_pair(text, column, &value);
        }
        text.push('\n');
    }
}

/// Reads a part of the manifest; what the line leaves out is as in `base`.
fn read_manifest_part<P: Serialize + DeserializeOwned>(
    base: &P,
    line: &Line,
) -> Result<P, TextProblem> {
    value::read(base, &line.pairs, &line.word)
}

fn write_manifest_parts<P: Serialize + Default>(text: &mut String, word: &str, parts: &[P]) {
    for part in parts {
        write_manifest_part(text, word, &P::default(), part);
    }
}

/// Appends a line with what differs between a part of the manifest and `base`.
fn write_manifest_part<P: Serialize>(text: &mut String, word: &str, base: &P, part: &P) {
    let _ = write!(text, "{word}");
    for (name, value) in value::differences(base, part) {
        write_pair(text, &name, &value);
    }
    text.push('\n');
}
