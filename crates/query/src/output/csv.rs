//! Writes answers as CSV, in the form that `gapscope export` writes: a line of column names, then a line for each
//! row.

use super::cells::Cells;
use super::writer::Writer;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::FormatOptions;
use gapscope_trace::csv_cell::write_cell;
use std::io::{self, Write};

/// Writes one answer as CSV.
pub(super) struct CsvWriter<'a> {
    out: &'a mut (dyn Write + Send),
}

impl<'a> CsvWriter<'a> {
    pub fn new(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> io::Result<CsvWriter<'a>> {
        for (place, field) in schema.fields().iter().enumerate() {
            if place > 0 {
                out.write_all(b",")?;
            }
            write_cell(field.name(), out)?;
        }
        out.write_all(b"\n")?;
        Ok(CsvWriter { out })
    }
}

impl Writer for CsvWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = FormatOptions::new();
        let mut cells = Cells::new(batch, &options)?;
        for row in 0..batch.num_rows() {
            for column in 0..batch.num_columns() {
                if column > 0 {
                    self.out.write_all(b",")?;
                }
                if let Some(text) = cells.text(row, column)? {
                    write_cell(text, self.out)?;
                }
            }
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
