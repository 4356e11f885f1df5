//! Makes SQL tables of the manifests of traces (`trace.json`): `traces`, `devices` and others.

use crate::schema::{ColumnFacts, Origin, TableFacts};
use crate::source::{Source, Traces};
use datafusion::arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use gapscope_trace::manifest::{ClockMethod, Exit};
use std::sync::Arc;

/// A function that returns the rows that one trace adds to a table.
type RowsOfTrace = fn(&Source) -> Vec<Vec<ScalarValue>>;

/// The definition of a table whose rows come from manifests.
struct ManifestTable {
    name: &'static str,
    meaning: &'static str,
    columns: Vec<ColumnFacts>,
    rows: RowsOfTrace,
}

/// A table with its rows in memory.
pub(crate) struct FilledTable {
    pub facts: Arc<TableFacts>,
    pub table: Arc<MemTable>,
}

pub(crate) fn tables(traces: &Traces) -> Result<Vec<FilledTable>, DataFusionError> {
    let tables = definitions().into_iter();
    tables.map(|table| table.fill(traces)).collect()
}

impl ManifestTable {
    fn fill(self, traces: &Traces) -> Result<FilledTable, DataFusionError> {
        let facts = TableFacts::new(self.name, self.meaning, &traces.partitions, self.columns);
        let mut values: Vec<Vec<ScalarValue>> = facts.columns.iter().map(|_| Vec::new()).collect();
        for (index, source) in traces.sources.iter().enumerate() {
            for row in (self.rows)(source) {
                let common = facts
                    .columns
                    .iter()
                    .filter_map(|column| match column.origin {
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

fn optional(text: Option<&str>) -> ScalarValue {
    ScalarValue::Utf8View(text.map(str::to_owned))
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

fn definitions() -> Vec<ManifestTable> {
    let own = ColumnFacts::own::<&str>;
    vec![
        ManifestTable {
            name: "traces",
            meaning: "Traces: a row for each.",
            columns: vec![
                own("command", TEXT, "The recorded command."),
                own(
                    "exit_code",
                    DataType::Int32,
                    "How it ended, if with a code.",
                ),
                own(
                    "exit_signal",
                    DataType::Int32,
                    "How it ended, if by a signal.",
                ),
                own("sampling_mode", TEXT, "How the GPU was sampled."),
                own("start_ns", NS, "Start of the recording."),
                own("end_ns", NS, "Its end."),
                own(
                    "start_unix_ns",
                    NS,
                    "Start on the wall clock, nanoseconds since 1970, where that is known.",
                ),
                own("system", TEXT, "Operating system."),
                own("processor", TEXT, "Processor."),
                own("cores", NUMBER, "Logical cores, where they are known."),
                own("gapscope_version", TEXT, "The gapscope that wrote it."),
                own(
                    "clock_error_ns",
                    NS,
                    "The greatest error of a device time; unknown if one device's is.",
                ),
            ],
            rows: trace_row,
        },
        ManifestTable {
            name: "devices",
            meaning: "Devices, each as one process used it.",
            columns: vec![
                own("id", NUMBER, "Id in the trace."),
                own("process", NUMBER, "Id of the process."),
                own("api", TEXT, "`vulkan`, `cuda`, `metal`."),
                own("name", TEXT, "Name."),
                own("driver", TEXT, "Driver and version."),
                own("uuid", TEXT, "Tells physical devices apart."),
                own(
                    "lost",
                    DataType::Boolean,
                    "The driver said that the device was lost.",
                ),
                own("clock_method", TEXT, "Where clock samples come from."),
                own("clock_error_ns", NS, "The greatest error of a mapped time."),
            ],
            rows: |source| {
                let devices = source.manifest.devices.iter();
                let row = |d: &gapscope_trace::manifest::Device| {
                    vec![
                        number(d.id.0),
                        number(d.process.0),
                        text(d.api.as_str()),
                        text(&d.name),
                        text(&d.driver),
                        text(&d.uuid),
                        ScalarValue::Boolean(Some(d.lost)),
                        text(clock_method(d.clock.method)),
                        ScalarValue::Int64(d.clock.error_ns),
                    ]
                };
                devices.map(row).collect()
            },
        },
        ManifestTable {
            name: "queues",
            meaning: "Queues.",
            columns: vec![
                own("id", NUMBER, "Id in the trace."),
                own("device", NUMBER, "Id of the device."),
                own("family", NUMBER, "Queue family."),
                own("index", NUMBER, "Index in the family."),
                own("capabilities", TEXT, "What it can do, joined by commas."),
                own("name", TEXT, "Name that the program gave it."),
            ],
            rows: |source| {
                let queues = source.manifest.queues.iter();
                let row = |q: &gapscope_trace::manifest::Queue| {
                    vec![
                        number(q.id.0),
                        number(q.device.0),
                        number(q.family),
                        number(q.index),
                        text(&q.capabilities.join(",")),
                        optional(q.name.as_deref()),
                    ]
                };
                queues.map(row).collect()
            },
        },
        ManifestTable {
            name: "processes",
            meaning: "Recorded processes.",
            columns: vec![
                own("id", NUMBER, "Id in the trace."),
                own("pid", NUMBER, "The system's id."),
                own("parent_pid", NUMBER, "The parent's, where it is known."),
                own("executable", TEXT, "Path of the executable."),
                own("arguments", TEXT, "Arguments, joined by spaces."),
                own("start_ns", NS, "When its recording started."),
                own("end_ns", NS, "When it ended in an orderly way."),
            ],
            rows: |source| {
                let processes = source.manifest.processes.iter();
                let row = |p: &gapscope_trace::manifest::Process| {
                    vec![
                        number(p.id.0),
                        number(p.pid),
                        ScalarValue::UInt32(p.parent_pid),
                        text(&p.executable),
                        text(&p.arguments.join(" ")),
                        ns(p.start_ns),
                        ScalarValue::Int64(p.end_ns),
                    ]
                };
                processes.map(row).collect()
            },
        },
        ManifestTable {
            name: "threads",
            meaning: "Threads that made host calls.",
            columns: vec![
                own("process", NUMBER, "Id of the process."),
                own("thread", NUMBER, "The system's id."),
                own("name", TEXT, "Its name."),
            ],
            rows: |source| {
                let threads = source.manifest.threads.iter();
                let row = |t: &gapscope_trace::manifest::Thread| {
                    vec![number(t.process.0), number(t.thread.0), text(&t.name)]
                };
                threads.map(row).collect()
            },
        },
        ManifestTable {
            name: "losses",
            meaning: "What was not recorded.",
            columns: vec![
                own("what", TEXT, "What, in the plural."),
                own("count", DataType::UInt64, "How many."),
                own("reason", TEXT, "Why."),
            ],
            rows: |source| {
                let losses = source.manifest.losses.iter();
                let row = |l: &gapscope_trace::manifest::Loss| {
                    vec![
                        text(l.kind.as_str()),
                        ScalarValue::UInt64(Some(l.count)),
                        text(&l.reason),
                    ]
                };
                losses.map(row).collect()
            },
        },
    ]
}

fn trace_row(source: &Source) -> Vec<Vec<ScalarValue>> {
    let m = &source.manifest;
    let (code, signal) = match m.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let errors: Option<Vec<i64>> = m.devices.iter().map(|d| d.clock.error_ns).collect();
    vec![vec![
        text(&m.command.join(" ")),
        ScalarValue::Int32(code),
        ScalarValue::Int32(signal),
        text(m.sampling_mode.as_str()),
        ns(m.start_ns),
        ns(m.end_ns),
        ScalarValue::Int64(m.start_unix_ns),
        text(&m.host.system),
        text(&m.host.processor),
        ScalarValue::UInt32(m.host.cores),
        text(&m.gapscope_version),
        ScalarValue::Int64(errors.and_then(|errors| errors.into_iter().max())),
    ]]
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
