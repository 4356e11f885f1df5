//! Writes answers as a JSON array of objects, one a line.

use super::writer::Writer;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use std::io::{self, Write};

/// Writes one answer as a JSON array.
pub(super) struct JsonWriter<'a> {
    out: &'a mut (dyn Write + Send),
    /// The objects of the current batch, a line for each.
    lines: Vec<u8>,
    /// True once an object was written, so that a comma comes before the next.
    started: bool,
}

impl<'a> JsonWriter<'a> {
    /// Creates a writer. Two columns of the same name are an error, because they would share a key.
    pub fn new(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> io::Result<JsonWriter<'a>> {
        let mut names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        names.sort();
        if let Some(two) = names.windows(2).find(|two| two[0] == two[1]) {
            return Err(io::Error::other(format!(
                "JSON cannot have two columns called {}: name one of them by AS",
                two[0]
            )));
        }
        out.write_all(b"[")?;
        Ok(JsonWriter {
            out,
            lines: Vec::new(),
            started: false,
        })
    }
}

impl Writer for JsonWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.lines.clear();
        let mut writer = WriterBuilder::new()
            .with_explicit_nulls(true)
            .build::<_, LineDelimited>(&mut self.lines);
        writer
            .write(batch)
            .and_then(|()| writer.finish())
            .map_err(io::Error::other)?;
        drop(writer);
        // No text contains a line end: JSON escapes them.
        for line in self.lines.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            self.out
                .write_all(if self.started { b",\n" } else { b"\n" })?;
            self.out.write_all(line)?;
            self.started = true;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }
}
