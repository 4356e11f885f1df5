//! Imports the XML that `xctrace export` writes of a Metal System Trace, which is a recording of Apple's
//! Instruments.
//!
//! An import takes the table of contents and any number of tables, as files of any names and in any order, and makes
//! one trace of one process:
//!
//! | in the exports | in the trace |
//! |---|---|
//! | a committed command buffer | a submission at the time of its commit, and a command buffer |
//! | an interval of the GPU | opaque work (`compute-pass`, `render-pass`), or a transfer if it is a blit; pieces of one encoder that overlap are one |
//! | labels of command buffers and encoders | labels; the names that Instruments gives unnamed objects are not labels |
//! | debug groups, handlers, encoding, the driver's work, shader compilation | markers of host threads |
//! | compiled shaders | kernels, without dispatches |
//! | resource allocations | memory |
//!
//! Instruments records encoders and not dispatches, and does not name command queues; the notes of the trace say so.
//! Times are on Mach's absolute clock if the table `time-info` is there, and otherwise count from the start of the
//! trace.
//!
//! **Traps.** A table that does not exist is exported as an empty document with exit status 0. A value is written
//! once and referred to later, at any depth. A missing value keeps its place as `<sentinel/>`. A second table may
//! lack its schema. xctrace may crash after it has written everything. Tables have the rows of all processes.
//! Intervals nest and overlap. Some systems export no GPU intervals of compute work. None of these causes a wrong
//! number here; each that occurs is noted.

mod build;
mod cell;
mod clock;
mod date;
mod document;
mod facts;
mod files;
mod intervals;
mod labels;
mod root;
mod row;
mod summary;
mod table;
mod toc;

pub use files::is_bundle;
pub use root::DocumentError;
pub use table::Table;
pub use toc::{Run, Toc};

use crate::{Error, Importer, Options};
use facts::Facts;
use gapscope_trace::Trace;
use quick_xml::Reader;
use root::{Root, root};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use summary::{Ending, Summary};

/// The tables that an import uses; the most important ones are first.
pub const TABLES: &[Table] = &facts::TABLES;

/// Imports exports of xctrace.
pub const IMPORTER: Importer = Importer {
    name: "xctrace",
    reads: "exports of xctrace (XML files, or a folder of them)",
    recognises: files::recognises,
    read: |inputs, options, output| {
        let trace = read(inputs, options)?;
        let mut new = output.trace()?;
        *new.tables_mut() = trace.tables;
        new.finish(&trace.manifest, output)
    },
    joins_named_ranks: false,
};

/// Makes a trace of export files, or of the `.xml` files of folders.
///
/// # Errors
/// As [`Importer::import`], apart from errors of writing.
pub fn read(inputs: &[PathBuf], options: &Options) -> Result<Trace, Error> {
    let mut facts = Facts::default();
    for path in files::list(inputs)? {
        read_file(&path, &mut facts)?;
    }
    build::build(facts, options)
}

/// Counts the tables and rows of a file of exported tables; whoever exports tables uses the counts to check the
/// file.
///
/// # Errors
/// The file cannot be read, or is not an export of tables.
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

/// The content of a file of exported tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// The number of tables; 0 if the table does not exist, because xctrace then writes an empty document.
    pub nodes: u64,
    /// The number of readable rows.
    pub rows: u64,
    /// True if the document ends with its closing tag.
    pub whole: bool,
}

/// The content of a file: a table of contents, or the summary of tables whose rows were passed on.
enum Document {
    Toc,
    Tables(Summary),
}

/// Reads a file into the facts, and notes what was odd in it.
fn read_file(path: &Path, facts: &mut Facts) -> Result<(), Error> {
    let document = read_document(path, facts)?;
    if let Document::Tables(summary) = document {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        facts.add_summary(&file, &summary);
    }
    Ok(())
}

/// Reads a file into the facts, and returns what it is.
fn read_document(path: &Path, facts: &mut Facts) -> Result<Document, Error> {
    let file = File::open(path).map_err(Error::read(path))?;
    let foreign =
        |error: DocumentError| Error::foreign(path, "an export of xctrace", error.to_string());
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
