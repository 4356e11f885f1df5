//! The content of a report, apart from how it is drawn: [`crate::terminal`] and [`crate::markdown`] both draw it.

use crate::fit;
use gapscope_analysis::gaps::Family;
use std::borrow::Cow;

/// A report as a list of blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// The blocks from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The first line of the report, then an aside at its right end.
    Title(String, String),
    /// The heading of a section, then an aside that says what its numbers cover.
    Heading(String, String),
    /// A sentence, which is wrapped as needed.
    Sentence(Text),
    /// A sentence that stands by itself, with space around it.
    Apart(Text),
    /// An entry of a list.
    Item(Text),
    /// A table.
    Table(Table),
    /// Lines whose columns must stay aligned.
    Picture(Vec<Text>),
}

/// The meaning of a piece of text, by which a renderer chooses its look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Plain text.
    #[default]
    Plain,
    /// Important text.
    Strong,
    /// Text that explains and may be skipped.
    Faint,
    /// Text about a GPU that works, or that all is well.
    Good,
    /// Text about something that deserves attention.
    Warning,
    /// Text about a cause of gaps, by the cause's family. Causes of one family look alike.
    Cause(Family),
}

/// Text in pieces, each with its tone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The pieces in order.
    pub spans: Vec<(Tone, String)>,
}

impl Text {
    /// Returns an empty text.
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

    /// Appends a piece, joined with the last piece where both have one tone. Characters that could steer a terminal
    /// are replaced ([`fit::clean`]).
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

    /// Returns the text without its tones.
    pub fn plain_text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns true when all of the text may be skipped.
    pub fn is_faint(&self) -> bool {
        self.spans.iter().all(|(tone, _)| *tone == Tone::Faint)
    }

    /// Returns the columns that the text takes in a terminal.
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
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
    /// The title of the column of notes, where a renderer draws notes as a column.
    pub note_title: String,
    /// True where nothing is said of columns and names that have no room.
    pub is_brief: bool,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The title of the column.
    pub title: String,
    /// True where cells are aligned to the right, as numbers are.
    pub right: bool,
    /// True where cells may be clipped.
    pub clipped: bool,
    /// True where cells are names from the program's code.
    pub code: bool,
    /// The order in which columns are left out where room is short: the greatest number goes first, and 0 never goes.
    pub spare: u8,
    /// True where the column is drawn in terminals only.
    pub picture: bool,
}

impl Column {
    /// Returns a column of short texts.
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

    /// Returns a column of texts, which may be clipped.
    pub fn text(title: &str) -> Column {
        Column {
            clipped: true,
            ..Column::word(title)
        }
    }

    /// Returns a column of names from the program's code, which may be clipped.
    pub fn name(title: &str) -> Column {
        Column {
            code: true,
            ..Column::text(title)
        }
    }

    /// Returns a column of numbers.
    pub fn number(title: &str) -> Column {
        Column {
            right: true,
            ..Column::word(title)
        }
    }

    /// Returns a column of bars, for terminals that are wide enough.
    pub fn bars() -> Column {
        Column {
            spare: 9,
            picture: true,
            ..Column::word("")
        }
    }

    /// Sets the order in which the column is left out where room is short; the greatest `spare` goes first.
    pub fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// One cell for each column.
    pub cells: Vec<Text>,
    /// A remark on the row: a line under it in a terminal, a column of its own in Markdown.
    pub note: Option<Text>,
}

impl Table {
    /// Returns a table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            columns: columns.into_iter().collect(),
            ..Table::default()
        }
    }

    /// Appends a row with one cell for each column.
    pub fn row<const N: usize>(&mut self, cells: [Text; N]) -> &mut Row {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(Row {
            cells: cells.into(),
            note: None,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Begins a table with a row for each of `rows`.
    pub fn with_rows<T>(rows: &[T]) -> TableBuilder<'_, T> {
        let mut table = Table::default();
        table.rows.resize(rows.len(), Row::default());
        TableBuilder { rows, table }
    }

    /// Returns the table under a heading with an aside.
    pub fn under(self, title: impl Into<String>, aside: impl Into<String>) -> Vec<Block> {
        vec![
            Block::Heading(title.into(), aside.into()),
            Block::Table(self),
        ]
    }
}

/// A table that gets its columns one after the other, each with the function that makes a cell from a row's value.
pub struct TableBuilder<'a, T> {
    rows: &'a [T],
    table: Table,
}

impl<'a, T> TableBuilder<'a, T> {
    /// Appends a column, whose cells `cell` makes from the rows' values.
    fn column<C: Into<Text>>(mut self, column: Column, cell: impl Fn(&'a T) -> C) -> Self {
        self.table.columns.push(column);
        for (row, value) in self.table.rows.iter_mut().zip(self.rows) {
            row.cells.push(cell(value).into());
        }
        self
    }

    /// Appends a column of short texts, whose cells `cell` makes.
    pub fn word<C: Into<Text>>(self, title: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(Column::word(title), cell)
    }

    /// Appends a column of texts, which may be clipped.
    pub fn text<C: Into<Text>>(self, title: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(Column::text(title), cell)
    }

    /// Appends a column of names from the program's code.
    pub fn name<C: Into<Text>>(self, title: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(Column::name(title), cell)
    }

    /// Appends a column of numbers.
    pub fn number<C: Into<Text>>(self, title: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(Column::number(title), cell)
    }

    /// Appends a column of bars.
    pub fn bars<C: Into<Text>>(self, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(Column::bars(), cell)
    }

    /// Sets the order in which the last column is left out where room is short, as [`Column::spare`] does.
    pub fn spare(mut self, spare: u8) -> Self {
        if let Some(last) = self.table.columns.last_mut() {
            last.spare = spare;
        }
        self
    }

    /// Sets the remarks on the rows, and the title of their column.
    pub fn notes(mut self, title: &str, note: impl Fn(&'a T) -> Option<Text>) -> Self {
        self.table.note_title = title.to_owned();
        for (row, value) in self.table.rows.iter_mut().zip(self.rows) {
            row.note = note(value);
        }
        self
    }

    /// Says nothing of columns and names that have no room.
    pub fn brief(mut self) -> Self {
        self.table.is_brief = true;
        self
    }

    /// Returns the table.
    pub fn build(self) -> Table {
        self.table
    }

    /// Returns the table under a heading with an aside.
    pub fn under(self, title: impl Into<String>, aside: impl Into<String>) -> Vec<Block> {
        self.table.under(title, aside)
    }
}
