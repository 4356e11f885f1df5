//! Provides a table of all traces to DataFusion (the SQL engine): opens the files, and makes a plan for the columns
//! and filters of a query. A source is one of the session's traces.

use super::leaf::{Leaf, Result, inexact};
use super::plan::{Scan, share_out};
use super::prune::Pruning;
use super::row_group::RowGroup;
use crate::library::Library;
use crate::schema::{Origin, TableFacts, schema};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use gapscope_trace::parallel;
use gapscope_trace::reader::{has_table, is_optional};
use gapscope_trace::table_file::TableFile;
use gapscope_trace::{ContainedPath, Damage};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A table of the trace format, with the rows of all traces of a session.
#[derive(Debug)]
pub(crate) struct TraceTable {
    facts: Arc<TableFacts>,
    library: Arc<Library>,
    /// The file of each source; `None` where it cannot be read, or the trace's version lacks the table. Footers are
    /// read when the table is first used.
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

    /// Returns the table's file of each trace; the first call opens them and remarks on those that cannot be read.
    fn files(&self) -> Arc<Vec<Option<TableFile>>> {
        let files = self.files.get_or_init(|| {
            let sources = &self.library.traces.sources;
            let opened = parallel::each(sources.iter().collect(), |source| {
                let path = table_path(&source.folder, &self.facts);
                let is_there = !is_optional(self.facts.name) || path.exists();
                (is_there && has_table(source.manifest.format_version, self.facts.name))
                    .then(|| open(&source.folder, &self.facts))
                    .transpose()
            });
            let files = opened.into_iter().map(|opened| {
                opened.unwrap_or_else(|error| {
                    self.library.remark(error.to_string());
                    None
                })
            });
            Arc::new(files.collect())
        });
        files.clone()
    }
}

fn table_path(folder: &Path, facts: &TableFacts) -> ContainedPath {
    ContainedPath::new(folder, format!("{}.parquet", facts.name))
}

/// Why the file of a table cannot be used.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error("{} is missing: its rows are unknown", path.display())]
    Missing { path: PathBuf },
    #[error("{} cannot be read ({damage}): its rows are missing", path.display())]
    Damaged { path: PathBuf, damage: Damage },
    #[error(
        "{} cannot be read (its column {column} is of type {held} and not {wanted}): its rows are missing",
        path.display()
    )]
    Type {
        path: PathBuf,
        column: String,
        held: DataType,
        wanted: DataType,
    },
}

/// Opens the table's file of a trace, and refuses a column whose type differs from the format's.
fn open(folder: &Path, facts: &TableFacts) -> std::result::Result<TableFile, OpenError> {
    let file = table_path(folder, facts);
    let path = file.path().to_owned();
    let file = match TableFile::open(&file, facts.name, facts.schema.clone()) {
        Ok(file) => file,
        Err(Damage::Missing) => return Err(OpenError::Missing { path }),
        Err(damage) => return Err(OpenError::Damaged { path, damage }),
    };
    let own = facts.columns.iter().filter(|c| c.origin == Origin::Own);
    for column in own {
        if let Some(held) = file.foreign_type(&column.name) {
            return Err(OpenError::Type {
                path,
                column: column.name.clone(),
                held,
                wanted: column.data_type.clone(),
            });
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
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        inexact(filters)
    }

    /// Makes the plan: all row groups but those that cannot match, with the columns of `projection` (`None`: all).
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.files();
        let mut groups = Vec::new();
        for (source, file) in files.iter().enumerate() {
            let Some(file) = file else { continue };
            groups.extend((0..file.row_groups()).map(|index| RowGroup {
                source,
                index,
                rows: file.rows_of(index),
            }));
        }
        let pruning = Pruning {
            facts: &self.facts,
            traces: &self.library.traces,
            files: &files,
            groups: &groups,
        };
        let kept = pruning.that_may_match(state, filters)?;
        let mut kept = kept.into_iter();
        groups.retain(|group| kept.next().unwrap_or(true) && group.rows > 0);
        let all: Vec<usize> = (0..self.facts.columns.len()).collect();
        let columns = projection.unwrap_or(&all).iter();
        let columns: Vec<_> = columns.map(|at| self.facts.columns[*at].clone()).collect();
        let schema = schema(&columns);
        let scan = Scan {
            facts: self.facts.clone(),
            library: self.library.clone(),
            files,
            columns,
            schema: schema.clone(),
            partitions: share_out(groups, state.config().target_partitions()),
            // With filters, the rows of the answer may come late.
            limit: limit.filter(|_| filters.is_empty()),
        };
        Ok(Arc::new(Leaf::new(scan, schema)))
    }
}
