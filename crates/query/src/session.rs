//! A session: registers the tables of some traces with DataFusion (the SQL engine), and answers queries on them. SQL
//! goes in; the answer goes to a writer in the chosen format.

use crate::computed::ComputedTable;
use crate::library::Library;
use crate::output::{Format, RowCount};
use crate::scan::TraceTable;
use crate::schema::{self, TableFacts};
use crate::{Error, Traces, activity, gains, gaps, kernel_counters, manifests, statement, steps};
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use futures::StreamExt;
use gapscope_timeline::similar::{join_or, similar};
use gapscope_trace::memory::{self, size_text};
use std::io::Write;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The rows of a batch, the unit in which the engine passes rows on.
const BATCH_ROWS: usize = 1 << 14;
/// The stack of a thread that plans or runs a query, of which it uses what deep expressions need.
pub const STACK_BYTES: usize = 128 << 20;
/// How often a running query looks whether it has to stop.
const STOP_EVERY: Duration = Duration::from_millis(50);

/// The SQL tables of some traces, and the engine that answers queries on them.
pub struct Session {
    /// What the tables share: the traces, and remarks about missing rows.
    library: Arc<Library>,
    /// The most rows of an answer; `None` without a limit.
    max_rows: Option<u64>,
    /// The descriptions of all tables, in the order in which they are listed.
    pub(crate) tables: Vec<Arc<TableFacts>>,
    context: SessionContext,
    runtime: tokio::runtime::Runtime,
}

impl Session {
    /// Creates the tables of `traces`. So far only the manifests are read.
    ///
    /// # Errors
    /// The system refuses to create threads.
    pub fn new(traces: Traces) -> Result<Session, Error> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .build()
            .map_err(|error| Error::Failed(format!("threads cannot be started: {error}")))?;
        let config = SessionConfig::new()
            .with_target_partitions(threads)
            .with_batch_size(BATCH_ROWS)
            .with_information_schema(true);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(engine_memory_bytes())))
            .build_arc()
            .map_err(|error| Error::Failed(describe(&error, &[])))?;
        let context = SessionContext::new_with_config_rt(config, environment);
        let library = Arc::new(Library::new(traces));
        let mut tables = Vec::new();
        let failed = |error: DataFusionError| Error::Failed(describe(&error, &[]));
        for filled in manifests::tables(&library.traces).map_err(failed)? {
            let registered = context.register_table(filled.facts.name, filled.table);
            registered.map_err(failed)?;
            tables.push(filled.facts);
        }
        for facts in schema::tables(&library.traces.partitions) {
            let table = TraceTable::new(facts.clone(), library.clone());
            let registered = context.register_table(facts.name, Arc::new(table));
            registered.map_err(failed)?;
            tables.push(facts);
        }
        for definition in [
            gaps::table(),
            steps::table(),
            gains::table(),
            kernel_counters::table(),
            activity::device_table(),
            activity::process_table(),
        ] {
            let table = ComputedTable::new(definition, library.clone());
            let facts = table.facts();
            let registered = context.register_table(facts.name, Arc::new(table));
            registered.map_err(failed)?;
            tables.push(facts);
        }
        Ok(Session {
            library,
            max_rows: None,
            tables,
            context,
            runtime,
        })
    }

    /// Limits the number of rows of each further answer.
    pub fn limit_rows(&mut self, max_rows: Option<u64>) {
        self.max_rows = max_rows;
    }

    /// Returns the traces.
    pub fn traces(&self) -> &Traces {
        &self.library.traces
    }

    /// Returns remarks about missing rows since the last call, such as those of a torn file.
    pub fn take_remarks(&self) -> Vec<String> {
        self.library.take_remarks()
    }

    /// Answers one statement, and writes the answer to `out`. Memory does not grow with the answer: data to sort or
    /// group goes to temporary files when it exceeds the memory limit.
    ///
    /// # Errors
    /// The SQL is wrong, the query fails, or writing to `out` fails.
    pub fn run(
        &self,
        sql: &str,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<RowCount, Error> {
        self.run_until(sql, format, out, &AtomicBool::new(false))
    }

    /// Answers one statement as [`Self::run`] does, but gives up when `stop` is set.
    pub(crate) fn run_until(
        &self,
        sql: &str,
        format: Format,
        out: &mut (dyn Write + Send),
        stop: &AtomicBool,
    ) -> Result<RowCount, Error> {
        let stopped = async {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(STOP_EVERY).await;
            }
            Err(Error::Failed("stopped".to_owned()))
        };
        let answer = self.answer(sql, format, out);
        self.runtime.block_on(async {
            let (answer, stopped) = (std::pin::pin!(answer), std::pin::pin!(stopped));
            futures::future::select(answer, stopped)
                .await
                .factor_first()
                .0
        })
    }

    /// Checks and runs a statement, and writes each batch as it comes. Returns the number of rows.
    async fn answer(
        &self,
        sql: &str,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<RowCount, Error> {
        // Statements must not write.
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false);
        let wrong = |error: DataFusionError| Error::Sql(describe(&error, &self.tables));
        let sql = sql.trim().trim_end_matches(';');
        if let Some(why) = statement::refusal(sql) {
            return Err(Error::Sql(why));
        }
        let frame = self
            .context
            .sql_with_options(sql, options)
            .await
            .map_err(wrong)?;
        let frame = self.limited(frame).map_err(wrong)?;
        let mut batches = frame.execute_stream().await.map_err(wrong)?;
        let mut writer = format
            .writer(&batches.schema(), out)
            .map_err(Error::Write)?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| Error::Failed(describe(&error, &self.tables)))?;
            rows += batch.num_rows() as u64;
            writer.write(&batch).map_err(Error::Write)?;
        }
        writer.finish().map_err(Error::Write)?;
        Ok(RowCount(rows))
    }

    /// Applies the limit inside the engine, which then keeps fewer rows while it sorts.
    fn limited(&self, frame: DataFrame) -> Result<DataFrame, DataFusionError> {
        let (LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::Statement(_)) = frame.logical_plan()
        else {
            return match self.max_rows {
                Some(most) => frame.limit(0, usize::try_from(most).ok()),
                None => Ok(frame),
            };
        };
        // The answers of these statements are short.
        Ok(frame)
    }

    /// Returns a text that describes all tables and columns, or those of `table`.
    ///
    /// # Errors
    /// There is no such table.
    pub fn schema(&self, table: Option<&str>) -> Result<String, Error> {
        let mut text = String::new();
        for facts in &self.tables {
            if table.is_some_and(|name| name != facts.name) {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text += &format!("{}: {}\n", facts.name, facts.meaning);
            let widths = facts.columns.iter().map(|c| c.name.len());
            let width = widths.max().unwrap_or(0);
            for column in &facts.columns {
                let kind = type_name(&column.data_type);
                text += &format!("  {:<width$}  {kind:<6}  {}\n", column.name, column.meaning);
            }
        }
        match (table, text.is_empty()) {
            (Some(table), true) => Err(Error::Sql(no_table(table, &self.tables))),
            _ => Ok(text),
        }
    }
}

/// Returns the short name by which a column's type is listed.
pub(crate) fn type_name(data_type: &datafusion::arrow::datatypes::DataType) -> &'static str {
    use datafusion::arrow::datatypes::DataType;
    match data_type {
        DataType::UInt32 => "u32",
        DataType::UInt64 => "u64",
        DataType::Int32 => "i32",
        DataType::Int64 => "i64",
        DataType::Float64 => "f64",
        DataType::Boolean => "bool",
        _ => "text",
    }
}

/// Returns the share of the memory limit that the engine may use for a query's intermediate results.
fn engine_memory_bytes() -> usize {
    usize::try_from(memory::limit() / 3 * 2).unwrap_or(usize::MAX)
}

/// Returns an error of the engine as one sentence with a hint; `tables` are those that a missing name is compared
/// with.
fn describe(error: &DataFusionError, tables: &[Arc<TableFacts>]) -> String {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            describe(inner, tables)
        }
        DataFusionError::Shared(inner) => describe(inner, tables),
        DataFusionError::Collection(all) if !all.is_empty() => describe(&all[0], tables),
        DataFusionError::SchemaError(error, _) => schema_sentence(error),
        DataFusionError::SQL(error, _) => {
            let text = error.to_string();
            let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
            format!("the SQL cannot be understood: {}", one_line(text))
        }
        DataFusionError::Execution(text) => one_line(text),
        DataFusionError::ResourcesExhausted(_) => too_much_memory(),
        DataFusionError::ExecutionJoin(error) => panicked(&error.to_string()),
        DataFusionError::Plan(text) => match missing_table(text) {
            Some(name) => no_table(name, tables),
            None if text.starts_with("DML") => {
                "a query cannot change or write anything: name the file for its answer by -o"
                    .to_owned()
            }
            None if text.starts_with("DDL") => {
                "a query only reads, and makes no tables or views: write `with NAME as (select …) select …`, or name a \
                 file for the answer by -o"
                    .to_owned()
            }
            None => one_line(text),
        },
        // The text contains the engine's internal plan.
        DataFusionError::NotImplemented(text) if text.contains("WindowFunction") => {
            "a window function cannot stand there: with `group by all`, name the columns to group by instead".to_owned()
        }
        DataFusionError::ArrowError(error, _) => one_line(&error.to_string()),
        other => one_line(&other.strip_backtrace()),
    }
}

/// Returns the sentence for a query that needs more memory than allowed.
pub fn too_much_memory() -> String {
    format!(
        "the query needs more memory than the limit of {}: ask for fewer rows, fewer groups or shorter texts, or set {} to \
         more if the machine has it",
        size_text(memory::limit()),
        memory::VARIABLE
    )
}

/// Returns the sentence for a query in which the engine gave up; `reason` is its own, which may have several lines.
pub fn panicked(reason: &str) -> String {
    format!(
        "the SQL engine cannot compute this ({}): ask for fewer rows or shorter texts",
        one_line(reason)
    )
}

/// Joins a text's words by single spaces.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Says which column is missing and which are like it, or that its table must be named.
fn schema_sentence(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let known: Vec<&str> = valid_fields.iter().map(|field| &*field.name).collect();
            let name = field.flat_name();
            let alike = similar(&field.name, known.iter().copied());
            match alike.is_empty() {
                false => format!(
                    "there is no column {name}: did you mean {}?",
                    join_or(&alike)
                ),
                true if known.is_empty() => format!(
                    "there is no column {name}: `gapscope query --schema TRACE` shows the tables and their columns"
                ),
                true => format!("there is no column {name}: there are {}", known.join(", ")),
            }
        }
        SchemaError::AmbiguousReference { field } => format!(
            "{0} is a column of several tables: write which, as in TABLE.{0}",
            field.name
        ),
        other => one_line(&other.to_string()),
    }
}

/// Returns the name in "table 'datafusion.public.NAME' not found".
fn missing_table(text: &str) -> Option<&str> {
    let name = text.strip_prefix("table '")?.split_once("' not found")?.0;
    Some(name.strip_prefix("datafusion.public.").unwrap_or(name))
}

/// Says that a table is missing, and names similar ones or else all.
fn no_table(name: &str, tables: &[Arc<TableFacts>]) -> String {
    let known = || tables.iter().map(|table| table.name);
    let alike = similar(name, known());
    match alike.is_empty() {
        false => format!(
            "there is no table {name}: did you mean {}?",
            join_or(&alike)
        ),
        true => {
            let known: Vec<&str> = known().collect();
            format!("there is no table {name}: there are {}", known.join(", "))
        }
    }
}
