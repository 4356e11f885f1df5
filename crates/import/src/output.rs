//! Where importers write.

use crate::{Error, Options};
use gapscope_timeline_builder::RowSink;
use gapscope_trace::manifest::{FORMAT_VERSION, Manifest};
use gapscope_trace::tables::Tables;
use gapscope_trace::{Loss, TraceWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

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

    /// Completes the trace of what has no rank, once all ranks have theirs.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn finish_ranks(
        &mut self,
        new: NewTrace,
        ranks: Vec<u32>,
        options: &Options,
        notes: Vec<String>,
    ) -> Result<(), Error> {
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            command: options.command.clone().unwrap_or_default(),
            ranks,
            notes,
            ..Manifest::default()
        };
        new.finish(&manifest, self)
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

/// A trace that is being written, by a thread of its own: an import goes on while the rows before are encoded.
pub struct NewTrace {
    /// Rows that the writing thread does not have yet.
    tables: Tables,
    command_buffers: u64,
    timed_work: u64,
    writing: Option<Writing>,
}

/// Batches that wait for the writing thread: few, as each takes memory.
const WAITING: usize = 4;

/// The thread that writes.
struct Writing {
    batches: SyncSender<Tables>,
    /// Batches that were written, for their space.
    written: Receiver<Tables>,
    /// The writer, with all rows, once there are no more batches.
    thread: JoinHandle<Result<TraceWriter, gapscope_trace::Error>>,
}

impl NewTrace {
    fn new(mut writer: TraceWriter) -> NewTrace {
        let (batches, waiting) = mpsc::sync_channel::<Tables>(WAITING);
        let (done, written) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for mut batch in waiting {
                writer.tables_mut().append(&mut batch);
                // Nobody may want the space any more.
                let _ = done.send(batch);
                writer.flush_full()?;
            }
            Ok(writer)
        });
        NewTrace {
            tables: Tables::default(),
            command_buffers: 0,
            timed_work: 0,
            writing: Some(Writing {
                batches,
                written,
                thread,
            }),
        }
    }

    /// Rows that are not written yet. Push new ones here, and call [`Self::flush`] often.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Lets the rows be written where a table has enough of them. Costs nothing when none has.
    ///
    /// # Errors
    /// The system refuses: what is said may be of rows before.
    pub fn flush(&mut self) -> Result<(), Error> {
        match self.tables.have(TraceWriter::BATCH_ROWS) {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(mut self, manifest: &Manifest, output: &mut Output) -> Result<(), Error> {
        self.hand_over()?;
        if let Some(writing) = self.writing.take() {
            writing.end()?.finish(manifest)?;
        }
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

    /// Gives the writing thread all rows.
    fn hand_over(&mut self) -> Result<(), Error> {
        let tables = &self.tables;
        self.command_buffers += tables.command_buffers.id.len() as u64;
        let starts = [
            &tables.dispatches.start_ns,
            &tables.transfers.start_ns,
            &tables.opaque_work.start_ns,
        ];
        for starts in starts {
            self.timed_work += starts.iter().flatten().count() as u64;
        }
        let Some(writing) = &self.writing else {
            return Ok(());
        };
        let next = writing.written.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.tables, next);
        if writing.batches.send(batch).is_ok() {
            return Ok(());
        }
        // The thread ends before there are no more batches only where it failed.
        let writing = self.writing.take();
        writing.map_or(Ok(()), |writing| writing.end().map(drop))
    }
}

impl RowSink for NewTrace {
    type Error = Error;
    fn tables(&mut self) -> &mut Tables {
        &mut self.tables
    }
    fn flush(&mut self) -> Result<(), Error> {
        NewTrace::flush(self)
    }
}

impl Drop for NewTrace {
    fn drop(&mut self) {
        // An import that failed removes the folder: nothing may be written into it then.
        if let Some(Writing {
            batches, thread, ..
        }) = self.writing.take()
        {
            drop(batches);
            let _ = thread.join();
        }
    }
}

impl Writing {
    /// Waits until all batches are written.
    fn end(self) -> Result<TraceWriter, Error> {
        drop(self.batches);
        let ended = self.thread.join();
        Ok(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}
