//! Defines [`Writer`], the interface that the writer of each format of answers has.

use datafusion::arrow::array::RecordBatch;
use std::io;

/// Writes the batches of one answer.
pub(crate) trait Writer {
    /// Writes the rows of a batch; a writer may hold them back until [`Self::finish`].
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;
    /// Writes what was held back and the end of the format, and flushes.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
