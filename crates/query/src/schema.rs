//! Defines the SQL tables of the trace format, and the source of each column's values. Besides its own columns each
//! table has those of its trace, and a column of names for each column of ids.

use crate::source::{Partition, TraceValue};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use gapscope_trace::for_each_table;
use gapscope_trace::tables::*;
use std::sync::Arc;

/// A table of the trace format as an SQL table.
#[derive(Debug)]
pub(crate) struct TableFacts {
    pub name: &'static str,
    pub meaning: &'static str,
    /// All columns in order: those of the trace first, then its own, then names.
    pub columns: Vec<ColumnFacts>,
    pub schema: SchemaRef,
}

/// A column of an SQL table: its name, type, meaning, and the origin of its values.
#[derive(Debug, Clone)]
pub(crate) struct ColumnFacts {
    pub name: String,
    pub data_type: DataType,
    pub meaning: String,
    pub origin: Origin,
}

/// The origin of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// The trace: a value that all of its rows share.
    Trace(TraceValue),
    /// The table itself: its file, or the computation of its rows.
    Own,
    /// The name behind an id in the file.
    Name(IdName),
}

/// A name behind an id: it says which ids lead to it and which column shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum IdName {
    Kernel,
    /// The kernel's whole name in the code.
    KernelWhole,
    /// The name of the kernel in the row itself.
    KernelItself,
    Label,
    /// The path of the label in the row itself.
    LabelItself,
    Queue,
    /// The device of the queue in the column `queue`.
    DeviceOfQueue,
    Device,
    Thread,
    Process,
    Counter,
    Stack(StackProperty),
    /// A property of the stack in the row itself.
    StackItself(StackProperty),
}

/// A property of a stack that has its own column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StackProperty {
    Function,
    File,
    Line,
    /// The innermost line of the program's own code, as reports write it.
    Code,
    /// The whole stack as one text.
    Text,
}

impl StackProperty {
    const ALL: [StackProperty; 5] = [
        StackProperty::Function,
        StackProperty::File,
        StackProperty::Line,
        StackProperty::Code,
        StackProperty::Text,
    ];

    /// Returns the column's name and meaning.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            StackProperty::Function => (
                "function",
                "The function of the stack's innermost frame; absent where its library does not say.",
            ),
            StackProperty::File => (
                "file",
                "The source file of the innermost frame; absent in native code.",
            ),
            StackProperty::Line => (
                "line",
                "The line of the innermost frame; absent in native code.",
            ),
            StackProperty::Code => (
                "code",
                "The stack as reports tell it, by the innermost line of the program's own code: `train.py:41 load_batch > resize`.",
            ),
            StackProperty::Text => (
                "stack_text",
                "The whole stack, the outermost frame first, with `;` between frames.",
            ),
        }
    }
}

impl IdName {
    /// Returns the columns of the file that determine the name.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            IdName::Kernel | IdName::KernelWhole => &["kernel"],
            IdName::KernelItself => &["id"],
            IdName::Label => &["label"],
            IdName::LabelItself => &["id"],
            IdName::Queue | IdName::DeviceOfQueue => &["queue"],
            IdName::Device => &["device"],
            IdName::Thread => &["process", "thread"],
            IdName::Process => &["process"],
            IdName::Counter => &["counter"],
            IdName::Stack(_) => &["stack"],
            IdName::StackItself(_) => &["id"],
        }
    }

    /// Returns the column's name and meaning.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            IdName::Kernel => (
                "kernel_name",
                "Name of the kernel as people read it, as in reports: no other code has it.",
            ),
            IdName::KernelWhole => (
                "kernel_full_name",
                "The kernel's whole name in the code, where `kernel_name` is a shorter one.",
            ),
            IdName::KernelItself => ("readable_name", "`kernel_name` of the other tables."),
            IdName::Label => ("label_path", "The label in its nesting: `step / layer 3`."),
            IdName::LabelItself => ("path", "The text in its nesting: `step / layer 3`."),
            IdName::Queue => (
                "queue_name",
                "The queue's name, or one in the words of its API: `stream 7`, `queue 0.1` (family and index).",
            ),
            IdName::DeviceOfQueue | IdName::Device => ("device_name", "Name of the device."),
            IdName::Thread => ("thread_name", "The thread's name and id: `main (4242)`."),
            IdName::Process => ("program", "The program that the process ran."),
            IdName::Counter => ("counter_name", "Name of the counter."),
            IdName::Stack(what) | IdName::StackItself(what) => what.column(),
        }
    }

    fn data_type(self) -> DataType {
        match self {
            IdName::Stack(StackProperty::Line) | IdName::StackItself(StackProperty::Line) => {
                DataType::UInt32
            }
            _ => DataType::Utf8View,
        }
    }

    /// Returns the names that are added to a table, depending on its columns.
    fn for_table(table: &str, has: impl Fn(&str) -> bool) -> Vec<IdName> {
        let mut names = Vec::new();
        let mut add = |name: IdName, wanted: bool| {
            if wanted {
                names.push(name);
            }
        };
        add(IdName::Kernel, has("kernel"));
        add(IdName::KernelWhole, has("kernel"));
        add(IdName::KernelItself, table == Kernels::NAME);
        add(IdName::Label, has("label"));
        add(IdName::LabelItself, table == Labels::NAME);
        add(IdName::Queue, has("queue"));
        add(IdName::DeviceOfQueue, has("queue") && !has("device"));
        add(IdName::Device, has("device"));
        add(IdName::Thread, has("process") && has("thread"));
        add(IdName::Process, has("process"));
        add(IdName::Counter, has("counter"));
        for what in StackProperty::ALL {
            add(IdName::Stack(what), has("stack"));
            add(IdName::StackItself(what), table == Stacks::NAME);
        }
        names
    }
}

/// Lists columns of a table itself: the name, the type and the meaning of each.
macro_rules! own_columns {
    ($($name:ident: $data_type:ident, $meaning:expr;)+) => {
        vec![$(
            $crate::schema::ColumnFacts::own(stringify!($name), DataType::$data_type, $meaning),
        )+]
    };
}
pub(crate) use own_columns;

impl ColumnFacts {
    /// Creates a column of the table itself.
    pub fn own<M: Into<String>>(name: &str, data_type: DataType, meaning: M) -> ColumnFacts {
        ColumnFacts {
            name: name.to_owned(),
            data_type,
            meaning: meaning.into(),
            origin: Origin::Own,
        }
    }
}

impl TableFacts {
    /// Creates a table of these columns, after `trace` and the columns of folders, with which every table starts. A
    /// folder with the name of one of `columns` becomes `folder_NAME`.
    pub fn new(
        name: &'static str,
        meaning: &'static str,
        partitions: &[Partition],
        columns: Vec<ColumnFacts>,
    ) -> TableFacts {
        let mut all = vec![ColumnFacts {
            origin: Origin::Trace(TraceValue::Name),
            ..ColumnFacts::own(
                "trace",
                DataType::Utf8View,
                "The trace: its path as it was given.",
            )
        }];
        for (index, partition) in partitions.iter().enumerate() {
            let mut taken = all[..1].iter().chain(&columns);
            let name = match taken.any(|column| column.name == partition.name) {
                true => format!("folder_{}", partition.name),
                false => partition.name.clone(),
            };
            let meaning = format!("From the folder {}=….", partition.name);
            all.push(ColumnFacts {
                origin: Origin::Trace(TraceValue::Partition(index)),
                ..ColumnFacts::own(&name, partition.data_type(), meaning)
            });
        }
        all.extend(columns);
        TableFacts {
            name,
            meaning,
            schema: schema(&all),
            columns: all,
        }
    }

    /// Returns the index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Describes all tables of the trace format.
pub(crate) fn tables(partitions: &[Partition]) -> Vec<Arc<TableFacts>> {
    let mut tables = Vec::new();
    macro_rules! add {
        ($($field:ident: $table:ty,)+) => { $(tables.push(Arc::new(table::<$table>(partitions)));)+ };
    }
    for_each_table!(add);
    tables
}

/// Describes a table of the trace format: its columns, then those of the names behind its ids.
fn table<T: Table>(partitions: &[Partition]) -> TableFacts {
    let own = T::columns().into_iter().map(|column| {
        let mut meaning = column.meaning.trim().to_owned();
        if !column.values.is_empty() {
            let values: Vec<&str> = column.values.iter().map(|(value, _)| *value).collect();
            meaning = format!("{meaning} One of {}.", values.join(", "));
        }
        ColumnFacts::own(column.name, data_type(column.data_type), meaning)
    });
    let names = IdName::for_table(T::NAME, |column| T::COLUMNS.contains(&column));
    let names = names.into_iter().map(|name| {
        let (column, meaning) = name.column();
        ColumnFacts {
            origin: Origin::Name(name),
            ..ColumnFacts::own(column, name.data_type(), meaning)
        }
    });
    TableFacts::new(
        T::NAME,
        T::MEANING.trim(),
        partitions,
        own.chain(names).collect(),
    )
}

/// Returns the type in answers: texts that files store by index become plain ones.
fn data_type(of_trace: DataType) -> DataType {
    match of_trace {
        DataType::Dictionary(..) => DataType::Utf8View,
        number => number,
    }
}

/// Builds the schema. Every column is nullable, because a trace of an earlier version may lack it.
pub(crate) fn schema(columns: &[ColumnFacts]) -> SchemaRef {
    let fields = columns.iter();
    let fields = fields.map(|c| Field::new(&c.name, c.data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_columns_the_folders_and_the_names() {
        let partition = |name: &str| Partition {
            name: name.to_owned(),
            is_integer: true,
        };
        let tables = tables(&[partition("queue"), partition("rank")]);
        let dispatches = tables.iter().find(|t| t.name == "dispatches").unwrap();
        let names: Vec<&str> = dispatches.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names[..4],
            ["trace", "folder_queue", "rank", "command_buffer"]
        );
        for name in ["kernel_name", "label_path", "queue_name", "device_name"] {
            assert!(names.contains(&name), "{name}");
        }
        for table in &tables {
            let mut names: Vec<_> = table.columns.iter().map(|c| &c.name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
    }

    #[test]
    fn columns_are_texts_or_numbers() {
        for table in tables(&[]) {
            for column in &table.columns {
                let data_type = &column.data_type;
                let known = data_type.is_numeric() || *data_type == DataType::Utf8View;
                assert!(known, "{} is {data_type}", column.name);
            }
        }
    }
}
