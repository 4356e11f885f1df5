//! Collects the texts of a trace that the page shows, each once under a number, and finds the number of the text that
//! names a row. Texts of a live trace are only added, so that their numbers stay.

use gapscope_analysis::gaps::Cause;
use gapscope_timeline::vocabulary::KernelNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::{KernelId, LabelId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{
    HostCallKind, HostCalls, OpaqueWorkKind, Submissions, Table, TransferKind,
};
use gapscope_trace::text_column::TextColumn;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// The number that stands for no text in columns.
pub const NONE: u32 = u32::MAX;

/// The most characters of a text, beyond which it is cut: the page lays out each text, and may show one a thousand
/// times.
const MAX_TEXT_CHARACTERS: usize = 1000;

/// How many texts come before the causes.
const FIXED: u32 = 3;

/// Cuts a text that is too long.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The numbers of the texts of a label and of its path, and the number of labels in that path.
#[derive(Debug, Clone, Copy)]
struct LabelTexts {
    text: u32,
    path: u32,
    depth: u32,
}

/// The texts of a trace, to which texts are only added.
#[derive(Debug, Default)]
pub struct Texts {
    /// The texts by number.
    all: Vec<String>,
    /// The number of each text.
    ids: FxHashMap<String, u32>,
    kernel_index: IdIndex<KernelId>,
    /// The number of the name of each kernel, by row; `labels` and `command_buffers` are by row, too.
    kernels: Vec<u32>,
    label_index: IdIndex<LabelId>,
    labels: Vec<LabelTexts>,
    command_buffers: Vec<u32>,
    /// The number of the name of each kind of transfer, in the order of the kinds; the next three are of other kinds.
    transfers: Vec<u32>,
    opaque: Vec<u32>,
    calls: Vec<u32>,
    /// The number of the name of each function of `host_calls` and of `submissions`, by its number in their columns;
    /// [`NONE`] for calls without a function.
    call_functions: Vec<u32>,
    launch_functions: Vec<u32>,
    causes: Vec<u32>,
    /// The numbers of the texts for what has no name in the trace.
    unknown_kernel: u32,
    unknown_label: u32,
    command_buffer: u32,
}

impl Texts {
    /// Collects the texts of a trace.
    pub fn new(trace: &Trace) -> Texts {
        let mut texts = Texts::default();
        texts.unknown_kernel = texts.add("unknown kernel");
        texts.unknown_label = texts.add("unknown label");
        texts.command_buffer = texts.add("command buffer");
        texts.causes = Cause::ALL.map(|cause| texts.add(cause.as_str())).into();
        macro_rules! kinds {
            ($list:ident, $kind:ty) => {
                let kinds = <$kind>::ALL.iter().chain([&<$kind>::Unknown]);
                texts.$list = kinds.map(|kind| texts.add(kind.as_str())).collect();
            };
        }
        // A kernel may be called `copy`, too: the page gives transfers a colour of their own by these numbers.
        let kinds = TransferKind::ALL.iter().chain([&TransferKind::Unknown]);
        texts.transfers = kinds.map(|kind| texts.push(kind.as_str())).collect();
        kinds!(opaque, OpaqueWorkKind);
        kinds!(calls, HostCallKind);
        texts.extend(trace);
        texts
    }

    /// Adds the texts of new rows of a live trace.
    pub fn extend(&mut self, trace: &Trace) {
        let tables = &trace.tables;
        if self.kernels.len() < tables.kernels.len() {
            // A new kernel may share the name of an earlier one, which then gets a distinct name, too.
            let names = KernelNames::new(&tables.kernels);
            let rows = 0..tables.kernels.len();
            self.kernels = rows.map(|row| self.add(names.name(row))).collect();
        }
        self.kernel_index = IdIndex::new(&tables.kernels.id);
        if self.labels.len() < tables.labels.len() {
            let labels = &tables.labels;
            let index = IdIndex::new(&labels.id);
            for row in self.labels.len()..labels.len() {
                let label = LabelTexts {
                    text: self.add(&labels.text[row]),
                    path: self.add(&labels.path(&index, row)),
                    depth: labels.outwards(&index, row).count() as u32,
                };
                self.labels.push(label);
            }
        }
        self.label_index = IdIndex::new(&tables.labels.id);
        let functions = tables.host_calls.function.distinct();
        for name in &functions[self.call_functions.len()..] {
            let id = name.as_ref().map_or(NONE, |name| self.add(name));
            self.call_functions.push(id);
        }
        let functions = tables.submissions.function.distinct();
        for name in &functions[self.launch_functions.len()..] {
            let id = name.as_ref().map_or(NONE, |name| self.add(name));
            self.launch_functions.push(id);
        }
        // This column is read even where the others of its table are not.
        for row in self.command_buffers.len()..tables.command_buffers.label.len() {
            let label = tables.command_buffers.label.at(row);
            let id = match &tables.command_buffers.name[row] {
                Some(name) => self.add(name),
                None => label.map_or(self.command_buffer, |id| self.label(id)),
            };
            self.command_buffers.push(id);
        }
    }

    /// Returns the number of a text, which is cut first and added where it is new.
    fn add(&mut self, text: &str) -> u32 {
        let text = match text.len() > MAX_TEXT_CHARACTERS {
            true => Cow::Owned(cut(text)),
            false => Cow::Borrowed(text),
        };
        if let Some(id) = self.ids.get(&*text) {
            return *id;
        }
        let id = self.push(&text);
        self.ids.entry(text.into_owned()).or_insert(id);
        id
    }

    /// Adds a text under a number of its own, whether or not another number has the same text.
    fn push(&mut self, text: &str) -> u32 {
        self.all.push(text.to_owned());
        self.all.len() as u32 - 1
    }

    /// Returns the first number of the names of kinds of transfers, and the number after the last. They are the same for each trace.
    pub const fn of_transfers() -> [u32; 2] {
        let first = FIXED + Cause::ALL.len() as u32;
        [first, first + TransferKind::ALL.len() as u32 + 1]
    }

    /// Returns all texts; a text's id is its index.
    pub fn all(&self) -> &[String] {
        &self.all
    }

    pub fn text(&self, id: u32) -> &str {
        self.all.get(id as usize).map_or("", String::as_str)
    }

    /// Returns the id of a text, which is cut first.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.ids.get(cut(text).as_str()).copied()
    }

    /// Returns the number of the name of a kernel, by the kernel's id in the trace.
    #[inline]
    pub fn kernel(&self, id: KernelId) -> u32 {
        let row = self.kernel_index.get(id);
        row.and_then(|row| self.kernels.get(row).copied())
            .unwrap_or(self.unknown_kernel)
    }

    /// Returns the number of a label's own text.
    pub fn label(&self, id: LabelId) -> u32 {
        self.label_texts(id)
            .map_or(self.unknown_label, |label| label.text)
    }

    /// Returns the numbers of a label's texts; `None` for a label that the trace does not have.
    fn label_texts(&self, id: LabelId) -> Option<&LabelTexts> {
        self.labels.get(self.label_index.get(id)?)
    }

    /// Returns the number of the text of a label's path, from the outermost label in.
    pub fn label_path(&self, id: LabelId) -> u32 {
        self.label_texts(id)
            .map_or(self.unknown_label, |label| label.path)
    }

    /// Returns the number of labels in a label's path; 0 for a label that the trace does not have.
    pub fn label_depth(&self, id: LabelId) -> u32 {
        self.label_texts(id).map_or(0, |label| label.depth)
    }

    /// Returns the number of the name of a command buffer, by its row.
    pub fn command_buffer(&self, row: usize) -> u32 {
        let text = self.command_buffers.get(row).copied();
        text.unwrap_or(self.command_buffer)
    }

    pub fn transfer(&self, kind: TransferKind) -> u32 {
        self.transfers[kind as usize]
    }

    pub fn opaque(&self, kind: OpaqueWorkKind) -> u32 {
        self.opaque[kind as usize]
    }

    pub fn call(&self, kind: HostCallKind) -> u32 {
        self.calls[kind as usize]
    }

    /// Returns the number of the name of the call in a row: that of its function, or else its kind.
    #[inline]
    pub fn host_call(&self, calls: &HostCalls, row: usize) -> u32 {
        function(&self.call_functions, &calls.function, row)
            .unwrap_or_else(|| self.call(calls.call[row]))
    }

    /// Returns the number of the name of the call that made a submission: that of its function, or else `submit`.
    #[inline]
    pub fn launch(&self, submissions: &Submissions, row: usize) -> u32 {
        function(&self.launch_functions, &submissions.function, row)
            .unwrap_or_else(|| self.call(HostCallKind::Submit))
    }

    pub fn cause(&self, cause: Cause) -> u32 {
        self.causes[cause as usize]
    }
}

/// Returns the number of the text of a row's function, from those of all functions of its column.
fn function(numbers: &[u32], column: &TextColumn<Option<Arc<str>>>, row: usize) -> Option<u32> {
    let number = *numbers.get(column.number(row)? as usize)?;
    (number != NONE).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace with two nested labels, and with one command buffer that has a label and one that has none.
    const TRACE: &str = "kernel id=9 name=matmul
        label id=1 text=step
        label id=2 text=attention parent=1
        command_buffer id=1 label=2
        command_buffer id=2";

    #[test]
    fn everything_has_its_name() {
        let trace = Trace::from_text(TRACE).unwrap();
        let texts = Texts::new(&trace);
        assert_eq!(texts.text(texts.kernel(KernelId(9))), "matmul");
        assert_eq!(texts.text(texts.kernel(KernelId(8))), "unknown kernel");
        assert_eq!(texts.text(texts.label(LabelId(2))), "attention");
        assert_eq!(texts.text(texts.label_path(LabelId(2))), "step / attention");
        assert_eq!(texts.text(texts.command_buffer(0)), "attention");
        assert_eq!(texts.text(texts.command_buffer(1)), "command buffer");
        for kind in HostCallKind::ALL {
            assert_eq!(texts.text(texts.call(*kind)), kind.as_str());
        }
    }

    #[test]
    fn transfers_have_numbers_that_no_kernel_of_the_same_name_has() {
        let trace = Trace::from_text("kernel id=1 name=copy").unwrap();
        let texts = Texts::new(&trace);
        let [first, past] = Texts::of_transfers();
        assert_eq!(texts.transfer(TransferKind::ALL[0]), first);
        assert_eq!(texts.transfer(TransferKind::Unknown), past - 1);
        assert_eq!(texts.text(texts.kernel(KernelId(1))), "copy");
        assert!(!(first..past).contains(&texts.kernel(KernelId(1))));
        assert!(!(first..past).contains(&texts.cause(Cause::Unknown)));
    }

    #[test]
    fn ids_stay_when_a_trace_grows() {
        let mut trace = Trace::from_text(TRACE).unwrap();
        let mut texts = Texts::new(&trace);
        let before = texts.all().to_vec();
        let more = format!("{TRACE}\nkernel id=10 name=softmax\nlabel id=3 text=deep parent=2");
        trace = Trace::from_text(&more).unwrap();
        texts.extend(&trace);
        assert_eq!(texts.all()[..before.len()], before);
        assert_eq!(texts.text(texts.kernel(KernelId(10))), "softmax");
        assert_eq!(
            texts.text(texts.label_path(LabelId(3))),
            "step / attention / deep"
        );
    }

    #[test]
    fn a_name_of_ten_megabytes_is_cut_where_a_character_ends() {
        let name = "é".repeat(5_000_000);
        let trace = Trace::from_text(&format!("label id=1 text={name}")).unwrap();
        let texts = Texts::new(&trace);
        let shown = texts.text(texts.label(LabelId(1)));
        assert_eq!(shown.chars().count(), MAX_TEXT_CHARACTERS + 1);
        assert!(shown.ends_with('…'));
        assert_eq!(texts.find(&name), Some(texts.label(LabelId(1))));
    }
}
