//! Tracks kernels (code with entry point and specialisation), chooses the names under which the trace shows them,
//! and writes their rows.

use super::default_names;
use super::hashes::hex;
use super::indexed::Indexed;
use super::loaded_code::LoadedCode;
use gapscope_model::kernel_names::{self, CppName};
use gapscope_model::{Ledger, LossKind};
use gapscope_spool::event::{BindingAccess, LaunchShape};
use gapscope_trace::Names;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{KernelId, ProcessId};
use gapscope_trace::tables::{self, NameSource, Table, Tables};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The maximum length of a specialisation in a short name; longer ones are replaced by a digest.
const MAX_SPECIALISATION_BYTES: usize = 32;

/// The kernels of a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Kernels {
    kernels: Indexed<KernelId, Kernel>,
    /// The rows of kernels that are launched in several sizes.
    shaped: FxHashMap<(KernelId, Shape), KernelId>,
    /// The kernel of each process for dispatches of unknown kernels.
    unknown: FxHashMap<ProcessId, KernelId>,
}

/// The facts of a kernel.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Kernel {
    /// The id of the process.
    pub process: ProcessId,
    /// The hash of the code.
    pub source: Option<[u8; 16]>,
    /// The entry point; empty if unknown.
    pub entry_point: String,
    /// The specialisation; empty if there is none.
    pub specialisation: String,
    /// The name in the debug information; empty if there is none.
    pub source_name: String,
    /// The source file that the code names.
    pub source_file: Option<Arc<str>>,
    /// The hash of the source file if the file is kept.
    pub source_file_hash: Option<[u8; 16]>,
    /// The threads of a workgroup; zeros if unknown.
    pub local_size: [u32; 3],
    /// The bindings that the code declares.
    pub accesses: Vec<BindingAccess>,
    /// The name that the program gave the pipeline.
    pub object_name: Option<String>,
    /// The name that the program gave the shader module.
    pub module_name: Option<String>,
    /// The label around the dispatches.
    pub(super) label: CommonLabel,
    /// The shape of the first launch (CUDA).
    pub(super) shape: Option<Shape>,
    /// The number of shapes in which the kernel is launched.
    pub(super) shapes: u32,
}

/// The shape of a kernel's launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Shape {
    /// The threads of a workgroup in x, y and z.
    local_size: [u32; 3],
    /// The registers of a thread.
    registers: u16,
    /// The local memory of a thread.
    local_bytes: u32,
    static_shared_bytes: u32,
    dynamic_shared_bytes: u32,
}

/// The maximum number of shapes of a kernel that have rows of their own; all other shapes share one row.
const MAX_SHAPES: u32 = 1 << 12;

/// The text of the label around a kernel's dispatches, if it is always the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CommonLabel {
    #[default]
    NotDispatched,
    /// The text of the innermost label around each dispatch so far.
    Always(TextId),
    /// Dispatches had different labels, or none.
    Various,
}

impl Kernels {
    /// Adds a kernel and returns its id.
    pub fn add(&mut self, kernel: Kernel) -> KernelId {
        self.kernels.push(kernel)
    }

    /// Returns the kernel of a process for dispatches of unknown kernels.
    pub fn unknown(&mut self, process: ProcessId) -> KernelId {
        if let Some(id) = self.unknown.get(&process) {
            return *id;
        }
        let id = self.add(Kernel {
            process,
            ..Kernel::default()
        });
        self.unknown.insert(process, id);
        id
    }

    /// Returns the first kernel of a process with an entry point, or adds one.
    pub fn called(&mut self, process: ProcessId, entry_point: &str) -> KernelId {
        if let Some(id) = self.find_called(process, entry_point) {
            return id;
        }
        self.add(Kernel {
            process,
            entry_point: entry_point.to_owned(),
            ..Kernel::default()
        })
    }

    /// Returns the kernel of a process with an entry point, if there is one.
    pub fn find_called(&self, process: ProcessId, entry_point: &str) -> Option<KernelId> {
        let is_it = |k: &Kernel| k.process == process && k.entry_point == entry_point;
        let known = self.kernels.ids().zip(self.kernels.iter());
        let known = known.into_iter().find(|(_, kernel)| is_it(kernel));
        known.map(|(id, _)| id)
    }

    /// Returns the row of a kernel for a launch shape: the kernel's own row for the first shape, and another for each
    /// further shape.
    pub fn shaped(&mut self, id: KernelId, launch: &LaunchShape) -> KernelId {
        let shape = Shape {
            local_size: launch.local_size,
            registers: launch.registers,
            local_bytes: launch.local_bytes,
            static_shared_bytes: launch.static_shared_bytes,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
        };
        if let Some(row) = self.shaped.get(&(id, shape)) {
            return *row;
        }
        let Some(kernel) = self.kernels.get_mut(id) else {
            return id;
        };
        let row = match kernel.shapes {
            0 => {
                kernel.shape = Some(shape);
                id
            }
            MAX_SHAPES.. => return id,
            _ => {
                let another = Kernel {
                    process: kernel.process,
                    source: kernel.source,
                    entry_point: kernel.entry_point.clone(),
                    specialisation: kernel.specialisation.clone(),
                    source_name: kernel.source_name.clone(),
                    object_name: kernel.object_name.clone(),
                    shape: Some(shape),
                    ..Kernel::default()
                };
                self.kernels.push(another)
            }
        };
        self.kernels[id].shapes += 1;
        self.shaped.insert((id, shape), row);
        row
    }

    /// Returns the bindings that the kernel's code declares.
    pub fn accesses(&self, id: KernelId) -> &[BindingAccess] {
        self.kernels.get(id).map_or(&[], |k| k.accesses.as_slice())
    }

    /// Returns a kernel for changes.
    pub fn get_mut(&mut self, id: KernelId) -> Option<&mut Kernel> {
        self.kernels.get_mut(id)
    }

    /// Records the text of the innermost label around a dispatch of the kernel.
    #[inline]
    pub fn dispatched(&mut self, id: KernelId, text: Option<TextId>) {
        if let Some(kernel) = self.kernels.get_mut(id) {
            kernel.label = match (kernel.label, text) {
                (CommonLabel::NotDispatched, Some(text)) => CommonLabel::Always(text),
                (CommonLabel::Always(before), Some(text)) if before == text => {
                    CommonLabel::Always(text)
                }
                _ => CommonLabel::Various,
            };
        }
    }

    /// Returns the demangled short and full names of all mangled C++ entry points. If two have the same short name,
    /// the full name is used for both.
    fn demangled(&self) -> FxHashMap<&str, (String, String)> {
        let mut names: FxHashMap<&str, CppName> = FxHashMap::default();
        let mut mangled: FxHashMap<String, u32> = FxHashMap::default();
        for kernel in self.kernels.iter() {
            let entry = kernel.entry_point.as_str();
            if !names.contains_key(entry)
                && let Some(name) = kernel_names::demangle(entry)
            {
                *mangled.entry(name.short.clone()).or_default() += 1;
                names.insert(entry, name);
            }
        }
        names
            .into_iter()
            .map(
                |(entry, CppName { full, short })| match mangled.get(&short) {
                    Some(1) => (entry, (short, full)),
                    _ => (entry, (full.clone(), full)),
                },
            )
            .collect()
    }

    /// Gives kernels the code that their process loaded under their name; of several codes none, which is counted as
    /// a loss.
    pub fn find_code(&mut self, code: &LoadedCode, ledger: &mut Ledger) {
        for kernel in self.kernels.iter_mut().filter(|k| k.source.is_none()) {
            let Some(found) = code.kernel(kernel.process, &kernel.entry_point) else {
                continue;
            };
            if found.is_one_of_several {
                let reason = "their process loaded different code under one name";
                ledger.add(LossKind::KernelSources, 1, reason);
            } else {
                kernel.source = Some(found.source);
            }
            // The variants of a kernel that a compiler tries are written in one file.
            kernel.source_file.clone_from(&found.file);
            let file = found.file.as_deref();
            kernel.source_file_hash = file.and_then(|path| code.file(path));
        }
    }

    /// Appends a row for each kernel.
    pub fn write(&self, names: &Names, labels: &Labels, tables: &mut Tables) {
        let naming = Naming::new(&self.kernels, labels);
        let demangled = self.demangled();
        for (id, kernel) in self.kernels.ids().zip(self.kernels.iter()) {
            let (name, name_source) = naming.name(kernel, names, labels);
            let cpp = demangled.get(kernel.entry_point.as_str());
            let (name, full_name) = match cpp.filter(|_| name == kernel.entry_point) {
                Some((short, full)) => (short.clone(), Some(full.clone()).filter(|f| f != short)),
                None => (name, None),
            };
            let shape = kernel.shape;
            let [x, y, z] = shape
                .map_or(kernel.local_size, |s| s.local_size)
                .map(|threads| Some(threads).filter(|t| *t > 0));
            tables.kernels.push(tables::Kernel {
                id,
                process: kernel.process,
                name: name.into(),
                name_source,
                entry_point: filled(&kernel.entry_point).map(Into::into),
                source: kernel.source.map(hex).map(Into::into),
                specialisation: filled(&kernel.specialisation).map(Into::into),
                local_x: x,
                local_y: y,
                local_z: z,
                full_name: full_name.map(Into::into),
                source_file: kernel.source_file.clone(),
                source_file_hash: kernel.source_file_hash.map(|hash| hex(hash).into()),
                registers: shape.map(|s| u32::from(s.registers)).filter(|r| *r > 0),
                local_bytes: shape.map(|s| s.local_bytes),
                static_shared_bytes: shape.map(|s| s.static_shared_bytes),
                dynamic_shared_bytes: shape.map(|s| s.dynamic_shared_bytes),
                accesses: None,
            });
        }
    }
}

/// Facts about all kernels, on which the name of each kernel depends.
struct Naming<'a> {
    /// Labels, by text, that are around dispatches of several kernels.
    shared_labels: FxHashSet<&'a str>,
    /// Hashes that several specialisations share.
    shared_sources: FxHashSet<[u8; 16]>,
}

impl<'a> Naming<'a> {
    fn new(kernels: &'a Indexed<KernelId, Kernel>, labels: &'a Labels) -> Naming<'a> {
        let mut by_label: FxHashMap<&str, (Option<[u8; 16]>, &str)> = FxHashMap::default();
        let mut by_source: FxHashMap<[u8; 16], &str> = FxHashMap::default();
        let mut naming = Naming {
            shared_labels: FxHashSet::default(),
            shared_sources: FxHashSet::default(),
        };
        for kernel in kernels.iter() {
            let code = (kernel.source, kernel.specialisation.as_str());
            if let CommonLabel::Always(text) = kernel.label {
                let text = labels.text_of(text);
                if *by_label.entry(text).or_insert(code) != code {
                    naming.shared_labels.insert(text);
                }
            }
            if let Some(source) = kernel.source
                && *by_source.entry(source).or_insert(code.1) != code.1
            {
                naming.shared_sources.insert(source);
            }
        }
        naming
    }

    /// Returns a kernel's name and its source, the first of: the user's names file, the program's name of the
    /// pipeline, the entry point, the label around all dispatches, the name in the debug information or of the
    /// module, the hash.
    fn name(&self, kernel: &Kernel, names: &Names, labels: &Labels) -> (String, NameSource) {
        let hash = kernel.source.map(hex).unwrap_or_default();
        if let Some(name) = names
            .get(&hash, &kernel.specialisation)
            .filter(|_| !hash.is_empty())
        {
            return (name.to_owned(), NameSource::NamesFile);
        }
        if let Some(name) = kernel.object_name.as_deref().and_then(default_names::given) {
            return (name.to_owned(), NameSource::ObjectName);
        }
        let entry = kernel.entry_point.as_str();
        if default_names::given(entry).is_some() {
            return (entry.to_owned(), NameSource::EntryPoint);
        }
        let short = self.short_hash(kernel, &hash);
        if let CommonLabel::Always(text) = kernel.label {
            let text = labels.text_of(text);
            if self.shared_labels.contains(text) {
                if let Some(short) = short {
                    return (format!("{text} ({short})"), NameSource::Label);
                }
            } else if !text.is_empty() {
                return (text.to_owned(), NameSource::Label);
            }
        }
        let module_name = || kernel.module_name.as_deref().and_then(default_names::given);
        if let Some(name) = default_names::given(&kernel.source_name).or_else(module_name) {
            return (name.to_owned(), NameSource::SourceName);
        }
        match short {
            Some(short) => (short, NameSource::Hash),
            None => ("unknown kernel".to_owned(), NameSource::Unknown),
        }
    }

    /// Returns a name such as `spv:48373bb5`, with the specialisation if several kernels share the hash.
    fn short_hash(&self, kernel: &Kernel, hash: &str) -> Option<String> {
        let source = kernel.source?;
        let digits = hash.get(..8)?;
        let text = kernel.specialisation.as_str();
        Some(
            if !self.shared_sources.contains(&source) || text.is_empty() {
                format!("spv:{digits}")
            } else if text.len() <= MAX_SPECIALISATION_BYTES {
                format!("spv:{digits}[{text}]")
            } else {
                format!("spv:{digits}[#{:08x}]", digest(text))
            },
        )
    }
}

/// Returns the FNV-1a hash, which must not change between versions because names are compared between traces.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Returns a text; `None` if it is empty.
fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
