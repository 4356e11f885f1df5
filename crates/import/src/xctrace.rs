//! Metal System Traces: what `xctrace export` writes of a recording of Instruments.
//!
//! An import takes the table of contents and any number of tables, as files of any names and in any order, and makes
//! one trace of one process:
//!
//! | in the exports | in the trace |
//! |---|---|
//! | a committed command buffer | a submission at the time of its commit, and a command buffer |
//! | an interval of the GPU | opaque work (`compute-pass`, `render-pass`), or a transfer if it is a blit; pieces of one encoder that overlap are one |
//! | labels of command buffers and encoders | labels; the names that Instruments gives to what has none are no labels |
//! | debug groups, handlers, encoding, the driver's work, shader compilation | markers of host threads |
//! | compiled shaders | kernels, without dispatches |
//! | resource allocations | memory |
//!
//! Instruments records encoders, not dispatches, and does not name command queues: the trace has neither, and says so.
//! Times are those of Mach's absolute clock when the table `time-info` is there, else count from the trace's start.
//!
//! **Traps.** A table that does not exist is exported as an empty document with exit status 0. Values stand once and
//! are referred to later, at any depth. A missing value keeps its place as `<sentinel/>`. A second table may lack its
//! schema. xctrace may crash when all is written. Rows are of all processes. Intervals nest and overlap. Some systems
//! export no GPU intervals of compute work. None of these gives a wrong number here; each that occurs is said.

mod build;
mod cell;
mod clock;
mod date;
mod document;
mod facts;
mod intervals;
mod labels;
mod toc;

pub use toc::{Run, Toc};

use crate::Error;
use document::{Ending, Summary, name};
use facts::Facts;
use gapscope_trace::manifest::{Exit, Loss};
use gapscope_trace::{Trace, TraceWriter};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A table that an import uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The name of its schema.
    pub schema: &'static str,
    /// What is missing from a trace without it.
    pub gives: &'static str,
    /// There is no trace without it.
    pub needed: bool,
}

/// The tables that an import uses, the most important ones first.
pub const TABLES: &[Table] = &facts::TABLES;

/// How to import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The process whose work is imported; otherwise the one that the table of contents names, or the only one.
    pub pid: Option<u32>,
    /// The command as it was given; otherwise what the table of contents says.
    pub command: Option<Vec<String>>,
    /// Sentences for every report, of whoever made the exports.
    pub notes: Vec<String>,
}

/// What an import gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The folder of the trace.
    pub output: PathBuf,
    /// How the process ended, if the exports say it.
    pub exit: Option<Exit>,
    /// Command buffers in the trace.
    pub command_buffers: u64,
    /// Pieces of GPU work with times.
    pub timed_work: u64,
    /// What is missing.
    pub losses: Vec<Loss>,
    /// Sentences for every report.
    pub notes: Vec<String>,
}

/// Imports exports and writes the trace `output`, which must not exist.
///
/// # Errors
/// A file cannot be read or is something else; the process is not clear; there is no Metal work; the trace cannot be
/// written. Nothing is left behind unless writing failed halfway.
pub fn import(inputs: &[PathBuf], output: &Path, options: &Options) -> Result<Imported, Error> {
    let trace = read(inputs, options)?;
    let imported = Imported {
        output: output.to_owned(),
        exit: trace.manifest.exit,
        command_buffers: trace.tables.command_buffers.id.len() as u64,
        timed_work: (trace.tables.opaque_work.start_ns.len()
            + trace.tables.transfers.start_ns.len()) as u64,
        losses: trace.manifest.losses.clone(),
        notes: trace.manifest.notes.clone(),
    };
    let mut writer = TraceWriter::create(output)?;
    *writer.tables_mut() = trace.tables;
    writer.finish(&trace.manifest)?;
    Ok(imported)
}

/// Makes a trace of exports: files, or folders whose `.xml` files are taken.
///
/// # Errors
/// As [`import`], but for writing.
pub fn read(inputs: &[PathBuf], options: &Options) -> Result<Trace, Error> {
    let mut facts = Facts::default();
    for path in files(inputs)? {
        read_file(&path, &mut facts)?;
    }
    build::build(facts, options)
}

/// The rows that a file of one table has: how the maker of exports checks them.
///
/// # Errors
/// The file cannot be read, or is no export of tables.
pub fn check(path: &Path) -> Result<Checked, Error> {
    let summary = match read_document(path, &mut Facts::default())? {
        Document::Tables(summary) => summary,
        Document::Toc => Summary::default(),
    };
    Ok(Checked {
        nodes: summary.nodes,
        rows: summary.rows.values().sum(),
        whole: summary.ending == Ending::Complete,
    })
}

/// What a file of exported tables holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Tables; none is what xctrace writes of a table that does not exist.
    pub nodes: u64,
    /// Rows that can be read.
    pub rows: u64,
    /// The document ends as it should.
    pub whole: bool,
}

fn files(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for input in inputs {
        let is_bundle = input
            .extension()
            .is_some_and(|extension| extension == "trace");
        if is_bundle {
            return Err(Error::Bundle {
                path: input.clone(),
            });
        }
        if !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let refused = |source| Error::Read {
            path: input.clone(),
            source,
        };
        let before = files.len();
        for entry in std::fs::read_dir(input).map_err(refused)? {
            let path = entry.map_err(refused)?.path();
            if path.extension().is_some_and(|extension| extension == "xml") {
                files.push(path);
            }
        }
        if files.len() == before {
            return Err(Error::NoFiles {
                path: input.clone(),
            });
        }
        files[before..].sort();
    }
    Ok(files)
}

enum Document {
    Toc,
    Tables(Summary),
}

fn read_file(path: &Path, facts: &mut Facts) -> Result<(), Error> {
    let document = read_document(path, facts)?;
    if let Document::Tables(summary) = document {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        facts.add_summary(&file, &summary);
    }
    Ok(())
}

fn read_document(path: &Path, facts: &mut Facts) -> Result<Document, Error> {
    let file = File::open(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let foreign = |found: String| Error::Foreign {
        path: path.to_owned(),
        found,
    };
    let mut reader = Reader::from_reader(BufReader::with_capacity(1 << 18, file));
    match root(&mut reader).map_err(foreign)? {
        Root::Toc => {
            facts.toc = Some(toc::read(&mut reader).map_err(foreign)?);
            Ok(Document::Toc)
        }
        Root::Tables => {
            let summary = document::read(&mut reader, &mut |schema, row| facts.add(schema, row));
            Ok(Document::Tables(summary))
        }
    }
}

pub(crate) enum Root {
    Toc,
    Tables,
}

/// Reads up to the begin of the root element, and says which document it is.
pub(crate) fn root<R: BufRead>(reader: &mut Reader<R>) -> Result<Root, String> {
    let mut buffer = Vec::new();
    // An empty `<trace-query-result/>` is one that begins and ends.
    reader.config_mut().expand_empty_elements = true;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => {
                return match name(&start) {
                    "trace-toc" => Ok(Root::Toc),
                    "trace-query-result" => Ok(Root::Tables),
                    other => Err(format!("its root element is <{other}>")),
                };
            }
            Ok(Event::Eof) => return Err("it has no XML element".to_owned()),
            Ok(Event::Text(text)) if !text.xml10_content().trim().is_empty() => {
                return Err("it begins with text, not with XML".to_owned());
            }
            Ok(_) => {}
            Err(error) => return Err(format!("it is no XML ({error})")),
        }
    }
}
