//! Defines [`Writer`], the interface that the writer of each format of answers has.

use datafusion::arrow::array::RecordBatch;
use std::io;

/// Writes the batches of one answer.
pub(crate) trait Writer {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;
    fn finish(self: Box<Self>) -> io::Result<()>;
}
