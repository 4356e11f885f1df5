//! Reads the dispatches of a trace piece by piece: each piece is a table of the next [`PIECE_ROWS`] rows.

use super::load::{self, BATCH_ROWS};
use super::references::KnownIds;
use super::selection::Selection;
use super::{read_manifest, table_path};
use crate::column::{ColumnValues, Texts};
use crate::damage::Damage;
use crate::parallel;
use crate::table_file::{Batches, ReadError, TableFile};
use crate::tables::{ColumnFacts, Dispatches, Table};
use crate::{Diagnostic, Error, Trace};
use arrow_array::{Array, ArrayRef};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of a piece: its columns fill a few megabytes, and handing it over costs little beside its rows.
const PIECE_ROWS: usize = 4 * BATCH_ROWS;

/// The dispatches of a trace, of which there may be ten million. A caller that takes what it needs from each piece
/// never has all of their columns in memory.
#[derive(Debug)]
pub struct DispatchPieces {
    file: TableFile,
    selection: Selection,
    /// The time on the trace's clock that becomes 0 in the pieces.
    origin_ns: i64,
    /// True once the memory limit was exceeded.
    stopped: AtomicBool,
}

impl DispatchPieces {
    /// Opens the dispatches of the complete trace `folder`, with the columns of `selection`. Returns `None` where
    /// [`super::read`] reports more: the trace is not complete, or the file cannot be read.
    pub fn open(folder: &Path, selection: &Selection) -> Option<DispatchPieces> {
        if !read_manifest(folder).ok()?.complete {
            return None;
        }
        let file = load::open::<Dispatches>(&table_path(folder, Dispatches::NAME)).ok()?;
        Some(DispatchPieces {
            file,
            selection: selection.clone(),
            origin_ns: 0,
            stopped: AtomicBool::new(false),
        })
    }

    /// Returns the same dispatches with times that count from `origin_ns`.
    #[must_use]
    pub fn from_origin(self, origin_ns: i64) -> DispatchPieces {
        DispatchPieces { origin_ns, ..self }
    }

    /// Returns the number of dispatches.
    pub fn rows(&self) -> usize {
        self.file.rows()
    }

    /// Hands over all dispatches in their order, while the next ones are being read. `trace` has the other tables.
    /// Returns the diagnostics about their ids. Returns `None` where a column turns out to be unreadable, for which
    /// [`super::read`] has the reason and the other columns; or where [`Self::stopped`] has the reason.
    #[must_use]
    pub fn each(
        &self,
        trace: &Trace,
        take: &mut (dyn FnMut(&Dispatches) + Send),
    ) -> Option<Vec<Diagnostic>> {
        let known = KnownIds::new(trace, &self.selection);
        let mut unknown = known.dispatches();
        let mut take = |piece: &Dispatches| {
            unknown.check(piece);
            take(piece);
        };
        let columns = Dispatches::columns();
        let columns: Option<Vec<_>> = columns.iter().map(|c| self.column(c)).collect();
        let mut columns = columns?;
        let (mut piece, mut next) = (Dispatches::default(), Dispatches::default());
        // The number of rows read so far, and of those in `piece`.
        let (mut read, mut held) = (0, 0);
        while held > 0 || read < self.rows() {
            let rows = PIECE_ROWS.min(self.rows() - read);
            next.clear();
            // A piece is taken while the columns of the next one are read; the longest job comes first.
            let mut jobs = Vec::new();
            if held > 0 {
                jobs.push(PieceJob::Take(&piece, &mut take));
            }
            let into = next.columns_mut().into_iter();
            let into = columns.iter_mut().zip(into);
            jobs.extend(into.map(|(from, into)| PieceJob::Read { from, into, rows }));
            let done = parallel::each(jobs, PieceJob::run).into_iter();
            if let Err(error) = done.collect::<Result<(), ReadError>>() {
                self.stopped
                    .fetch_or(error == ReadError::Memory, Ordering::Relaxed);
                return None;
            }
            (read, held) = (read + rows, rows);
            std::mem::swap(&mut piece, &mut next);
            if self.origin_ns != 0 {
                for start_ns in piece.start_ns.values_mut() {
                    *start_ns = start_ns.saturating_sub(self.origin_ns);
                }
            }
        }
        // Nothing tells which rows are missing.
        let all_read = columns.iter_mut().all(ColumnReader::is_read);
        all_read.then(|| unknown.diagnostics())
    }

    /// Returns the error where the memory limit was exceeded before all dispatches were taken.
    pub fn stopped(&self) -> Option<Error> {
        let stopped = self.stopped.load(Ordering::Relaxed);
        stopped.then(|| Error::memory(self.file.path()))
    }

    /// Returns the source of a column; `None` where its values cannot be read.
    fn column(&self, facts: &ColumnFacts) -> Option<ColumnReader> {
        if !self.selection.has_column(Dispatches::NAME, facts.name) {
            return Some(ColumnReader::LeftOut);
        }
        if !self.file.has(facts.name) {
            return facts.nullable.then_some(ColumnReader::Absent);
        }
        let batches = self.file.read(&[facts.name], None, BATCH_ROWS).ok()?;
        Some(ColumnReader::There {
            batches: Box::new(batches),
            rest: None,
            texts: Texts::default(),
        })
    }
}

/// A job that runs beside others.
enum PieceJob<'a> {
    /// The piece that is handed over, and the function that takes it.
    Take(&'a Dispatches, &'a mut (dyn FnMut(&Dispatches) + Send)),
    Read {
        from: &'a mut ColumnReader,
        into: &'a mut dyn ColumnValues,
        rows: usize,
    },
}

impl PieceJob<'_> {
    /// Hands the piece over, or reads the next rows of a column.
    fn run(self) -> Result<(), ReadError> {
        match self {
            PieceJob::Take(piece, take) => {
                take(piece);
                Ok(())
            }
            PieceJob::Read { from, into, rows } => from.fill(into, rows),
        }
    }
}

/// The source of a column's values.
enum ColumnReader {
    /// The column was not selected and stays empty.
    LeftOut,
    /// The file lacks the column, and no row has a value.
    Absent,
    /// The file has the column.
    There {
        batches: Box<Batches>,
        /// The unread end of the last batch.
        rest: Option<ArrayRef>,
        texts: Texts,
    },
}

impl ColumnReader {
    /// Returns true when the file has no more values than it claims.
    fn is_read(&mut self) -> bool {
        match self {
            ColumnReader::LeftOut | ColumnReader::Absent => true,
            ColumnReader::There { batches, rest, .. } => rest.is_none() && batches.next().is_none(),
        }
    }

    /// Appends the next `rows` rows of the column to `into`.
    fn fill(&mut self, into: &mut dyn ColumnValues, rows: usize) -> Result<(), ReadError> {
        let (batches, rest, texts) = match self {
            ColumnReader::LeftOut => return Ok(()),
            ColumnReader::Absent => {
                into.resize(into.rows() + rows);
                return Ok(());
            }
            ColumnReader::There {
                batches,
                rest,
                texts,
            } => (batches, rest, texts),
        };
        let until = into.rows() + rows;
        while into.rows() < until {
            let array = match rest.take() {
                Some(array) => array,
                None => match batches.next() {
                    Some(batch) => batch?.column(0).clone(),
                    None => return Err(Damage::FewerRows.into()),
                },
            };
            let wanted = array.len().min(until - into.rows());
            if !into.append_array(array.slice(0, wanted).as_ref(), texts) {
                return Err(Damage::TypeOrNulls.into());
            }
            if wanted < array.len() {
                *rest = Some(array.slice(wanted, array.len() - wanted));
            }
        }
        Ok(())
    }
}
