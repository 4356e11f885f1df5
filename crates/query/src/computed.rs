//! Makes tables for DataFusion (the SQL engine) whose rows are computed from each trace while a query that names them
//! runs, one trace at a time on each core. A [`ComputedDefinition`] goes in; a batch of rows comes out for each
//! trace.

use crate::library::Library;
use crate::scan::{Leaf, LeafSource, Pruning, Result, RowGroup, inexact};
use crate::schema::{ColumnFacts, Origin, TableFacts};
use crate::source::Source;
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::fmt;
use std::sync::Arc;

/// The definition of a computed table: its name, columns and the function that computes the rows.
pub(crate) struct ComputedDefinition {
    pub name: &'static str,
    pub meaning: &'static str,
    /// The table's own columns, without those that all tables have, such as `trace`.
    pub columns: Vec<ColumnFacts>,
    /// Returns the rows of a trace, an array for each of the columns. Problems are reported to the library.
    pub rows: fn(&Library, &Source) -> Vec<ArrayRef>,
}

/// A computed table as DataFusion sees it.
#[derive(Debug)]
pub(crate) struct ComputedTable {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    /// Returns the rows of a trace, without the columns that all tables have.
    rows: fn(&Library, &Source) -> Vec<ArrayRef>,
}

impl ComputedTable {
    pub fn new(definition: ComputedDefinition, library: Arc<Library>) -> ComputedTable {
        let partitions = &library.traces.partitions;
        let ComputedDefinition {
            name,
            meaning,
            columns,
            rows,
        } = definition;
        let facts = TableFacts::new(name, meaning, partitions, columns);
        ComputedTable {
            rows,
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
        inexact(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sources = self.library.traces.sources.len();
        let group = |source| RowGroup {
            source,
            index: 0,
            rows: 1,
        };
        // Pruning asks about row groups: one stands for each trace.
        let groups: Vec<RowGroup> = (0..sources).map(group).collect();
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
        // Neighbouring traces form a partition, of which there are at most as many as cores.
        let most = state.config().target_partitions().max(1);
        let each = sources.len().div_ceil(most).max(1);
        let mut partitions: Vec<Vec<usize>> = sources.chunks(each).map(<[_]>::to_vec).collect();
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        let schema = Arc::new(self.facts.schema.project(&projection)?);
        let scan = ComputedScan {
            facts: self.facts.clone(),
            library: self.library.clone(),
            rows: self.rows,
            projection,
            partitions,
        };
        Ok(Arc::new(Leaf::new(scan, schema)))
    }
}

/// The computation of the rows of a table. A partition is a list of traces, by index.
#[derive(Debug)]
struct ComputedScan {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    rows: fn(&Library, &Source) -> Vec<ArrayRef>,
    /// The columns that the query needs, by index.
    projection: Vec<usize>,
    /// The indices of the traces of each partition.
    partitions: Vec<Vec<usize>>,
}

impl fmt::Display for ComputedScan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let traces: usize = self.partitions.iter().map(Vec::len).sum();
        write!(f, "{}, traces={traces}", self.facts.name)
    }
}

impl LeafSource for ComputedScan {
    const NAME: &'static str = "ComputedScan";

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Returns one batch for each trace, however many rows it has.
    fn batches(
        &self,
        partition: usize,
        _batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
        let (facts, library, rows) = (self.facts.clone(), self.library.clone(), self.rows);
        let projection = self.projection.clone();
        self.partitions[partition]
            .clone()
            .into_iter()
            .map(move |at| {
                let own = rows(&library, &library.traces.sources[at]);
                Ok(batch(&facts, &library, at, own)?.project(&projection)?)
            })
    }
}

/// Adds the columns that all tables have to the rows of a trace; `source` is its index, `own` the computed arrays.
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
