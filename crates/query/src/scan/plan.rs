//! Defines the scan of a table of the trace format: its row groups (parts of a Parquet file) of all traces,
//! distributed over partitions that run in parallel.

use super::leaf::{LeafSource, Result};
use super::reader::Reader;
use super::row_group::RowGroup;
use crate::library::Library;
use crate::schema::{ColumnFacts, TableFacts};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use gapscope_trace::table_file::TableFile;
use std::fmt;
use std::sync::Arc;

/// The scan of chosen columns of a table of all traces.
#[derive(Debug)]
pub(super) struct Scan {
    pub facts: Arc<TableFacts>,
    pub library: Arc<Library>,
    /// The table's file in each trace, in the order of the session's traces; `None` where there is none.
    pub files: Arc<Vec<Option<TableFile>>>,
    /// The columns in the order of the schema.
    pub columns: Vec<ColumnFacts>,
    pub schema: SchemaRef,
    /// The row groups of each partition.
    pub partitions: Vec<Vec<RowGroup>>,
    /// The most rows that the query needs of each partition; `None` without a limit.
    pub limit: Option<usize>,
}

/// Distributes row groups evenly by rows over at most `most` partitions. Neighbours stay together, because those of
/// one trace share its names.
pub(super) fn share_out(groups: Vec<RowGroup>, most: usize) -> Vec<Vec<RowGroup>> {
    let count = groups.len().clamp(1, most.max(1));
    let all: usize = groups.iter().map(|group| group.rows).sum();
    let mut partitions = vec![Vec::new(); count];
    let mut before = 0;
    for group in groups {
        // The position is the middle of the row group's rows.
        let place = (before + group.rows / 2) as u128 * count as u128 / all.max(1) as u128;
        partitions[(place as usize).min(count - 1)].push(group);
        before += group.rows;
    }
    partitions
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let count: usize = self.partitions.iter().map(Vec::len).sum();
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        let names = names.join(", ");
        write!(
            f,
            "{}, columns=[{names}], row_groups={count}",
            self.facts.name
        )
    }
}

impl LeafSource for Scan {
    const NAME: &'static str = "TraceScan";

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn batches(
        &self,
        partition: usize,
        batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
        Reader::new(
            self.library.clone(),
            self.files.clone(),
            self.columns.clone(),
            self.schema.clone(),
            self.partitions[partition].clone(),
            batch_rows,
            self.limit,
        )
    }

    fn rows(&self, partition: Option<usize>) -> Precision<usize> {
        let rows = |groups: &Vec<RowGroup>| groups.iter().map(|group| group.rows).sum::<usize>();
        let rows = match partition {
            Some(partition) => rows(&self.partitions[partition]),
            None => self.partitions.iter().map(rows).sum(),
        };
        match self.limit {
            Some(limit) => Precision::Inexact(rows.min(limit)),
            None => Precision::Exact(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_group_is_read_once_and_the_work_is_even() {
        let group = |source, rows| RowGroup {
            source,
            index: 0,
            rows,
        };
        let groups: Vec<RowGroup> = (0..100).map(|at| group(at, 10 + at % 3)).collect();
        let shared = share_out(groups, 4);
        assert_eq!(shared.len(), 4);
        let order: Vec<usize> = shared.iter().flatten().map(|group| group.source).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
        for part in &shared {
            let rows: usize = part.iter().map(|group| group.rows).sum();
            assert!((250..=300).contains(&rows), "{rows}");
        }
        assert_eq!(share_out(vec![group(0, 5), group(1, 5)], 8).len(), 2);
        assert_eq!(share_out(Vec::new(), 8).len(), 1);
    }
}
