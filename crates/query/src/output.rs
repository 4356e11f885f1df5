//! Writes answers as a table, CSV, JSON, JSON lines or Parquet, batch by batch: [`Format::writer`] makes the writer
//! of a format, which then gets the batches of rows.

mod cells;
mod csv;
mod json;
mod parquet;
mod rows;
mod table;
mod writer;

use datafusion::arrow::datatypes::SchemaRef;
use std::io::{self, Write};
use writer::Writer;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people: columns side by side, long texts cut, control characters made visible.
    Table,
    /// RFC 4180 with `\n`; an empty field is NULL, an empty text is `""`.
    Csv,
    /// An array of objects, one a line; NULL is `null`.
    Json,
    /// JSON lines for programs: the columns with their types, then an array for each row. Every value is a text and
    /// NULL is `null`, so that integers of any size stay exact and columns may share a name.
    Rows,
    /// Parquet, compressed by zstd.
    Parquet,
}

/// The number of rows in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCount(pub u64);

impl Format {
    /// Returns a writer for an answer with these columns; most write the header at once.
    pub(crate) fn writer<'a>(
        self,
        schema: &SchemaRef,
        out: &'a mut (dyn Write + Send),
    ) -> io::Result<Box<dyn Writer + 'a>> {
        Ok(match self {
            Format::Table => Box::new(table::TableWriter::new(schema, out)),
            Format::Csv => Box::new(csv::CsvWriter::new(schema, out)?),
            Format::Json => Box::new(json::JsonWriter::new(schema, out)?),
            Format::Rows => Box::new(rows::RowsWriter::new(schema, out)?),
            Format::Parquet => Box::new(parquet::ParquetWriter::new(schema, out)?),
        })
    }
}
