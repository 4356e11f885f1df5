//! Makes SQL tables of the manifests of traces (`trace.json`): `traces`, `devices` and others. The rows of all traces
//! are made when a session starts, and stay in memory.

use crate::schema::{ColumnFacts, Origin, TableFacts};
use crate::source::Traces;
use datafusion::arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use gapscope_trace::manifest::{ClockMethod, Device, Exit, Loss, Manifest, Process, Queue, Thread};
use std::slice;
use std::sync::Arc;

/// Returns the rows of a manifest, each with the values of the table's own columns.
type RowsOfTrace = dyn Fn(&Manifest) -> Vec<Vec<ScalarValue>>;

/// The definition of a table whose rows come from manifests.
struct ManifestTable {
    name: &'static str,
    meaning: &'static str,
    columns: Vec<ColumnFacts>,
    /// Returns the rows that one trace adds to the table.
    rows: Box<RowsOfTrace>,
}

/// A column of a table of `T`, with the function that returns its value.
type Column<T> = (ColumnFacts, fn(&T) -> ScalarValue);

/// Defines a table with a row for each of the `items` of a manifest.
fn table<T: 'static>(
    name: &'static str,
    meaning: &'static str,
    items: fn(&Manifest) -> &[T],
    columns: Vec<Column<T>>,
) -> ManifestTable {
    let (columns, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let row = move |item: &T| values.iter().map(|value| value(item)).collect();
    ManifestTable {
        name,
        meaning,
        columns,
        rows: Box::new(move |manifest| items(manifest).iter().map(&row).collect()),
    }
}

/// A table with its rows in memory.
pub(crate) struct FilledTable {
    pub facts: Arc<TableFacts>,
    pub table: Arc<MemTable>,
}

/// Returns all tables of manifests, with their rows.
pub(crate) fn tables(traces: &Traces) -> Result<Vec<FilledTable>, DataFusionError> {
    let tables = definitions().into_iter();
    tables.map(|table| table.fill(traces)).collect()
}

impl ManifestTable {
    /// Makes the rows of all traces; each begins with the columns that all tables have, such as `trace`.
    fn fill(self, traces: &Traces) -> Result<FilledTable, DataFusionError> {
        let facts = TableFacts::new(self.name, self.meaning, &traces.partitions, self.columns);
        let mut values: Vec<Vec<ScalarValue>> = facts.columns.iter().map(|_| Vec::new()).collect();
        for (index, source) in traces.sources.iter().enumerate() {
            for row in (self.rows)(&source.manifest) {
                let columns = facts.columns.iter();
                let common = columns.filter_map(|column| match column.origin {
                    Origin::Trace(value) => Some(traces.value(value, index)),
                    Origin::Own | Origin::Name(_) => None,
                });
                for (column, value) in values.iter_mut().zip(common.chain(row)) {
                    column.push(value);
                }
            }
        }
        let arrays = values.into_iter().zip(&facts.columns);
        let arrays: Vec<ArrayRef> = arrays
            .map(|(values, column)| match values.is_empty() {
                true => Ok(new_empty_array(&column.data_type)),
                false => ScalarValue::iter_to_array(values),
            })
            .collect::<Result<_, _>>()?;
        let batch = RecordBatch::try_new(facts.schema.clone(), arrays)?;
        let table = MemTable::try_new(facts.schema.clone(), vec![vec![batch]])?;
        Ok(FilledTable {
            facts: Arc::new(facts),
            table: Arc::new(table),
        })
    }
}

fn text(text: &str) -> ScalarValue {
    ScalarValue::Utf8View(Some(text.to_owned()))
}

fn number(number: u32) -> ScalarValue {
    ScalarValue::UInt32(Some(number))
}

fn ns(ns: i64) -> ScalarValue {
    ScalarValue::Int64(Some(ns))
}

const TEXT: DataType = DataType::Utf8View;
const NUMBER: DataType = DataType::UInt32;
const NS: DataType = DataType::Int64;

/// Lists columns: the name, the type and the meaning of each, and its value for an item.
macro_rules! columns {
    ($item:ident: $type:ty; $($name:ident: $data_type:expr, $meaning:literal, $value:expr;)+) => {{
        let columns: Vec<Column<$type>> = vec![$(
            (ColumnFacts::own(stringify!($name), $data_type, $meaning), |$item| $value),
        )+];
        columns
    }};
}

/// Lists the tables, with their columns in order.
fn definitions() -> Vec<ManifestTable> {
    let traces = columns! { m: Manifest;
        command: TEXT, "The recorded command.", text(&m.command.join(" "));
        exit_code: DataType::Int32, "How it ended, if with a code.", exit(m).0;
        exit_signal: DataType::Int32, "How it ended, if by a signal.", exit(m).1;
        sampling_mode: TEXT, "How the GPU was sampled.", text(m.sampling_mode.as_str());
        start_ns: NS, "Start of the recording.", ns(m.start_ns);
        end_ns: NS, "Its end.", ns(m.end_ns);
        start_unix_ns: NS, "Start on the wall clock, nanoseconds since 1970, where that is known.",
            ScalarValue::Int64(m.start_unix_ns);
        system: TEXT, "Operating system.", text(&m.host.system);
        processor: TEXT, "Processor.", text(&m.host.processor);
        cores: NUMBER, "Logical cores, where they are known.", ScalarValue::UInt32(m.host.cores);
        gapscope_version: TEXT, "The gapscope that wrote it.", text(&m.gapscope_version);
        clock_error_ns: NS, "The greatest error of a device time; unknown if one device's is.",
            greatest_error(m);
    };
    let devices = columns! { d: Device;
        id: NUMBER, "Id in the trace.", number(d.id.0);
        process: NUMBER, "Id of the process.", number(d.process.0);
        api: TEXT, "`vulkan`, `cuda`, `metal`.", text(d.api.as_str());
        name: TEXT, "Name.", text(&d.name);
        driver: TEXT, "Driver and version.", text(&d.driver);
        uuid: TEXT, "Tells physical devices apart.", text(&d.uuid);
        lost: DataType::Boolean, "The driver said that the device was lost.", ScalarValue::from(d.lost);
        clock_method: TEXT, "Where clock samples come from.", text(clock_method(d.clock.method));
        clock_error_ns: NS, "The greatest error of a mapped time.", ScalarValue::Int64(d.clock.error_ns);
    };
    let queues = columns! { q: Queue;
        id: NUMBER, "Id in the trace.", number(q.id.0);
        device: NUMBER, "Id of the device.", number(q.device.0);
        family: NUMBER, "Queue family.", number(q.family);
        index: NUMBER, "Index in the family.", number(q.index);
        capabilities: TEXT, "What it can do, joined by commas.", text(&q.capabilities.join(","));
        name: TEXT, "Name that the program gave it.", ScalarValue::Utf8View(q.name.clone());
    };
    let processes = columns! { p: Process;
        id: NUMBER, "Id in the trace.", number(p.id.0);
        pid: NUMBER, "The system's id.", number(p.pid);
        parent_pid: NUMBER, "The parent's, where it is known.", ScalarValue::UInt32(p.parent_pid);
        executable: TEXT, "Path of the executable.", text(&p.executable);
        arguments: TEXT, "Arguments, joined by spaces.", text(&p.arguments.join(" "));
        start_ns: NS, "When its recording started.", ns(p.start_ns);
        end_ns: NS, "When it ended in an orderly way.", ScalarValue::Int64(p.end_ns);
    };
    let threads = columns! { t: Thread;
        process: NUMBER, "Id of the process.", number(t.process.0);
        thread: NUMBER, "The system's id.", number(t.thread.0);
        name: TEXT, "Its name.", text(&t.name);
    };
    let losses = columns! { l: Loss;
        what: TEXT, "What, in the plural.", text(l.kind.as_str());
        count: DataType::UInt64, "How many.", ScalarValue::from(l.count);
        reason: TEXT, "Why.", text(&l.reason);
    };
    let devices_meaning = "Devices, each as one process used it.";
    vec![
        table("traces", "Traces: a row for each.", slice::from_ref, traces),
        table("devices", devices_meaning, |m| &m.devices, devices),
        table("queues", "Queues.", |m| &m.queues, queues),
        table(
            "processes",
            "Recorded processes.",
            |m| &m.processes,
            processes,
        ),
        table(
            "threads",
            "Threads that made host calls.",
            |m| &m.threads,
            threads,
        ),
        table("losses", "What was not recorded.", |m| &m.losses, losses),
    ]
}

/// Returns the exit code and the signal of the recorded command, of which at most one is known.
fn exit(manifest: &Manifest) -> (ScalarValue, ScalarValue) {
    let (code, signal) = match manifest.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    (ScalarValue::Int32(code), ScalarValue::Int32(signal))
}

/// Returns the greatest clock error of the devices in nanoseconds; NULL where a device's is unknown.
fn greatest_error(manifest: &Manifest) -> ScalarValue {
    let errors = manifest.devices.iter().map(|device| device.clock.error_ns);
    let errors: Option<Vec<i64>> = errors.collect();
    ScalarValue::Int64(errors.and_then(|errors| errors.into_iter().max()))
}

fn clock_method(method: ClockMethod) -> &'static str {
    match method {
        ClockMethod::Calibrated => "calibrated",
        ClockMethod::Brackets => "brackets",
        ClockMethod::None => "none",
        #[allow(unreachable_patterns)]
        _ => "unknown",
    }
}
