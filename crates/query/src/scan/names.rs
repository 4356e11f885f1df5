//! Resolves the ids in rows of one trace to names, such as `kernel` to `kernel_name`: columns of ids go in, a column
//! of names comes out.

use crate::library::Library;
use crate::schema::{IdName, StackProperty};
use crate::source::Source;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::error::DataFusionError;
use gapscope_analysis::code::{self, CodeFrame};
use gapscope_timeline::vocabulary::{KernelNames, Vocabulary, program};
use gapscope_trace::ids::{
    CounterId, DeviceId, Id, KernelId, LabelId, ProcessId, QueueId, StackId,
};
use gapscope_trace::lookup::{IdIndex, LabelPaths};
use gapscope_trace::tables::{Counters, Frames, Kernels, Labels, Stacks, Table, Tables};
use gapscope_trace::{Manifest, Selection, read};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

/// The names behind the ids of one kind in one trace.
pub(super) struct Names {
    /// The distinct names, or numbers.
    texts: ArrayRef,
    /// Maps key columns to indexes into the names.
    resolve_keys: KeyResolver,
}

/// Returns the index of each row's name from its key columns; null where the id is unknown.
type KeyResolver = Box<dyn Fn(&[ArrayRef]) -> UInt32Array + Send>;

impl Names {
    /// Reads the names of a kind that a trace has.
    pub fn load(name: IdName, source: &Source, library: &Library) -> Names {
        let manifest = &source.manifest;
        let vocabulary = || Vocabulary::new(manifest);
        match name {
            IdName::Kernel | IdName::KernelItself | IdName::KernelWhole => {
                let kernels = kernels(source, library);
                let names = KernelNames::new(&kernels);
                let text = |row| match name {
                    IdName::KernelWhole => names.full_name(row).map(str::to_owned),
                    _ => Some(names.name(row).to_owned()),
                };
                by_id(KernelId, &kernels.id, (0..kernels.len()).map(text))
            }
            IdName::Label | IdName::LabelItself => {
                let labels =
                    tables(source, library, &Selection::manifest().with::<Labels>()).labels;
                let paths = LabelPaths::new(&labels);
                let texts = labels.id.iter().map(|id| paths.get(*id).map(str::to_owned));
                by_id(LabelId, &labels.id, texts)
            }
            IdName::Counter => {
                let selection = Selection::manifest().columns::<Counters>(&["id", "name"]);
                let counters = tables(source, library, &selection).counters;
                let names = counters.name.iter().map(|name| Some(name.to_string()));
                by_id(CounterId, &counters.id, names)
            }
            IdName::Queue | IdName::DeviceOfQueue => {
                let vocabulary = vocabulary();
                let ids: Vec<_> = manifest.queues.iter().map(|queue| queue.id).collect();
                let text = |id: &QueueId| match name {
                    IdName::Queue => Some(vocabulary.queue(*id)),
                    _ => Some(vocabulary.device(manifest.device_of_queue(*id)?.id)),
                };
                by_id(QueueId, &ids, ids.iter().map(text))
            }
            IdName::Device => {
                let vocabulary = vocabulary();
                let ids: Vec<_> = manifest.devices.iter().map(|device| device.id).collect();
                let names = ids.iter().map(|id| Some(vocabulary.device(*id)));
                by_id(DeviceId, &ids, names)
            }
            IdName::Process => {
                let ids: Vec<_> = manifest.processes.iter().map(|p| p.id).collect();
                let names = manifest.processes.iter();
                let text =
                    |process| Some(program(process).to_owned()).filter(|name| !name.is_empty());
                by_id(ProcessId, &ids, names.map(text))
            }
            IdName::Thread => threads(manifest, &vocabulary()),
            IdName::Stack(what) | IdName::StackItself(what) => stacks(what, source, library),
        }
    }

    /// Returns the name of each row, by its key columns.
    pub fn resolve(&self, keys: &[ArrayRef]) -> Result<ArrayRef, DataFusionError> {
        let places = (self.resolve_keys)(keys);
        Ok(take(self.texts.as_ref(), &places as &dyn Array, None)?)
    }
}

/// Reads the columns that kernels' names depend on.
fn kernels(source: &Source, library: &Library) -> Kernels {
    let columns = [
        "id",
        "name",
        "name_source",
        "entry_point",
        "source",
        "full_name",
    ];
    let selection = Selection::manifest().columns::<Kernels>(&columns);
    tables(source, library, &selection).kernels
}

/// Reads some tables. Ids of an unreadable table have no names, which is reported as a remark.
fn tables(source: &Source, library: &Library, selection: &Selection) -> Tables {
    let missing = |what: &dyn Display| {
        library.remark(format!("{}: {what}: its names are missing", source.name));
    };
    match read(&source.folder, &selection.clone().unchecked()) {
        Ok((trace, _)) => {
            trace.unread.iter().for_each(|table| missing(table));
            trace.tables
        }
        Err(error) => {
            missing(&error);
            Tables::default()
        }
    }
}

/// Returns a property of each call stack: its innermost function, file or line, the code that it shows, or all
/// frames.
fn stacks(what: StackProperty, source: &Source, library: &Library) -> Names {
    let selection = Selection::manifest().with::<Stacks>().with::<Frames>();
    let tables = tables(source, library, &selection);
    let stacks = code::Stacks::new(&tables);
    let ids = &tables.stacks.id;
    let innermost = |id: &StackId| {
        let row = stacks.frame_rows(*id).next()?;
        Some(stacks.frame(row))
    };
    if what == StackProperty::Line {
        let lines = ids.iter().map(|id| innermost(id)?.line);
        return by_ids(StackId, ids, Arc::new(lines.collect::<UInt32Array>()));
    }
    let texts = ids.iter().map(|id| match what {
        StackProperty::Function => Some(innermost(id)?.function?.to_string()),
        StackProperty::File => Some(innermost(id)?.file?.to_string()),
        StackProperty::Code => Some(code::text(&stacks.frames(*id))),
        StackProperty::Text | StackProperty::Line => {
            let frames = stacks.frames(*id);
            let frames: Vec<String> = frames.iter().rev().map(CodeFrame::text).collect();
            Some(frames.join(";"))
        }
    });
    by_id(StackId, ids, texts)
}

/// Returns names that one column of ids leads to; `ids` and `texts` are in the same order.
fn by_id<I: Id>(id: fn(u32) -> I, ids: &[I], texts: impl Iterator<Item = Option<String>>) -> Names {
    by_ids(id, ids, Arc::new(texts.collect::<StringViewArray>()))
}

/// Does the same as [`by_id`] for an array of any type.
fn by_ids<I: Id>(id: fn(u32) -> I, ids: &[I], texts: ArrayRef) -> Names {
    let index = IdIndex::new(ids);
    Names {
        texts,
        resolve_keys: Box::new(move |keys| {
            let keys = keys[0].as_primitive::<UInt32Type>().iter();
            keys.map(|key| index.get(id(key?)).map(|row| row as u32))
                .collect()
        }),
    }
}

/// Returns the names of threads, whose keys are two columns: the process and the system's thread id.
fn threads(manifest: &Manifest, vocabulary: &Vocabulary) -> Names {
    let threads = manifest.threads.iter();
    // The numbers of a process and of its thread.
    let keys = threads.clone().map(|t| (t.process.0, t.thread.0));
    let rows: HashMap<(u32, u32), u32> = keys.zip(0..).collect();
    let names = threads.map(|t| Some(vocabulary.thread(t.process, t.thread)));
    Names {
        texts: Arc::new(names.collect::<StringViewArray>()),
        resolve_keys: Box::new(move |keys| {
            let processes = keys[0].as_primitive::<UInt32Type>().iter();
            let threads = keys[1].as_primitive::<UInt32Type>().iter();
            let keys = processes.zip(threads);
            keys.map(|(process, thread)| rows.get(&(process?, thread?)).copied())
                .collect()
        }),
    }
}
