//! Defines DataFusion's plan that reads a table: the row groups (parts of a Parquet file) of all traces, distributed
//! over partitions that run in parallel.

use super::reader::Reader;
use super::row_group::RowGroup;
use crate::library::Library;
use crate::schema::{ColumnFacts, TableFacts, schema};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::stream;
use gapscope_trace::table_file::TableFile;
use std::fmt;
use std::sync::Arc;

/// The plan that reads chosen columns of a table of all traces.
#[derive(Debug)]
pub(super) struct Scan {
    pub facts: Arc<TableFacts>,
    pub library: Arc<Library>,
    pub files: Arc<Vec<Option<TableFile>>>,
    /// The columns in the order of the schema.
    pub columns: Vec<ColumnFacts>,
    pub schema: SchemaRef,
    /// The row groups of each partition. They are assigned here and not during execution, because a plan may run
    /// twice.
    partitions: Vec<Vec<RowGroup>>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl Scan {
    pub fn new(
        facts: Arc<TableFacts>,
        library: Arc<Library>,
        files: Arc<Vec<Option<TableFile>>>,
        columns: &[usize],
        groups: Vec<RowGroup>,
        most_partitions: usize,
        limit: Option<usize>,
    ) -> Result<Scan, DataFusionError> {
        let columns: Vec<_> = columns
            .iter()
            .map(|at| facts.columns[*at].clone())
            .collect();
        let schema = schema(&columns);
        let partitions = share_out(groups, most_partitions);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Scan {
            facts,
            library,
            files,
            columns,
            schema,
            partitions,
            limit,
            properties: Arc::new(properties),
        })
    }
}

/// Distributes row groups evenly by rows. Neighbours stay together, because those of one trace share its names.
fn share_out(groups: Vec<RowGroup>, most: usize) -> Vec<Vec<RowGroup>> {
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

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let count: usize = self.partitions.iter().map(Vec::len).sum();
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        write!(
            f,
            "TraceScan: {}, columns=[{}], row_groups={count}, partitions={}",
            self.facts.name,
            names.join(", "),
            self.partitions.len()
        )
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "TraceScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion, DataFusionError>,
    ) -> Result<TreeNodeRecursion, DataFusionError> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let reader = Reader::new(
            self.library.clone(),
            self.files.clone(),
            self.columns.clone(),
            self.schema.clone(),
            self.partitions[partition].clone(),
            context.session_config().batch_size(),
            self.limit,
        );
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema.clone(),
            stream::iter(reader),
        )))
    }

    /// Returns the number of rows, which is all that `count(*)` needs, and by which joins choose their sides.
    fn partition_statistics(
        &self,
        partition: Option<usize>,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let rows = |groups: &Vec<RowGroup>| groups.iter().map(|group| group.rows).sum::<usize>();
        let rows = match partition {
            Some(partition) => rows(&self.partitions[partition]),
            None => self.partitions.iter().map(rows).sum(),
        };
        let rows = match self.limit {
            Some(limit) => Precision::Inexact(rows.min(limit)),
            None => Precision::Exact(rows),
        };
        Ok(Arc::new(
            Statistics::new_unknown(&self.schema).with_num_rows(rows),
        ))
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
