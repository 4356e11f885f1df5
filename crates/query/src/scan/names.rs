//! The names behind the ids of one trace.

use crate::schema::Name;
use crate::source::Source;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{UInt32Type, UInt64Type};
use datafusion::error::DataFusionError;
use gapscope_trace::lookup::{IdIndex, LabelPaths};
use gapscope_trace::tables::{Kernels, Labels};
use gapscope_trace::{Manifest, Selection, read};
use std::collections::HashMap;
use std::sync::Arc;

/// Texts by id.
pub(super) struct Names {
    index: Index,
    texts: ArrayRef,
}

enum Index {
    ById(IdIndex),
    /// By process and thread.
    ByThread(HashMap<(u32, u32), u32>),
}

impl Names {
    /// The names of a kind in a trace.
    pub fn of(name: Name, source: &Source) -> Names {
        match name {
            Name::Kernel => kernels(source),
            Name::Label | Name::LabelItself => labels(source),
            Name::Thread => threads(&source.manifest),
            Name::Queue | Name::DeviceOfQueue | Name::Device | Name::Process => {
                of_manifest(name, &source.manifest)
            }
        }
    }

    /// The name of each row, by its key columns.
    pub fn resolve(&self, keys: &[ArrayRef]) -> Result<ArrayRef, DataFusionError> {
        let rows: UInt32Array = match &self.index {
            Index::ById(index) => {
                let place = |id: u64| index.get(id).map(|row| row as u32);
                match keys[0].as_primitive_opt::<UInt32Type>() {
                    Some(ids) => ids.iter().map(|id| place(id?.into())).collect(),
                    None => {
                        let ids: &UInt64Array = keys[0].as_primitive::<UInt64Type>();
                        ids.iter().map(|id| place(id?)).collect()
                    }
                }
            }
            Index::ByThread(index) => {
                let processes = keys[0].as_primitive::<UInt32Type>().iter();
                let threads = keys[1].as_primitive::<UInt32Type>().iter();
                let pairs = processes.zip(threads);
                pairs.map(|(p, t)| index.get(&(p?, t?)).copied()).collect()
            }
        };
        Ok(take(self.texts.as_ref(), &rows as &dyn Array, None)?)
    }
}

fn by_id<I: Copy + Into<u64>>(ids: &[I], texts: impl Iterator<Item = Option<String>>) -> Names {
    Names {
        index: Index::ById(IdIndex::new(ids)),
        texts: Arc::new(texts.collect::<StringViewArray>()),
    }
}

/// Where the table cannot be read the ids have no names; that the table is damaged is said when it is queried itself.
fn kernels(source: &Source) -> Names {
    let unneeded: Vec<&'static str> = {
        use gapscope_trace::tables::Table;
        let columns = Kernels::columns().into_iter();
        let unneeded = columns.filter(|column| column.nullable);
        unneeded.map(|column| column.name).collect()
    };
    let selection = Selection::manifest()
        .with::<Kernels>()
        .without_columns::<Kernels>(&unneeded);
    let kernels = match read(&source.folder, &selection) {
        Ok((trace, _)) => trace.tables.kernels,
        Err(_) => Kernels::default(),
    };
    by_id(&kernels.id, kernels.name.into_iter().map(Some))
}

fn labels(source: &Source) -> Names {
    let labels = match read(&source.folder, &Selection::manifest().with::<Labels>()) {
        Ok((trace, _)) => trace.tables.labels,
        Err(_) => Labels::default(),
    };
    let paths = LabelPaths::new(&labels);
    let texts = labels.id.iter().map(|id| paths.get(*id).map(str::to_owned));
    by_id(&labels.id, texts)
}

fn threads(manifest: &Manifest) -> Names {
    let keys = manifest.threads.iter().map(|t| (t.process, t.thread));
    let names = manifest.threads.iter();
    let names = names.map(|t| (!t.name.is_empty()).then(|| t.name.clone()));
    Names {
        index: Index::ByThread(keys.zip(0..).collect()),
        texts: Arc::new(names.collect::<StringViewArray>()),
    }
}

fn of_manifest(name: Name, manifest: &Manifest) -> Names {
    let device = |id: u32| manifest.device(id).map(|device| device.name.clone());
    let pairs: Vec<(u32, Option<String>)> = match name {
        Name::Queue => {
            let queues = manifest.queues.iter();
            let named = |q: &gapscope_trace::manifest::Queue| {
                let place = || format!("{}.{}", q.family, q.index);
                q.name.clone().unwrap_or_else(place)
            };
            queues.map(|q| (q.id, Some(named(q)))).collect()
        }
        Name::DeviceOfQueue => {
            let queues = manifest.queues.iter();
            queues.map(|q| (q.id, device(q.device))).collect()
        }
        Name::Process => {
            let processes = manifest.processes.iter();
            let program = |path: &str| path.rsplit(['/', '\\']).next().map(str::to_owned);
            processes.map(|p| (p.id, program(&p.executable))).collect()
        }
        _ => {
            let devices = manifest.devices.iter();
            devices.map(|d| (d.id, Some(d.name.clone()))).collect()
        }
    };
    let ids: Vec<u32> = pairs.iter().map(|(id, _)| *id).collect();
    by_id(&ids, pairs.into_iter().map(|(_, text)| text))
}
