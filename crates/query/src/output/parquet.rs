//! Writes answers as Parquet, a binary file format of tables.

use super::writer::Writer;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::Arc;

/// Writes one answer as Parquet.
pub(super) struct ParquetWriter<'a> {
    /// The columns as they are written.
    schema: SchemaRef,
    writer: ArrowWriter<&'a mut (dyn Write + Send)>,
}

impl<'a> ParquetWriter<'a> {
    pub fn new(
        schema: &SchemaRef,
        out: &'a mut (dyn Write + Send),
    ) -> io::Result<ParquetWriter<'a>> {
        let fields = schema.fields().iter();
        // Views are converted to plain texts, which every reader knows.
        let fields = fields.map(|field| match field.data_type() {
            DataType::Utf8View => Field::new(field.name(), DataType::Utf8, field.is_nullable()),
            _ => field.as_ref().clone(),
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("gapscope ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(1 << 20))
            .build();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties));
        Ok(ParquetWriter {
            schema,
            writer: writer.map_err(io::Error::other)?,
        })
    }
}

impl Writer for ParquetWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<Vec<_>, _>>();
        columns
            .and_then(|columns| RecordBatch::try_new(self.schema.clone(), columns))
            .map_err(io::Error::other)
            .and_then(|batch| self.writer.write(&batch).map_err(io::Error::other))
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let out = self.writer.into_inner().map_err(io::Error::other)?;
        out.flush()
    }
}
