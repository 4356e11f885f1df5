//! The Parquet file of one table of one trace.

use crate::schema::{Origin, TableFacts};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use gapscope_trace::reader::guarded;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose footer was read.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub path: PathBuf,
    pub metadata: ArrowReaderMetadata,
}

impl TableFile {
    /// Reads the footer of the table's file in `folder`. The error is a sentence.
    pub fn open(folder: &Path, facts: &TableFacts) -> Result<TableFile, String> {
        let path = folder.join(format!("{}.parquet", facts.name));
        let unreadable = |reason: String| {
            format!(
                "{} cannot be read ({reason}): its rows are missing",
                path.display()
            )
        };
        if !path.exists() {
            return Err(format!(
                "{} is missing: its rows are unknown",
                path.display()
            ));
        }
        let metadata = guarded(|| footer(&path, facts)).map_err(unreadable)?;
        Ok(TableFile { path, metadata })
    }

    /// Reads columns of one row group.
    pub fn read(
        &self,
        row_group: usize,
        columns: &[&str],
        batch_rows: usize,
    ) -> Result<ParquetRecordBatchReader, String> {
        let file = File::open(&self.path).map_err(|error| error.to_string())?;
        let fields = self.metadata.schema().fields();
        let places = fields.iter().enumerate();
        let places = places.filter(|(_, field)| columns.contains(&field.name().as_str()));
        let mask = ProjectionMask::roots(
            self.metadata.parquet_schema(),
            places.map(|(place, _)| place).collect::<Vec<_>>(),
        );
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_row_groups(vec![row_group])
            .with_projection(mask)
            .with_batch_size(batch_rows)
            .build()
            .map_err(|error| error.to_string())
    }

    /// Rows of a row group.
    pub fn rows(&self, row_group: usize) -> usize {
        let rows = self.metadata.metadata().row_group(row_group).num_rows();
        usize::try_from(rows).unwrap_or(0)
    }
}

fn footer(path: &Path, facts: &TableFacts) -> Result<ArrowReaderMetadata, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(&file)
        .map_err(|error| error.to_string())?;
    check_rows(&metadata)?;
    let metadata = Arc::new(metadata);
    // What the file itself says of its types comes from the Arrow of the trace's writer.
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let found = ArrowReaderMetadata::try_new(metadata.clone(), options())
        .map_err(|error| error.to_string())?;
    let fields: Vec<Field> = found
        .schema()
        .fields()
        .iter()
        .map(|field| wanted(field, facts))
        .collect::<Result<_, String>>()?;
    let schema = Arc::new(Schema::new(Fields::from(fields)));
    ArrowReaderMetadata::try_new(metadata, options().with_schema(schema))
        .map_err(|error| error.to_string())
}

/// The field as the table has it. Columns that the table does not know are never read.
fn wanted(field: &Field, facts: &TableFacts) -> Result<Field, String> {
    let place = facts.column(field.name());
    let known = place.map(|place| &facts.columns[place]);
    let Some(known) = known.filter(|known| known.origin == Origin::File) else {
        return Ok(field.clone());
    };
    let is_text = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    let both_texts = is_text(field.data_type()) && is_text(&known.data_type);
    match both_texts || *field.data_type() == known.data_type {
        true => Ok(field.clone().with_data_type(known.data_type.clone())),
        false => Err(format!(
            "its column {} is of type {} and not {}",
            field.name(),
            field.data_type(),
            known.data_type
        )),
    }
}

fn check_rows(metadata: &ParquetMetaData) -> Result<(), String> {
    let groups = metadata.row_groups();
    let agree = groups.iter().all(|group| {
        let mut columns = group.columns().iter();
        group.num_rows() >= 0 && columns.all(|column| column.num_values() == group.num_rows())
    });
    match agree {
        true => Ok(()),
        false => Err("its columns differ in their numbers of rows".to_owned()),
    }
}
