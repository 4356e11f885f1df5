//! Writes documents as xctrace does: each value once with an id, references afterwards.

use crate::quirks::{Cut, Quirks};
use crate::scene::{Process, Thread};
use std::collections::HashMap;
use std::fmt::Write;

/// The content of a cell.
#[derive(Debug, Clone)]
pub(crate) enum Cell<'a> {
    /// `<sentinel/>`.
    Null,
    /// A number, with the text that people see.
    Number(u64, String),
    /// A text.
    Text(String),
    /// A label made of a text and the process.
    Label(String, &'a Process),
    /// The message of a signpost: its text, around its arguments.
    Metadata(String),
    /// A process.
    Process(&'a Process),
    /// A thread of a process.
    Thread(&'a Thread, &'a Process),
}

impl Cell<'_> {
    pub fn time(ns: i64) -> Cell<'static> {
        let us = ns / 1000;
        let shown = format!(
            "{:02}:{:02}.{:03}.{:03}",
            us / 60_000_000,
            us / 1_000_000 % 60,
            us / 1000 % 1000,
            us % 1000
        );
        Cell::Number(ns as u64, shown)
    }

    pub fn duration(ns: i64) -> Cell<'static> {
        let shown = match ns {
            ..=999 => format!("{ns} ns"),
            1_000..=999_999 => format!("{:.2} µs", ns as f64 / 1e3),
            _ => format!("{:.2} ms", ns as f64 / 1e6),
        };
        Cell::Number(ns as u64, shown)
    }

    pub fn id(id: u64) -> Cell<'static> {
        Cell::Number(id, format!("{id:#x}"))
    }

    pub fn number(number: u64) -> Cell<'static> {
        Cell::Number(number, number.to_string())
    }

    pub fn text(text: impl Into<String>) -> Cell<'static> {
        Cell::Text(text.into())
    }
}

/// The ids of values.
#[derive(Default)]
struct Ids {
    known: HashMap<(String, String), u64>,
    next: u64,
}

impl Ids {
    /// Returns the id of a value, and whether it is new.
    fn id(&mut self, tag: &str, value: &str) -> (u64, bool) {
        let key = (tag.to_owned(), value.to_owned());
        if let Some(id) = self.known.get(&key) {
            return (*id, false);
        }
        self.next += 1;
        self.known.insert(key, self.next);
        (self.next, true)
    }
}

/// Returns the document of one table.
pub(crate) fn write(
    schema: &str,
    columns: &[[&str; 3]],
    rows: &[Vec<Cell>],
    quirks: &Quirks,
) -> String {
    if quirks.empty {
        return EMPTY.to_owned();
    }
    let mut ids = Ids::default();
    let mut written: Vec<String> = (rows.iter())
        .map(|row| {
            assert_eq!(row.len(), columns.len(), "{schema}: a cell for each column");
            let mut text = String::from("<row>");
            for (cell, [_, _, tag]) in row.iter().zip(columns) {
                write_cell(&mut text, tag, cell, &mut ids, quirks);
            }
            text.push_str("</row>\n");
            text
        })
        .collect();
    if quirks.forward_references {
        written.reverse();
    }
    let mut text = String::from("<?xml version=\"1.0\"?>\n<trace-query-result>\n");
    let _ = write!(
        text,
        "<node xpath='//trace-toc[1]/run[1]/data[1]/table[7]'><schema name=\"{schema}\">"
    );
    for [mnemonic, name, engineering_type] in columns {
        let _ = write!(
            text,
            "<col><mnemonic>{mnemonic}</mnemonic><name>{name}</name><engineering-type>{engineering_type}</engineering-type></col>"
        );
    }
    text.push_str("</schema>\n");
    for (n, row) in written.iter().enumerate() {
        if quirks.two_nodes && n == written.len() / 2 && n > 0 {
            text.push_str("</node>\n<node xpath='//trace-toc[1]/run[1]/data[1]/table[9]'>");
        }
        text.push_str(row);
    }
    match quirks.cut {
        Cut::Nowhere => text.push_str("</node></trace-query-result>\n"),
        Cut::AfterLastRow => {}
        Cut::InLastRow => {
            let cells = text.rfind("</row>").unwrap_or(text.len());
            text.truncate(cells - cells.min(5));
        }
    }
    text
}

/// xctrace's result for a table that does not exist: 65 bytes.
pub(crate) const EMPTY: &str =
    "<?xml version=\"1.0\"?>\n<trace-query-result>\n</trace-query-result>\n";

fn write_cell(text: &mut String, tag: &str, cell: &Cell, ids: &mut Ids, quirks: &Quirks) {
    match cell {
        Cell::Null if quirks.dropped_sentinels => {}
        Cell::Null => text.push_str("<sentinel/>"),
        Cell::Number(number, shown) => plain(text, tag, &number.to_string(), shown, ids),
        Cell::Text(value) => plain(text, tag, value, value, ids),
        Cell::Metadata(message) => element(text, tag, message, message, ids, |text, ids| {
            plain(text, "string", message, message, ids);
        }),
        Cell::Process(process) => write_process(text, process, ids),
        Cell::Thread(Thread { name, tid, .. }, process) => {
            let shown = format!("{name} ({tid:#x}) ({}, pid: {})", process.name, process.pid);
            element(text, "thread", &shown, &shown, ids, |text, ids| {
                plain(text, "tid", &tid.to_string(), &format!("{tid:#x}"), ids);
                write_process(text, process, ids);
            });
        }
        Cell::Label(label, process) => {
            let shown = format!("{label} ( {} ({}) )", process.name, process.pid);
            element(text, tag, &shown, &shown, ids, |text, ids| {
                plain(text, "string", label, label, ids);
                write_process(text, process, ids);
            });
        }
    }
}

fn write_process(text: &mut String, process: &Process, ids: &mut Ids) {
    let pid = process.pid.to_string();
    let shown = format!("{} ({pid})", process.name);
    element(text, "process", &shown, &shown, ids, |text, ids| {
        plain(text, "pid", &pid, &pid, ids);
    });
}

fn plain(text: &mut String, tag: &str, value: &str, shown: &str, ids: &mut Ids) {
    element(text, tag, value, shown, ids, |text, _| {
        text.push_str(&escaped(value));
    });
}

/// Writes an element with its id, the text that people see and its content, or a reference to it if its value was
/// written before.
fn element(
    text: &mut String,
    tag: &str,
    value: &str,
    shown: &str,
    ids: &mut Ids,
    content: impl FnOnce(&mut String, &mut Ids),
) {
    let (id, new) = ids.id(tag, value);
    if !new {
        let _ = write!(text, "<{tag} ref=\"{id}\"/>");
        return;
    }
    let _ = write!(text, "<{tag} id=\"{id}\" fmt=\"{}\">", escaped(shown));
    content(text, ids);
    let _ = write!(text, "</{tag}>");
}

/// Escapes a text for XML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
