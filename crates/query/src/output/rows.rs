//! Writes answers as JSON lines for programs: one line with the columns, then an array for each row.

use super::cells::Cells;
use super::writer::Writer;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::util::display::FormatOptions;
use serde_json::json;
use std::io::{self, Write};

/// Writes one answer as JSON lines.
pub(super) struct RowsWriter<'a> {
    out: &'a mut (dyn Write + Send),
}

impl<'a> RowsWriter<'a> {
    pub fn new(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> io::Result<RowsWriter<'a>> {
        let columns = schema.fields().iter();
        let columns =
            columns.map(|column| json!({"name": column.name(), "type": kind(column.data_type())}));
        writeln!(out, "{}", json!({"columns": columns.collect::<Vec<_>>()}))?;
        Ok(RowsWriter { out })
    }
}

/// Returns the kind of a column's values: `integer`, `fraction`, `boolean` or `text`.
fn kind(data_type: &DataType) -> &'static str {
    match data_type {
        t if t.is_integer() => "integer",
        t if t.is_numeric() => "fraction",
        DataType::Boolean => "boolean",
        _ => "text",
    }
}

impl Writer for RowsWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = FormatOptions::new();
        let mut cells = Cells::new(batch, &options)?;
        for row in 0..batch.num_rows() {
            for column in 0..batch.num_columns() {
                self.out.write_all(if column == 0 { b"[" } else { b"," })?;
                serde_json::to_writer(&mut self.out, &cells.text(row, column)?)?;
            }
            // A row without columns is an empty array.
            self.out.write_all(if batch.num_columns() == 0 {
                b"[]\n"
            } else {
                b"]\n"
            })?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
