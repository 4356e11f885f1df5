//! Where importers write.

use crate::Error;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::tables::Tables;
use gapscope_trace::{Loss, TraceWriter};
use std::path::{Path, PathBuf};

/// What an import gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The folder of the trace.
    pub output: PathBuf,
    /// Command buffers in the trace, those of its ranks included.
    pub command_buffers: u64,
    /// Pieces of GPU work with times.
    pub timed_work: u64,
    /// What is missing.
    pub losses: Vec<Loss>,
    /// Sentences for every report.
    pub notes: Vec<String>,
}

/// What hears how far an import is: bytes of the input that were read, and all of them.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// The trace that an import writes, with those of its ranks. Nothing is on the disk before the first one is asked for.
pub struct Output<'a> {
    imported: Imported,
    progress: Progress<'a>,
    made: bool,
}

impl<'a> Output<'a> {
    /// Of a trace in `folder`, which must not exist.
    pub(crate) fn new(folder: &Path, progress: Progress<'a>) -> Output<'a> {
        let output = folder.to_owned();
        Output {
            imported: Imported {
                output,
                ..Imported::default()
            },
            progress,
            made: false,
        }
    }

    /// Says how many bytes of the input were read, of how many. Cheap enough for every mebibyte.
    pub fn progress(&self, read_bytes: u64, all_bytes: u64) {
        (self.progress)(read_bytes, all_bytes);
    }

    /// Makes the trace, of a distributed program the one of what has no rank.
    ///
    /// # Errors
    /// Its folder exists, or the system refuses.
    pub fn trace(&mut self) -> Result<NewTrace, Error> {
        let writer = TraceWriter::create(&self.imported.output)?;
        self.made = true;
        Ok(NewTrace::new(writer))
    }

    /// Makes the trace of one rank, once there is [`Self::trace`].
    ///
    /// # Errors
    /// The rank has one, or the system refuses.
    pub fn rank(&mut self, rank: u32) -> Result<NewTrace, Error> {
        let folder = self.imported.output.join(format!("rank={rank}"));
        Ok(NewTrace::new(TraceWriter::create(&folder)?))
    }

    /// What the import gave; if it failed, nothing of it is left on the disk.
    pub(crate) fn end(self, result: Result<(), Error>) -> Result<Imported, Error> {
        if result.is_err() && self.made {
            // If it cannot be removed, the error that is on its way says more than this one would.
            let _ = std::fs::remove_dir_all(&self.imported.output);
        }
        result.map(|()| self.imported)
    }
}

/// A trace that is being written.
pub struct NewTrace {
    writer: TraceWriter,
    command_buffers: u64,
    timed_work: u64,
}

impl NewTrace {
    fn new(writer: TraceWriter) -> NewTrace {
        NewTrace {
            writer,
            command_buffers: 0,
            timed_work: 0,
        }
    }

    /// Rows that are not written yet. Push new ones here, and call [`Self::flush`] often.
    pub fn tables_mut(&mut self) -> &mut Tables {
        self.writer.tables_mut()
    }

    /// Keeps the code of a kernel, as [`TraceWriter::add_source`].
    ///
    /// # Errors
    /// As there.
    pub fn add_source(&mut self, hash: &str, extension: &str, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.writer.add_source(hash, extension, bytes)?)
    }

    /// Writes the tables that have enough rows. Costs nothing when none has.
    ///
    /// # Errors
    /// The system refuses.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.count(TraceWriter::BATCH_ROWS);
        Ok(self.writer.flush_full()?)
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(mut self, manifest: &Manifest, output: &mut Output) -> Result<(), Error> {
        self.count(1);
        self.writer.finish(manifest)?;
        let imported = &mut output.imported;
        imported.command_buffers += self.command_buffers;
        imported.timed_work += self.timed_work;
        imported.losses.extend_from_slice(&manifest.losses);
        for note in &manifest.notes {
            if !imported.notes.contains(note) {
                imported.notes.push(note.clone());
            }
        }
        Ok(())
    }

    /// Counts the rows of the tables that have at least so many, which are written next.
    fn count(&mut self, least_rows: usize) {
        let tables = self.writer.tables_mut();
        let of = |rows: usize| if rows >= least_rows { rows as u64 } else { 0 };
        self.command_buffers += of(tables.command_buffers.id.len());
        let starts = [
            &tables.dispatches.start_ns,
            &tables.transfers.start_ns,
            &tables.opaque_work.start_ns,
        ];
        for starts in starts.into_iter().filter(|rows| rows.len() >= least_rows) {
            self.timed_work += starts.iter().flatten().count() as u64;
        }
    }
}
