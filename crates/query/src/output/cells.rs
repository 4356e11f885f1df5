//! Formats single values of an answer as texts, for formats made of text.

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use std::fmt::Write as _;
use std::io;

/// The columns of a batch with their formatters.
pub(super) struct Cells<'a> {
    columns: Vec<(&'a dyn Array, ArrayFormatter<'a>)>,
    /// The text of the last value, kept so that its memory is used again.
    text: String,
}

impl<'a> Cells<'a> {
    pub fn new(batch: &'a RecordBatch, options: &'a FormatOptions) -> io::Result<Cells<'a>> {
        let columns = batch.columns().iter().map(|column| {
            let formatter = ArrayFormatter::try_new(column.as_ref(), options);
            Ok((column.as_ref(), formatter.map_err(io::Error::other)?))
        });
        Ok(Cells {
            columns: columns.collect::<io::Result<_>>()?,
            text: String::new(),
        })
    }

    /// Returns the text of a value; `None` for NULL.
    pub fn text(&mut self, row: usize, column: usize) -> io::Result<Option<&str>> {
        let (array, formatter) = &self.columns[column];
        // An array of type Null has no null bitmap.
        if array.is_null(row) || *array.data_type() == DataType::Null {
            return Ok(None);
        }
        self.text.clear();
        write!(self.text, "{}", formatter.value(row)).map_err(io::Error::other)?;
        Ok(Some(&self.text))
    }
}
