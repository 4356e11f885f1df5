//! Collects the names of kernels, labels and command buffers of a scene (the parts of a trace that every format
//! shows), and finds the text of each by id or row.

use super::DetailKey;
use crate::texts::{TextId, Texts};
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::vocabulary::KernelNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::{KernelId, LabelId};
use gapscope_trace::lookup::{IdIndex, LabelPaths};
use gapscope_trace::tables::{
    HostCallKind, HostCalls, MarkerScope, OpaqueWorkKind, SubmissionKind, Submissions, Timing,
    TransferKind,
};
use gapscope_trace::text_column::TextColumn;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// All texts of a scene, with the indexes that find them.
pub(crate) struct SceneNames {
    /// All texts, by id.
    pub texts: Texts,
    /// The ids of the texts that do not come from the trace.
    statics: FxHashMap<&'static str, TextId>,
    /// The row of each kernel, by its id.
    kernel_index: IdIndex<KernelId>,
    /// The texts of each row, and a last entry for unknown kernels.
    kernels: Vec<KernelText>,
    /// The row of each label, by its id.
    label_index: IdIndex<LabelId>,
    /// The texts of each row, and a last entry for unknown labels.
    labels: Vec<LabelText>,
    /// The name of each row: its own, or else its label, or else `command buffer`.
    command_buffers: Vec<TextId>,
    /// The name of each function of `host_calls` and of `submissions`, by its number in their columns.
    call_functions: Vec<Option<TextId>>,
    launch_functions: Vec<Option<TextId>>,
}

/// The texts of a kernel: its name, and the details that slices of its dispatches show.
pub(crate) struct KernelText {
    pub name: TextId,
    pub details: Vec<(DetailKey, TextId)>,
}

/// The texts of a label.
pub(crate) struct LabelText {
    pub text: TextId,
    /// The label's text behind those of the labels around it.
    pub path: TextId,
}

impl SceneNames {
    pub fn new(trace: &Trace) -> SceneNames {
        let tables = &trace.tables;
        let mut texts = Texts::default();
        let statics = statics().map(|text| (text, texts.add(text))).collect();
        let k = &tables.kernels;
        let readable = KernelNames::new(k);
        let mut kernels: Vec<KernelText> = (0..k.id.len())
            .map(|row| {
                let mut details = Vec::new();
                let sizes = (k.local_x.at(row), k.local_y.at(row), k.local_z.at(row));
                if let (Some(x), Some(y), Some(z)) = sizes {
                    details.push((DetailKey::Local, texts.add(&format!("{x} × {y} × {z}"))));
                }
                let rest = [
                    (DetailKey::EntryPoint, &k.entry_point[row]),
                    (DetailKey::Source, &k.source[row]),
                    (DetailKey::Specialisation, &k.specialisation[row]),
                ];
                for (key, text) in rest {
                    details.extend(text.as_ref().map(|text| (key, texts.add(text))));
                }
                let name = texts.add(readable.name(row));
                KernelText { name, details }
            })
            .collect();
        kernels.push(KernelText {
            name: texts.add("unknown kernel"),
            details: Vec::new(),
        });
        let paths = LabelPaths::new(&tables.labels);
        let rows = tables.labels.id.iter().zip(&tables.labels.text);
        let mut labels: Vec<LabelText> = rows
            .map(|(id, text)| LabelText {
                text: texts.add(text),
                path: texts.add(paths.get(*id).unwrap_or(text)),
            })
            .collect();
        let unknown = texts.add("unknown label");
        labels.push(LabelText {
            text: unknown,
            path: unknown,
        });
        let plain = texts.add("command buffer");
        let names = tables.command_buffers.name.iter();
        let command_buffers = names.zip(&tables.command_buffers.label);
        let label_index = IdIndex::new(&tables.labels.id);
        let command_buffers = command_buffers
            .map(|(name, label)| match (name, label) {
                (Some(name), _) => texts.add(name),
                (None, Some(label)) => label_index.get(label).map_or(plain, |row| labels[row].text),
                (None, None) => plain,
            })
            .collect();
        let mut functions = |column: &TextColumn<Option<Arc<str>>>| {
            let distinct = column.distinct().iter();
            let texts = distinct.map(|name| name.as_ref().map(|name| texts.add(name)));
            texts.collect::<Vec<_>>()
        };
        let call_functions = functions(&tables.host_calls.function);
        let launch_functions = functions(&tables.submissions.function);
        SceneNames {
            call_functions,
            launch_functions,
            texts,
            statics,
            kernel_index: IdIndex::new(&k.id),
            kernels,
            label_index,
            labels,
            command_buffers,
        }
    }

    /// Returns the id of a fixed text.
    ///
    /// # Panics
    /// [`statics`] lacks the text.
    pub fn of_static(&self, text: &'static str) -> TextId {
        self.statics[text]
    }

    /// Returns the row of a kernel, if the trace has it.
    pub fn kernel_row(&self, id: KernelId) -> Option<usize> {
        self.kernel_index.get(id)
    }

    /// Returns the texts of a kernel; those of an unknown kernel if the trace lacks it.
    pub fn kernel(&self, id: KernelId) -> &KernelText {
        let row = self.kernel_index.get(id);
        &self.kernels[row.unwrap_or(self.kernels.len() - 1)]
    }

    /// Returns the texts of a label; those of an unknown label if the trace lacks it.
    pub fn label(&self, id: LabelId) -> &LabelText {
        let row = self.label_index.get(id);
        &self.labels[row.unwrap_or(self.labels.len() - 1)]
    }

    /// Returns the name of the call in a row: that of the function, or else its kind.
    pub fn host_call(&self, calls: &HostCalls, row: usize) -> TextId {
        function(&self.call_functions, &calls.function, row)
            .unwrap_or_else(|| self.of_static(calls.call[row].as_str()))
    }

    /// Returns the name of the call that made the submission in a row: that of the function, or else `submit`.
    pub fn launch(&self, submissions: &Submissions, row: usize) -> TextId {
        function(&self.launch_functions, &submissions.function, row)
            .unwrap_or_else(|| self.of_static(HostCallKind::Submit.as_str()))
    }

    /// Returns the name of the command buffer in a row.
    pub fn command_buffer(&self, row: usize) -> TextId {
        self.command_buffers[row]
    }
}

/// Returns the text of a row's function, from the texts of all functions by number.
fn function(
    texts: &[Option<TextId>],
    column: &TextColumn<Option<Arc<str>>>,
    row: usize,
) -> Option<TextId> {
    *texts.get(column.number(row)? as usize)?
}

/// Returns every text that formats show and that does not come from a trace.
fn statics() -> impl Iterator<Item = &'static str> {
    let kinds = [
        TransferKind::TEXTS,
        OpaqueWorkKind::TEXTS,
        HostCallKind::TEXTS,
        SubmissionKind::TEXTS,
        MarkerScope::TEXTS,
        Timing::TEXTS,
    ];
    let kinds = kinds.into_iter().flatten().map(|(text, _)| *text);
    let causes = Cause::ALL.into_iter();
    let causes = causes.flat_map(|cause| [cause.as_str(), cause.explanation()]);
    kinds.chain(causes).chain(["unknown"])
}
