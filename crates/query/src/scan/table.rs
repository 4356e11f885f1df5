//! Provides a table of all traces to DataFusion.

use super::plan::{Scan, Unit};
use super::prune::RowGroups;
use crate::library::Library;
use crate::schema::{Origin, TableFacts};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use gapscope_trace::parallel;
use gapscope_trace::reader::{has_table, is_optional};
use gapscope_trace::table_file::{OpenError, TableFile};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// One table of the trace format with the rows of all traces.
#[derive(Debug)]
pub(crate) struct TraceTable {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    /// By source; absent where the file cannot be read, or the trace's version lacks the table. Footers are read when
    /// the table is first used.
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
                let path = path_of(&source.folder, &self.facts);
                let is_there = !is_optional(self.facts.name) || path.exists();
                (is_there && has_table(source.manifest.format_version, self.facts.name))
                    .then(|| open(&source.folder, &self.facts))
                    .transpose()
            });
            let files = opened.into_iter().map(|opened| {
                opened.unwrap_or_else(|sentence| {
                    self.library.remark(sentence);
                    None
                })
            });
            Arc::new(files.collect())
        });
        files.clone()
    }
}

fn path_of(folder: &Path, facts: &TableFacts) -> PathBuf {
    folder.join(format!("{}.parquet", facts.name))
}

/// Opens the table's file in `folder`.
fn open(folder: &Path, facts: &TableFacts) -> Result<TableFile, String> {
    let path = path_of(folder, facts);
    let unreadable = |reason: String| {
        format!(
            "{} cannot be read ({reason}): its rows are missing",
            path.display()
        )
    };
    let file = TableFile::open(&path, facts.name, facts.schema.clone());
    let file = file.map_err(|error| match error {
        OpenError::Missing => format!("{} is missing: its rows are unknown", path.display()),
        OpenError::Unreadable(reason) => unreadable(reason),
    })?;
    let of_file = facts.columns.iter().filter(|c| c.origin == Origin::Own);
    for column in of_file {
        if let Some(found) = file.foreign_type(&column.name) {
            return Err(unreadable(format!(
                "its column {} is of type {found} and not {}",
                column.name, column.data_type
            )));
        }
    }
    Ok(file)
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        self.facts.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters exclude row groups, not rows.
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
            units.extend((0..file.row_groups()).map(|row_group| Unit {
                source,
                row_group,
                rows: file.rows_of(row_group),
            }));
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
            // With filters, the rows of the answer may come late.
            limit.filter(|_| filters.is_empty()),
        )?))
    }
}
