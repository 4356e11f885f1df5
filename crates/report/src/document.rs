//! What a report says, apart from how it is drawn: [`crate::terminal`] and [`crate::markdown`] draw the same document.

use crate::fit;
use gapscope_analysis::gaps::Family;
use std::borrow::Cow;

/// A report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The report's first line, with an aside at its right end.
    Title(String, String),
    /// Begins a section; the aside says what its numbers are of.
    Heading(String, String),
    /// A sentence, wrapped as needed.
    Sentence(Text),
    /// An entry of a list.
    Item(Text),
    /// A table.
    Table(Table),
    /// Lines that must keep their columns.
    Picture(Vec<Text>),
}

/// What a piece of text means; a renderer chooses how that looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// Important.
    Strong,
    /// Explanation that may be skipped.
    Faint,
    /// The GPU works; all is well.
    Good,
    /// Something to look at.
    Warning,
    /// The cause of a gap: causes that belong together look alike.
    Cause(Family),
}

/// Text in pieces, each with its tone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The pieces in order.
    pub spans: Vec<(Tone, String)>,
}

impl Text {
    /// An empty text.
    pub fn new() -> Text {
        Text::default()
    }

    /// Appends a piece.
    pub fn with(mut self, tone: Tone, text: impl Into<String>) -> Text {
        self.push(tone, text);
        self
    }

    /// Appends a plain piece.
    pub fn and(self, text: impl Into<String>) -> Text {
        self.with(Tone::Plain, text)
    }

    /// Appends an important piece.
    pub fn strong(self, text: impl Into<String>) -> Text {
        self.with(Tone::Strong, text)
    }

    /// Appends an explaining piece.
    pub fn faint(self, text: impl Into<String>) -> Text {
        self.with(Tone::Faint, text)
    }

    /// Appends a piece; one of the same tone as the last joins it. Nothing in it steers a terminal ([`fit::clean`]).
    pub fn push(&mut self, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        let text = match fit::clean(&text) {
            Cow::Owned(cleaned) => cleaned,
            Cow::Borrowed(_) => text,
        };
        match self.spans.last_mut() {
            Some((last, so_far)) if *last == tone => so_far.push_str(&text),
            _ => self.spans.push((tone, text)),
        }
    }

    /// Without its tones.
    pub fn plain_text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// True when all of it may be skipped.
    pub fn is_faint(&self) -> bool {
        self.spans.iter().all(|(tone, _)| *tone == Tone::Faint)
    }

    /// Columns that it takes in a terminal.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| fit::width(text)).sum()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::new().and(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::new().and(text)
    }
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Title of the notes of rows, where notes are a column.
    pub note_title: String,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// Numbers are aligned to the right.
    pub right: bool,
    /// Its cells may be clipped.
    pub clipped: bool,
    /// Its cells are names from the program's code.
    pub code: bool,
    /// Which columns are left out first where there is no room: the greatest. 0 is never left out.
    pub spare: u8,
    /// Drawn in terminals only.
    pub picture: bool,
}

impl Column {
    /// A column of short texts.
    pub fn word(title: &str) -> Column {
        Column {
            title: title.to_owned(),
            right: false,
            clipped: false,
            code: false,
            spare: 0,
            picture: false,
        }
    }

    /// A column of texts, which may be clipped.
    pub fn text(title: &str) -> Column {
        Column {
            clipped: true,
            ..Column::word(title)
        }
    }

    /// A column of names from the program's code, which may be clipped.
    pub fn name(title: &str) -> Column {
        Column {
            code: true,
            ..Column::text(title)
        }
    }

    /// A column of numbers.
    pub fn number(title: &str) -> Column {
        Column {
            right: true,
            ..Column::word(title)
        }
    }

    /// A column of bars, for terminals that are wide enough.
    pub fn bars() -> Column {
        Column {
            spare: 9,
            picture: true,
            ..Column::word("")
        }
    }

    /// This column may be left out; a greater `spare` goes first.
    pub fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// One cell a column.
    pub cells: Vec<Text>,
    /// A remark on the row: a line under it in a terminal, a column of its own in Markdown.
    pub note: Option<Text>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            columns: columns.into_iter().collect(),
            ..Table::default()
        }
    }

    /// Appends a row, one cell a column.
    pub fn row<const N: usize>(&mut self, cells: [Text; N]) -> &mut Row {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(Row {
            cells: cells.into(),
            note: None,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }
}
