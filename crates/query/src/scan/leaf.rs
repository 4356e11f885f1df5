//! Makes a plan of DataFusion (the SQL engine) of a source of rows: the engine asks the plan for its partitions,
//! which run in parallel, and gets batches of rows.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::TableProviderFilterPushDown;
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

/// A result with an error of the engine.
pub(crate) type Result<T> = std::result::Result<T, DataFusionError>;

/// The rows of a table, in partitions. They are assigned before execution, because a plan may run twice.
pub(crate) trait LeafSource: fmt::Debug + Send + Sync + 'static {
    /// The name of the plan in `EXPLAIN`; [`fmt::Display`] writes what stands behind it.
    const NAME: &'static str;

    /// Returns the number of partitions.
    fn partitions(&self) -> usize;

    /// Reads a partition, in batches of about `batch_rows` rows.
    fn batches(
        &self,
        partition: usize,
        batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static;

    /// Returns the number of rows of a partition, or of all for `None`; absent where it is not known in advance.
    fn rows(&self, _partition: Option<usize>) -> Precision<usize> {
        Precision::Absent
    }
}

/// The plan that reads a source. It has no inputs.
#[derive(Debug)]
pub(crate) struct Leaf<S> {
    source: S,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl<S: LeafSource> Leaf<S> {
    pub fn new(source: S, schema: SchemaRef) -> Leaf<S> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(source.partitions()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Leaf {
            source,
            schema,
            properties: Arc::new(properties),
        }
    }
}

/// Returns the answer of tables that use filters only to leave out whole parts: the engine filters the remaining
/// rows.
pub(crate) fn inexact<T>(filters: &[T]) -> Result<Vec<TableProviderFilterPushDown>> {
    Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
}

impl<S: LeafSource + fmt::Display> DisplayAs for Leaf<S> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let partitions = self.source.partitions();
        write!(f, "{}: {}, partitions={partitions}", S::NAME, self.source)
    }
}

impl<S: LeafSource + fmt::Display> ExecutionPlan for Leaf<S> {
    fn name(&self) -> &str {
        S::NAME
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

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let batches = stream::iter(self.source.batches(partition, batch_rows));
        let schema = self.schema.clone();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    /// Returns the number of rows, which is all that `count(*)` needs, and by which joins choose their sides.
    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let statistics = Statistics::new_unknown(&self.schema);
        Ok(Arc::new(
            statistics.with_num_rows(self.source.rows(partition)),
        ))
    }
}
