//! Writes the trace of an import, and the traces of its ranks (the processes of a distributed program), from the rows
//! that importers push. An importer asks [`Output`] for a [`NewTrace`], pushes rows into its tables, calls
//! [`NewTrace::flush`] often and [`NewTrace::finish`] at the end.

use crate::{Error, Options};
use gapscope_files::{NewFolder, move_new};
use gapscope_timeline_builder::RowSink;
use gapscope_trace::embedded::Unpacking;
use gapscope_trace::manifest::{FORMAT_VERSION, Manifest, Rank};
use gapscope_trace::tables::Tables;
use gapscope_trace::{Loss, Trace, TraceWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The folder of the trace.
    pub output: PathBuf,
    /// The number of command buffers in the trace and in the traces of its ranks.
    pub command_buffers: u64,
    /// The number of dispatches, transfers and pieces of opaque work that have times.
    pub timed_work: u64,
    /// The losses of all traces.
    pub losses: Vec<Loss>,
    /// The notes that every report of the trace shows.
    pub notes: Vec<String>,
    /// Sentences about files that were joined to others, which say how sure the match is.
    pub joined_files: Vec<String>,
    /// Sentences about links in the folders of the inputs that were not followed; they are notes, too.
    pub left_out: Vec<String>,
}

/// A callback for progress. It receives the number of bytes that were read and the total number of bytes.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// The trace that an import writes, and the traces of its ranks. Nothing is on the disk before the first of them is
/// made, and the trace has its name only when all of it is whole.
pub struct Output<'a> {
    imported: Imported,
    progress: Progress<'a>,
    /// The folder beside the trace's place in which the trace is written, in a folder of its own; `None` before anything
    /// is written, and where traces stay in memory.
    beside: Option<NewFolder>,
    /// Whether a trace was unpacked, in a folder that is removed at the end where traces stay in memory.
    is_unpacked: bool,
    /// The rank whose trace is written, where the user named it.
    named_rank: Option<Rank>,
    /// The traces so far, where they stay in memory.
    traces: Option<Vec<Trace>>,
}

impl<'a> Output<'a> {
    /// Creates an output whose trace is written to `folder`, which must not exist.
    pub(crate) fn new(folder: &Path, progress: Progress<'a>) -> Output<'a> {
        let output = folder.to_owned();
        Output {
            imported: Imported {
                output,
                ..Imported::default()
            },
            progress,
            beside: None,
            is_unpacked: false,
            named_rank: None,
            traces: None,
        }
    }

    /// Creates an output whose traces stay in memory. Only a trace that is embedded in the input is unpacked in `folder`.
    pub(crate) fn in_memory(folder: &Path) -> Output<'static> {
        Output {
            traces: Some(Vec::new()),
            ..Output::new(folder, &|_, _| ())
        }
    }

    /// Reports how many of `all_bytes` were read. It is cheap enough to be called for every mebibyte.
    pub fn progress(&self, read_bytes: u64, all_bytes: u64) {
        (self.progress)(read_bytes, all_bytes);
    }

    /// Creates the trace; for a distributed program, this trace holds the rows that belong to no rank.
    ///
    /// # Errors
    /// The folder exists already, or the system refuses to create it.
    pub fn trace(&mut self) -> Result<NewTrace, Error> {
        if let Some(rank) = self.named_rank {
            return self.rank(rank.rank);
        }
        if self.traces.is_some() {
            return Ok(NewTrace::in_memory());
        }
        let folder = self.begin()?;
        Ok(NewTrace::new(TraceWriter::create(&folder)?))
    }

    /// Creates the trace of one rank. [`Self::trace`] must have been called before.
    ///
    /// # Errors
    /// The rank has a trace already, or the system refuses to create it.
    pub fn rank(&mut self, rank: u32) -> Result<NewTrace, Error> {
        if self.traces.is_some() {
            return Ok(NewTrace::in_memory());
        }
        let folder = self.begin()?.join(format!("rank={rank}"));
        Ok(NewTrace::new(TraceWriter::create(&folder)?))
    }

    /// Makes the next traces those of a rank that the user names, or of none again. [`Self::trace`] must have been
    /// called before.
    pub(crate) fn begin_rank(&mut self, rank: Option<Rank>) {
        self.named_rank = rank;
    }

    /// Creates a folder for the files of a trace that is embedded in an input: the trace's own, or the folder with a name in
    /// it.
    ///
    /// # Errors
    /// The folder exists already, or the system refuses to create it.
    pub(crate) fn unpack(&mut self, name: Option<&str>) -> Result<Unpacking, Error> {
        let folder = self.begin()?;
        let folder = name.map_or(folder.clone(), |name| folder.join(name));
        let unpacking = Unpacking::create(&folder)?;
        self.is_unpacked = true;
        Ok(unpacking)
    }

    /// Makes the folder beside the trace's place, if that is not done, and returns the folder of the trace.
    fn begin(&mut self) -> Result<PathBuf, Error> {
        if self.beside.is_none() && self.traces.is_none() {
            let output = &self.imported.output;
            let made = NewFolder::create(output);
            self.beside = Some(made.map_err(gapscope_trace::Error::not_made(output))?);
        }
        Ok(self.folder())
    }

    /// Returns the folder in which the trace is written.
    pub(crate) fn folder(&self) -> PathBuf {
        let beside = self.beside.as_ref();
        beside.map_or_else(
            || self.imported.output.clone(),
            |beside| beside.path().join(TRACE),
        )
    }

    /// Returns whether the traces stay in memory, so that all of an unpacked one is needed.
    pub(crate) fn keeps_traces(&self) -> bool {
        self.traces.is_some()
    }

    /// Takes the numbers, losses and notes of a trace that was unpacked.
    pub(crate) fn unpacked(&mut self, trace: &Trace) {
        self.traces
            .iter_mut()
            .for_each(|traces| traces.push(trace.clone()));
        let imported = &mut self.imported;
        imported.command_buffers += trace.tables.command_buffers.id.len() as u64;
        imported.timed_work += timed_work(&trace.tables);
        imported.losses.extend_from_slice(&trace.manifest.losses);
        for note in &trace.manifest.notes {
            if !imported.notes.contains(note) {
                imported.notes.push(note.clone());
            }
        }
    }

    /// Removes the folder of the trace, so that it can be made in another way.
    pub(crate) fn withdraw(&mut self) {
        // The next attempt finds whatever is left, and then says that the folder exists.
        if self.beside.is_some() || self.is_unpacked {
            let _ = std::fs::remove_dir_all(self.folder());
        }
    }

    /// Completes the trace without a rank after the traces of all ranks.
    ///
    /// # Errors
    /// The system refuses to write.
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

    /// Gives the trace its name, and returns the result of the import. If the import failed, nothing of it stays.
    pub(crate) fn end(self, result: Result<(), Error>) -> Result<Imported, Error> {
        result.map_err(|error| self.with_final_path(error))?;
        if self.beside.is_some() {
            let output = &self.imported.output;
            move_new(&self.folder(), output).map_err(gapscope_trace::Error::not_made(output))?;
        }
        Ok(self.imported)
    }

    /// Returns an error in which a file or folder of the trace has the path that it would have got.
    fn with_final_path(&self, mut error: Error) -> Error {
        use gapscope_trace::Error::{Exists, Write};
        if let Error::Trace(Exists { path } | Write { path, .. }) = &mut error
            && let Ok(inside) = path.strip_prefix(self.folder())
        {
            *path = self.imported.output.join(inside);
        }
        error
    }

    /// Returns the traces of an import whose traces stay in memory. What was unpacked is removed.
    pub(crate) fn into_traces(self, result: Result<(), Error>) -> Result<Vec<Trace>, Error> {
        if self.is_unpacked {
            let _ = std::fs::remove_dir_all(&self.imported.output);
        }
        result.map(|()| self.traces.unwrap_or_default())
    }
}

/// The name of the trace in the folder beside its place.
const TRACE: &str = "trace";

/// A trace that a thread of its own writes, so that the import goes on while rows are encoded.
pub struct NewTrace {
    /// Rows that were not yet handed to the writing thread.
    tables: Tables,
    /// The numbers of [`Imported`] for this trace, of rows that were handed over.
    command_buffers: u64,
    timed_work: u64,
    /// The writing thread; `None` once it has ended, and where the rows stay in memory.
    writing: Option<Writing>,
}

/// The maximum number of batches of rows that wait for the writing thread, because each batch takes memory. When
/// the limit is reached, the import waits.
const MAX_WAITING_BATCHES: usize = 4;

/// The thread that writes rows.
struct Writing {
    batches: SyncSender<Tables>,
    /// Batches that were written, whose memory is used again.
    written: Receiver<Tables>,
    /// Returns the writer after the last batch.
    thread: JoinHandle<Result<TraceWriter, gapscope_trace::Error>>,
}

impl NewTrace {
    fn new(mut writer: TraceWriter) -> NewTrace {
        let (batches, waiting) = mpsc::sync_channel::<Tables>(MAX_WAITING_BATCHES);
        let (done, written) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for mut batch in waiting {
                writer.tables_mut().append(&mut batch);
                // The receiver may be gone, and then the memory is not used again.
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

    /// Creates a trace whose rows stay in memory.
    fn in_memory() -> NewTrace {
        NewTrace {
            tables: Tables::default(),
            command_buffers: 0,
            timed_work: 0,
            writing: None,
        }
    }

    /// Returns the rows that are not written yet. Push new rows here, and call [`Self::flush`] often.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Hands the rows to the writing thread if a table has enough of them for a batch.
    ///
    /// # Errors
    /// The system refuses to write. The error may concern rows of an earlier batch.
    pub fn flush(&mut self) -> Result<(), Error> {
        match self.writing.is_some() && self.tables.have(TraceWriter::BATCH_ROWS) {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    /// Writes the remaining rows and the manifest, and adds the trace's numbers, losses and notes to the result of
    /// `output`.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn finish(mut self, manifest: &Manifest, output: &mut Output) -> Result<(), Error> {
        self.hand_over()?;
        let of_rank = output.named_rank.map(|rank| Manifest {
            rank: Some(rank),
            ..manifest.clone()
        });
        let manifest = of_rank.as_ref().unwrap_or(manifest);
        if let Some(writing) = self.writing.take() {
            writing.end()?.finish(manifest)?;
        }
        if let Some(traces) = &mut output.traces {
            traces.push(Trace {
                manifest: manifest.clone(),
                tables: std::mem::take(&mut self.tables),
                ..Trace::default()
            });
        }
        let imported = &mut output.imported;
        imported.command_buffers += self.command_buffers;
        imported.timed_work += self.timed_work;
        imported.losses.extend_from_slice(&manifest.losses);
        let joined = manifest.joined_files.iter();
        imported
            .joined_files
            .extend(joined.map(ToString::to_string));
        for note in &manifest.notes {
            if !imported.notes.contains(note) {
                imported.notes.push(note.clone());
            }
        }
        Ok(())
    }

    /// Hands all rows to the writing thread.
    fn hand_over(&mut self) -> Result<(), Error> {
        let tables = &self.tables;
        self.command_buffers += tables.command_buffers.id.len() as u64;
        self.timed_work += timed_work(tables);
        let Some(writing) = &self.writing else {
            return Ok(());
        };
        let next = writing.written.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.tables, next);
        if writing.batches.send(batch).is_ok() {
            return Ok(());
        }
        // The thread stops receiving early only if it failed.
        let writing = self.writing.take();
        writing.map_or(Ok(()), |writing| writing.end().map(drop))
    }
}

/// Counts the dispatches, transfers and pieces of opaque work that have times.
fn timed_work(tables: &Tables) -> u64 {
    let starts = [
        &tables.dispatches.start_ns,
        &tables.transfers.start_ns,
        &tables.opaque_work.start_ns,
    ];
    let timed = starts.map(|starts| starts.iter().flatten().count() as u64);
    timed.into_iter().sum()
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
        // A failed import removes the folder, so that the thread must have stopped writing to it by then.
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
    /// Waits until all batches are written, and returns the writer or the thread's error.
    fn end(self) -> Result<TraceWriter, Error> {
        drop(self.batches);
        let ended = self.thread.join();
        Ok(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}
