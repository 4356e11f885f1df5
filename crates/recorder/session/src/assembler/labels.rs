//! Labels: texts in their nesting, each with one id in the trace.

use gapscope_trace::tables::{Label, Table, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Interns label texts, and labels as (parent, text).
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Labels {
    texts: Vec<String>,
    text_ids: FxHashMap<String, u32>,
    /// Parent and text of each label.
    labels: Vec<(Option<u32>, u32)>,
    label_ids: FxHashMap<(Option<u32>, u32), u32>,
}

impl Labels {
    /// The id of a text.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.text_ids.insert(text.to_owned(), id);
        id
    }

    /// The id of the label `text` inside `parent`.
    pub fn label(&mut self, parent: Option<u32>, text: u32) -> u32 {
        let next = self.labels.len() as u32;
        *self.label_ids.entry((parent, text)).or_insert_with(|| {
            self.labels.push((parent, text));
            next
        })
    }

    /// The text of an id.
    pub fn text_of(&self, text: u32) -> &str {
        self.texts.get(text as usize).map_or("", String::as_str)
    }

    /// Appends a row for each label.
    pub fn write(&self, tables: &mut Tables) {
        for (id, (parent, text)) in self.labels.iter().enumerate() {
            tables.labels.push(Label {
                id: id as u32,
                text: self.text_of(*text).to_owned(),
                parent: *parent,
            });
        }
    }
}
