//! Reads NVTX ranges (intervals that the program marked) and calls of libraries into the profile as ranges, which
//! become markers and labels.

use super::import::{Import, thread_of};
use crate::Error;
use crate::profile::HostRange;
use crate::sqlite::Row;
use gapscope_trace::LossKind;
use gapscope_trace::build::TextId;
use rustc_hash::FxHashMap;

/// The numbers that `NVTX_EVENTS` gives kinds of rows.
mod kind {
    pub const CATEGORY: i64 = 33;
    pub const MARK: i64 = 34;
    pub const PUSH_POP: i64 = 59;
    pub const START_END: i64 = 60;
    /// The kinds of rows in exports of text that was imported into nsys.
    pub const TEXT_MARK: i64 = 65;
    pub const TEXT_PUSH_POP: i64 = 70;
    pub const TEXT_START_END: i64 = 71;
    pub const DOMAIN: i64 = 75;
}

/// The texts that begin the details that PyTorch adds, which make each text of an operator unique.
const DETAILS_OF_PYTORCH: [&str; 4] = [", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "];

/// The identity of a domain: its process, and its number in the process.
type Domain = (Option<u32>, Option<i64>);
/// The identity of a category: its domain, and its number in the domain.
type Category = (Domain, i64);

/// The texts of ranges, each split into the label and the details.
#[derive(Default)]
struct Texts {
    /// The texts of the table of strings, by id.
    by_id: FxHashMap<i64, (TextId, Option<TextId>)>,
    /// The texts that stand in the rows themselves.
    written: FxHashMap<Box<[u8]>, (TextId, Option<TextId>)>,
}

impl Import {
    /// Reads the rows of NVTX: ranges, instants, and the names of domains and categories.
    pub(super) fn read_markers(&mut self) -> Result<(), Error> {
        let mut domains: FxHashMap<Domain, TextId> = FxHashMap::default();
        let mut categories: FxHashMap<Category, TextId> = FxHashMap::default();
        // The domain and the category of each range, which rows before or behind the range name.
        let mut places: Vec<(Domain, Option<Category>)> = Vec::new();
        let columns = [
            "start",
            "end",
            "eventType",
            "category",
            "text",
            "globalTid",
            "textId",
            "domainId",
            "uint64Value",
            "int64Value",
            "uint32Value",
            "int32Value",
            "doubleValue",
            "floatValue",
            "jsonTextId",
            "jsonText",
        ];
        let mut texts = Texts::default();
        let (mut refused, mut others) = (0, 0);
        self.scan("NVTX_EVENTS", &columns, |import, row| {
            use kind::*;
            let global = row.integer(5);
            let domain = (global.map(super::import::pid_of), row.integer(7));
            let category = row.integer(3).map(|category| (domain, category));
            let (of_process, instant) = match row.integer(2) {
                Some(PUSH_POP | TEXT_PUSH_POP) => (false, false),
                Some(START_END | TEXT_START_END) => (true, false),
                Some(MARK | TEXT_MARK) => (false, true),
                Some(DOMAIN) => {
                    let name = import.name(row);
                    domains.extend(name.map(|name| (domain, name)));
                    return;
                }
                Some(CATEGORY) => {
                    let name = import.name(row);
                    categories.extend(category.zip(name));
                    return;
                }
                _ => {
                    others += 1;
                    return;
                }
            };
            let Some(process) = import.process(global) else {
                return;
            };
            let Some(start_ns) = row.integer(0) else {
                refused += 1;
                return;
            };
            let (text, details) = import.label(row, &mut texts);
            let is_unnamed = row.text(4).is_none()
                && row
                    .integer(6)
                    .is_some_and(|id| import.strings.get(id).is_none());
            import.unnamed.labels += u64::from(is_unnamed);
            let payload = import.payload(row).or(details);
            places.push((domain, category));
            import.profile.recorded.ranges.push(HostRange {
                process,
                thread: global.map(thread_of),
                of_process,
                text,
                domain: None,
                category: None,
                payload,
                start_ns,
                end_ns: match instant {
                    true => Some(start_ns),
                    false => row.integer(1),
                },
                labels_work: true,
                has_row: true,
            });
        })?;
        for (range, (domain, category)) in self.profile.recorded.ranges.iter_mut().zip(places) {
            range.domain = domains.get(&domain).copied();
            range.category = category.and_then(|category| categories.get(&category).copied());
        }
        let inventory = &mut self.profile.inventory;
        inventory.lose(LossKind::Labels, refused, "the file has no times of them");
        let reason = "they are of a kind that gapscope does not know";
        inventory.lose("rows of NVTX_EVENTS", others, reason);
        self.read_calls_of_libraries()
    }

    /// Returns the name that a row gives a domain or a category; `None` for rows without a name.
    fn name(&mut self, row: &Row) -> Option<TextId> {
        let name = match (row.string(4), row.integer(6)) {
            (Some(text), _) => text,
            (None, Some(id)) => self.strings.get(id).unwrap_or_default().into_owned(),
            _ => return None,
        };
        Some(self.profile.text(&name))
    }

    /// Returns the text of a row without PyTorch's details, and the details. Texts that came before are kept in
    /// `texts`.
    fn label(&mut self, row: &Row, texts: &mut Texts) -> (TextId, Option<TextId>) {
        if let Some(text) = row.text(4) {
            if let Some(known) = texts.written.get(text) {
                return *known;
            }
            let split = self.split(&String::from_utf8_lossy(text));
            texts.written.insert(text.into(), split);
            return split;
        }
        let id = row.integer(6).unwrap_or(-1);
        if let Some(known) = texts.by_id.get(&id) {
            return *known;
        }
        let text = match self.strings.get(id) {
            Some(text) => text.into_owned(),
            None if id < 0 => String::new(),
            None => format!("unknown label {id}"),
        };
        let split = self.split(&text);
        texts.by_id.insert(id, split);
        split
    }

    /// Splits a text before the first of PyTorch's details.
    fn split(&mut self, text: &str) -> (TextId, Option<TextId>) {
        // `, ` begins all details.
        let mut starts = text.match_indices(", ").map(|(at, _)| at);
        let begins = |at: &usize| {
            let mut details = DETAILS_OF_PYTORCH.iter();
            details.any(|details| text[*at..].starts_with(details))
        };
        match starts.find(begins) {
            Some(at) => {
                let details = text[at + 2..].replace(" = ", "=");
                let name = self.profile.text(&text[..at]);
                (name, Some(self.profile.text(&details)))
            }
            None => (self.profile.text(text), None),
        }
    }

    /// Returns the value that the program gave a range: a JSON text, or else the first number; `None` if there is
    /// none.
    fn payload(&mut self, row: &Row) -> Option<TextId> {
        let json = match (row.text(15), row.integer(14)) {
            (Some(text), _) => Some(String::from_utf8_lossy(text).into_owned()),
            (None, Some(id)) => self.strings.get(id).map(|text| text.into_owned()),
            _ => None,
        };
        if let Some(json) = json {
            return Some(self.profile.text(&fields(&json)));
        }
        let whole = (8..12).find_map(|at| row.integer(at));
        // Nanoseconds, sizes and ids beyond 2^63 are written as negative numbers.
        let text = match (whole, row.integer(8)) {
            (_, Some(unsigned)) => (unsigned as u64).to_string(),
            (Some(whole), None) => whole.to_string(),
            _ => (12..14).find_map(|at| row.real(at))?.to_string(),
        };
        Some(self.profile.text(&text))
    }

    /// Reads calls of the operating system and of CUDA libraries as markers, which label no work.
    fn read_calls_of_libraries(&mut self) -> Result<(), Error> {
        for (table, domain) in [
            ("OSRT_API", "OS runtime"),
            ("CUBLAS_EVENTS", "cuBLAS"),
            ("CUDNN_EVENTS", "cuDNN"),
        ] {
            let domain = self.profile.text(domain);
            let mut texts: FxHashMap<i64, TextId> = FxHashMap::default();
            let rows = (table, LossKind::from_text(format!("rows of {table}")));
            self.scan_spans(rows, &["nameId"], |import, row, (process, thread, span)| {
                let name = row.integer(3).unwrap_or(-1);
                let text = *texts.entry(name).or_insert_with(|| {
                    let text = import.strings.get(name);
                    let text = text.unwrap_or("unknown function".into());
                    import.profile.text(&text)
                });
                import.profile.recorded.ranges.push(HostRange {
                    process,
                    thread,
                    of_process: false,
                    text,
                    domain: Some(domain),
                    category: None,
                    payload: None,
                    start_ns: span.start_ns,
                    end_ns: Some(span.end_ns()),
                    labels_work: false,
                    has_row: true,
                });
            })?;
        }
        Ok(())
    }
}

/// Formats a JSON object such as `{"a": 1, "b": "x"}` as `a=1, b=x`. Other texts stay as they are.
fn fields(json: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(json) else {
        return json.to_owned();
    };
    let shown = fields.iter().map(|(name, value)| match value {
        serde_json::Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}
