//! A table of all traces, as DataFusion asks for it.

use super::file::TableFile;
use super::plan::{Scan, Unit};
use super::prune::RowGroups;
use crate::library::Library;
use crate::schema::TableFacts;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use gapscope_trace::parallel;
use std::sync::{Arc, OnceLock};

/// One table of the trace format with the rows of all traces.
#[derive(Debug)]
pub(crate) struct TraceTable {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    /// By source; absent for those whose file cannot be read. Footers are read when the table is first asked for.
    files: OnceLock<Arc<Vec<Option<TableFile>>>>,
}

impl TraceTable {
    pub fn new(facts: Arc<TableFacts>, library: Arc<Library>) -> TraceTable {
        TraceTable {
            facts,
            library,
            files: OnceLock::new(),
        }
    }

    fn files(&self) -> Arc<Vec<Option<TableFile>>> {
        let files = self.files.get_or_init(|| {
            let sources = &self.library.traces.sources;
            let opened = parallel::each(sources.iter().collect(), |source| {
                TableFile::open(&source.folder, &self.facts)
            });
            let files = opened.into_iter().map(|opened| match opened {
                Ok(file) => Some(file),
                Err(sentence) => {
                    self.library.remark(sentence);
                    None
                }
            });
            Arc::new(files.collect())
        });
        files.clone()
    }
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        self.facts.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters leave out row groups, not rows.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let files = self.files();
        let mut units = Vec::new();
        for (source, file) in files.iter().enumerate() {
            let Some(file) = file else { continue };
            for row_group in 0..file.metadata.metadata().num_row_groups() {
                units.push(Unit {
                    source,
                    row_group,
                    rows: file.rows(row_group),
                });
            }
        }
        let groups = RowGroups {
            facts: &self.facts,
            traces: &self.library.traces,
            files: &files,
            units: &units,
        };
        let kept = groups.that_may_match(state, filters)?;
        let mut kept = kept.into_iter();
        units.retain(|unit| kept.next().unwrap_or(true) && unit.rows > 0);
        let all: Vec<usize> = (0..self.facts.columns.len()).collect();
        let columns = projection.unwrap_or(&all);
        Ok(Arc::new(Scan::new(
            self.facts.clone(),
            self.library.clone(),
            files,
            columns,
            units,
            state.config().target_partitions(),
            // With filters the rows of the answer may come late.
            limit.filter(|_| filters.is_empty()),
        )?))
    }
}
