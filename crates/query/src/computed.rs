//! Tables whose rows are computed from each trace while a query that names them runs, one trace at a time on each
//! core.

use crate::library::Library;
use crate::scan::{Pruning, RowGroup};
use crate::schema::{ColumnFacts, Origin, TableFacts};
use crate::source::Source;
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::stream;
use std::fmt;
use std::sync::Arc;

type Result<T> = std::result::Result<T, DataFusionError>;

/// The definition of a computed table: its name, columns and the function that computes the rows.
pub(crate) struct ComputedDefinition {
    pub name: &'static str,
    pub meaning: &'static str,
    /// The table's own columns.
    pub columns: Vec<ColumnFacts>,
    /// Returns the rows of a trace, an array for each of the columns. Problems are reported to the library.
    pub rows: fn(&Library, &Source) -> Vec<ArrayRef>,
}

/// A computed table as DataFusion sees it.
#[derive(Debug)]
pub(crate) struct ComputedTable {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    rows: fn(&Library, &Source) -> Vec<ArrayRef>,
}

impl ComputedTable {
    pub fn new(definition: ComputedDefinition, library: Arc<Library>) -> ComputedTable {
        let partitions = &library.traces.partitions;
        let facts = TableFacts::new(
            definition.name,
            definition.meaning,
            partitions,
            definition.columns,
        );
        ComputedTable {
            rows: definition.rows,
            facts: Arc::new(facts),
            library,
        }
    }

    pub fn facts(&self) -> Arc<TableFacts> {
        self.facts.clone()
    }
}

#[async_trait]
impl TableProvider for ComputedTable {
    fn schema(&self) -> SchemaRef {
        self.facts.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters exclude traces, not rows.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sources = self.library.traces.sources.len();
        let groups: Vec<RowGroup> = (0..sources)
            .map(|source| RowGroup {
                source,
                index: 0,
                rows: 1,
            })
            .collect();
        let kept = Pruning {
            facts: &self.facts,
            traces: &self.library.traces,
            files: &Vec::from_iter((0..sources).map(|_| None)),
            groups: &groups,
        }
        .that_may_match(state, filters)?;
        let sources: Vec<usize> = (0..sources)
            .filter(|at| kept.get(*at).copied().unwrap_or(true))
            .collect();
        let all: Vec<usize> = (0..self.facts.columns.len()).collect();
        let projection = projection.unwrap_or(&all).clone();
        let each = sources
            .len()
            .div_ceil(state.config().target_partitions().max(1));
        let mut partitions: Vec<Vec<usize>> =
            sources.chunks(each.max(1)).map(<[_]>::to_vec).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        let schema = Arc::new(self.facts.schema.project(&projection)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(ComputedScan {
            facts: self.facts.clone(),
            library: self.library.clone(),
            rows: self.rows,
            projection,
            schema,
            partitions,
            properties: Arc::new(properties),
        }))
    }
}

/// The plan that computes the rows of a table. A partition is a list of traces, by index.
#[derive(Debug)]
struct ComputedScan {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    rows: fn(&Library, &Source) -> Vec<ArrayRef>,
    projection: Vec<usize>,
    schema: SchemaRef,
    partitions: Vec<Vec<usize>>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for ComputedScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let traces: usize = self.partitions.iter().map(Vec::len).sum();
        write!(
            f,
            "ComputedScan: {}, traces={traces}, partitions={}",
            self.facts.name,
            self.partitions.len()
        )
    }
}

impl ExecutionPlan for ComputedScan {
    fn name(&self) -> &str {
        "ComputedScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (facts, library, rows) = (self.facts.clone(), self.library.clone(), self.rows);
        let projection = self.projection.clone();
        let batches = self.partitions[partition]
            .clone()
            .into_iter()
            .map(move |at| {
                let own = rows(&library, &library.traces.sources[at]);
                batch(&facts, &library, at, own)?
                    .project(&projection)
                    .map_err(DataFusionError::from)
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema.clone(),
            stream::iter(batches),
        )))
    }
}

/// Adds the common columns to the rows of a trace.
fn batch(
    facts: &TableFacts,
    library: &Library,
    source: usize,
    own: Vec<ArrayRef>,
) -> Result<RecordBatch> {
    let count = own.first().map_or(0, |array| array.len());
    let common = facts.columns.iter().filter_map(|column| {
        let Origin::Trace(value) = column.origin else {
            return None;
        };
        let value = library.traces.value(value, source);
        Some(value.to_array_of_size(count))
    });
    let mut arrays = common.collect::<Result<Vec<ArrayRef>>>()?;
    arrays.extend(own);
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    Ok(RecordBatch::try_new_with_options(
        facts.schema.clone(),
        arrays,
        &options,
    )?)
}
