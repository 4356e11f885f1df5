//! Turns a document into lines of text for a terminal: wraps sentences, fits tables into the columns, and colours
//! tones. Where a table has no room, its bars are left out first; then names are clipped, and columns are left out in
//! the order that they say (`spare`). A line below says what is missing and at which width it fits.

use crate::document::{Block, Column, Document, Row, Table, Text, Tone};
use crate::fit;
use gapscope_analysis::gaps::Family;

/// A terminal, a file or a pipe that a document is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The number of columns of a line.
    pub columns: usize,
    /// True where escape sequences for colours may be used.
    pub colour: bool,
}

impl Default for Terminal {
    /// Returns a terminal of 80 columns without colour, as for a file or a pipe.
    fn default() -> Terminal {
        Terminal {
            columns: 80,
            colour: false,
        }
    }
}

/// The width of the left margin of everything but headings.
const MARGIN: usize = 2;
/// The number of blanks between columns of a table.
const GUTTER: usize = 2;
/// The minimum width to which columns are clipped.
const MIN_CLIPPED_COLUMNS: usize = 20;
/// The maximum width of lines of sentences, since longer ones are hard to read. Tables and pictures take all columns.
const MAX_SENTENCE_COLUMNS: usize = 120;

impl Terminal {
    /// Returns the text of a document, which ends with a line feed.
    pub fn draw(&self, document: &Document) -> String {
        let mut page = String::new();
        let mut before: Option<&Block> = None;
        for block in &document.blocks {
            let joins = before.is_none_or(|before| joins(before, block));
            if !joins {
                page.push('\n');
            }
            self.block(&mut page, block);
            before = Some(block);
        }
        page
    }

    /// Appends a block to the page.
    fn block(&self, page: &mut String, block: &Block) {
        match block {
            Block::Title(title, aside) => self.rule(page, title, aside, ' '),
            Block::Heading(title, aside) => self.rule(page, title, aside, '─'),
            Block::Sentence(text) | Block::Apart(text) => self.paragraph(page, text, "", 0),
            Block::Item(text) => self.paragraph(page, text, "• ", 2),
            Block::Table(table) => self.table(page, table),
            Block::Picture(lines) => {
                for line in lines {
                    let line = Text::from(" ".repeat(MARGIN).as_str()).joined(line);
                    self.line(page, &line);
                }
            }
        }
    }

    /// Appends a title or heading: the text, a rule of `fill` characters, and the aside at the right end.
    fn rule(&self, page: &mut String, title: &str, aside: &str, fill: char) {
        let (title, aside) = (fit::clean(title), fit::clean(aside));
        let room = self.columns.saturating_sub(fit::width(&aside) + 4);
        let title = fit::clip(&title, room.max(20));
        let used = fit::width(&title) + fit::width(&aside) + 1 + usize::from(!aside.is_empty());
        let fill = fill.to_string().repeat(self.columns.saturating_sub(used));
        let mut text = Text::new().strong(title).faint(format!(" {fill}"));
        if !aside.is_empty() {
            text.push(Tone::Faint, format!(" {aside}"));
        }
        self.line(page, &text);
    }

    /// Appends a wrapped text; the first line has a bullet, the others `hanging` blanks in its place.
    fn paragraph(&self, page: &mut String, text: &Text, bullet: &str, hanging: usize) {
        let columns = self.columns.min(MAX_SENTENCE_COLUMNS);
        let room = columns.saturating_sub(MARGIN + hanging).max(20);
        for (i, line) in wrap(text, room).into_iter().enumerate() {
            let lead = if i == 0 { bullet } else { &"  "[..hanging] };
            let whole = Text::new().and(" ".repeat(MARGIN)).faint(lead);
            self.line(page, &whole.joined(&line));
        }
    }

    /// Appends a table, with the notes under their rows, and a line on what had no room.
    fn table(&self, page: &mut String, table: &Table) {
        let layout = TableLayout::new(table, self.columns.saturating_sub(MARGIN));
        let titled = table.columns.iter().any(|c| !c.title.is_empty());
        if titled {
            let titles = table.columns.iter();
            let titles = titles.map(|column| Text::new().faint(column.title.as_str()));
            self.row(page, table, &layout, &titles.collect::<Vec<_>>());
        }
        let clips: Vec<Option<Vec<String>>> = (table.columns.iter().enumerate())
            .map(|(at, column)| {
                let width = layout.widths[at].filter(|_| column.clipped)?;
                let texts = table.rows.iter().map(|row| row.cells[at].plain_text());
                Some(fit::clip_apart(&texts.collect::<Vec<_>>(), width))
            })
            .collect();
        for (at, row) in table.rows.iter().enumerate() {
            let cells = row.cells.iter().zip(&clips);
            let cells = cells.map(|(cell, clips)| match clips {
                Some(clips) => clipped(cell, &clips[at]),
                None => cell.clone(),
            });
            self.row(page, table, &layout, &cells.collect::<Vec<_>>());
            if let Some(note) = &row.note {
                let indent = layout.note_indent;
                let columns = self.columns.min(MAX_SENTENCE_COLUMNS);
                let room = columns.saturating_sub(MARGIN + indent + 2).max(20);
                for (i, line) in wrap(note, room).into_iter().enumerate() {
                    let lead = if i == 0 { "→ " } else { "  " };
                    let lead = format!("{}{lead}", " ".repeat(MARGIN + indent));
                    self.line(page, &Text::new().faint(lead).joined(&line));
                }
            }
        }
        if table.is_brief {
            return;
        }
        let mut missing = layout.left_out.clone();
        let first = table.columns.first().filter(|column| column.code);
        let cut = |(row, clip): (&Row, &String)| row.cells[0].plain_text() != *clip;
        let mut width = layout.width_of_columns;
        if first.is_some()
            && let Some(Some(clips)) = clips.first()
            && table.rows.iter().zip(clips).any(cut)
        {
            missing.push("whole names".to_owned());
            width = layout.width_of_all;
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let text = format!("also {missing}: --width {}", MARGIN + width);
            self.paragraph(page, &Text::new().faint(text), "", 0);
        }
    }

    /// Appends a line of cells, each as wide as its column.
    fn row(&self, page: &mut String, table: &Table, layout: &TableLayout, cells: &[Text]) {
        let mut line = Text::new().and(" ".repeat(MARGIN));
        let mut first = true;
        for ((column, cell), width) in table.columns.iter().zip(cells).zip(&layout.widths) {
            let Some(width) = *width else { continue };
            if !first {
                line.push(Tone::Plain, " ".repeat(GUTTER));
            }
            first = false;
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            line = if column.right {
                line.and(padding).joined(cell)
            } else {
                line.joined(cell).and(padding)
            };
        }
        self.line(page, &line);
    }

    /// Writes a line without blanks at its end.
    fn line(&self, page: &mut String, text: &Text) {
        let length = text.plain_text().trim_end().len();
        let mut at = 0;
        for (tone, piece) in &text.spans {
            let piece = &piece[..piece.len().min(length.saturating_sub(at))];
            at += piece.len();
            match self.colour.then(|| escape(*tone)).flatten() {
                Some(code) if !piece.is_empty() => {
                    page.push_str(&format!("\x1b[{code}m{piece}\x1b[0m"));
                }
                _ => page.push_str(piece),
            }
        }
        page.push('\n');
    }
}

/// Returns true when no empty line stands between two blocks.
fn joins(before: &Block, block: &Block) -> bool {
    match (before, block) {
        (Block::Heading(..), _) | (Block::Item(_), Block::Item(_)) => true,
        (Block::Sentence(_), Block::Item(_) | Block::Sentence(_)) => true,
        (Block::Apart(_), Block::Item(_)) => true,
        (Block::Apart(_) | Block::Item(_), Block::Sentence(text)) => text.is_faint(),
        // A remark belongs to its table.
        (Block::Table(_), Block::Sentence(text)) => text.is_faint(),
        _ => false,
    }
}

impl Text {
    /// Appends the pieces of another text.
    fn joined(mut self, other: &Text) -> Text {
        for (tone, piece) in &other.spans {
            self.push(*tone, piece.as_str());
        }
        self
    }
}

/// Returns the SGR code of a tone, one of the sixteen colours that every theme defines.
fn escape(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some("1"),
        Tone::Faint => Some("2"),
        Tone::Good => Some("32"),
        Tone::Warning => Some("1;33"),
        Tone::Cause(family) => Some(match family {
            Family::Host => "31",
            Family::HostWait => "35",
            Family::Queues => "33",
            Family::Launch => "36",
            Family::CommandBuffer => "34",
            Family::Unknown => "90",
        }),
    }
}

/// The widths of a table's columns; `None` for a column that is not drawn.
struct TableLayout {
    /// The width of each column in terminal columns.
    widths: Vec<Option<usize>>,
    /// The titles of columns that are left out for want of room.
    left_out: Vec<String>,
    /// The number of terminal columns from which on no column has to be left out.
    width_of_columns: usize,
    /// The number of terminal columns from which on no name has to be clipped either.
    width_of_all: usize,
    /// The blanks before notes: they begin under the first name.
    note_indent: usize,
}

impl TableLayout {
    fn new(table: &Table, room: usize) -> TableLayout {
        let width = |(i, column): (usize, &Column)| {
            let cells = table.rows.iter().map(|row| row.cells[i].width());
            // A column of empty cells is not drawn.
            let widest = cells.max().filter(|width| *width > 0)?;
            Some(widest.max(fit::width(&column.title)))
        };
        let columns = table.columns.iter().enumerate();
        let mut widths: Vec<Option<usize>> = columns.map(width).collect();
        let empty: Vec<bool> = widths.iter().map(Option::is_none).collect();
        let needed = |widths: &[Option<usize>], least_names: bool| {
            let shown = widths.iter().flatten().count();
            let columns = widths.iter().zip(&table.columns);
            let cells = columns.filter_map(|(width, column)| match column.clipped {
                true if least_names => width.map(|width| width.min(MIN_CLIPPED_COLUMNS)),
                _ => *width,
            });
            cells.sum::<usize>() + GUTTER * shown.saturating_sub(1)
        };
        let without_bars = widths.iter().zip(&table.columns);
        let without_bars: Vec<_> = without_bars
            .map(|(width, column)| width.filter(|_| !column.picture))
            .collect();
        let width_of_columns = needed(&without_bars, true);
        let width_of_all = needed(&without_bars, false);
        // Bars are left out before names are clipped, and names are clipped a little before a column is left out.
        while needed(&widths, !drawn_bars(table, &widths)) > room {
            let spare = (0..widths.len())
                .filter(|i| widths[*i].is_some() && table.columns[*i].spare > 0)
                .max_by_key(|i| table.columns[*i].spare);
            let Some(spare) = spare else { break };
            widths[spare] = None;
        }
        let missing = table.columns.iter().zip(widths.iter().zip(empty));
        let left_out: Vec<String> = missing
            .filter(|(column, (width, empty))| width.is_none() && !empty && !column.picture)
            .map(|(column, _)| column.title.clone())
            .collect();
        let mut excess = needed(&widths, false).saturating_sub(room);
        let clipped = |i: &usize| table.columns[*i].clipped;
        // The last name is clipped first, down to its minimum; where that is not enough, the first one gives the rest.
        for number in (0..widths.len()).rev().filter(clipped) {
            let Some(width) = widths[number].as_mut() else {
                continue;
            };
            let gives = excess.min(width.saturating_sub(MIN_CLIPPED_COLUMNS));
            *width -= gives;
            excess -= gives;
        }
        let first = (0..widths.len()).find(clipped);
        if let Some(width) = first.and_then(|i| widths[i].as_mut()) {
            *width = width.saturating_sub(excess).max(1);
        }
        let name = table.columns.iter().position(|c| c.clipped).unwrap_or(0);
        let note_indent = widths[..name].iter().flatten().map(|w| w + GUTTER).sum();
        TableLayout {
            widths,
            left_out,
            width_of_columns,
            width_of_all,
            note_indent,
        }
    }
}

/// Returns whether a column of bars is drawn.
fn drawn_bars(table: &Table, widths: &[Option<usize>]) -> bool {
    let mut columns = widths.iter().zip(&table.columns);
    columns.any(|(w, c)| w.is_some() && c.picture)
}

/// Returns a cell with its clipped text.
fn clipped(cell: &Text, clip: &str) -> Text {
    if cell.plain_text() == clip {
        return cell.clone();
    }
    let tone = cell.spans.first().map_or(Tone::Plain, |(tone, _)| *tone);
    Text::new().with(tone, clip)
}

/// Wraps a text to lines of at most `columns`, at blanks but not between a number and its unit; a longer word is broken anywhere.
fn wrap(text: &Text, columns: usize) -> Vec<Text> {
    let mut lines = vec![Text::new()];
    let mut used = 0;
    for (tone, piece) in &text.spans {
        for word in words(piece) {
            let mut word = word.as_str();
            let mut wide = fit::width(word.trim_end());
            if used > 0 && used + wide > columns {
                lines.push(Text::new());
                used = 0;
            }
            while wide > columns {
                let head = fit::take(word.chars(), columns);
                if head.is_empty() {
                    break;
                }
                word = &word[head.len()..];
                wide = wide.saturating_sub(fit::width(&head));
                lines.last_mut().expect("never empty").push(*tone, head);
                lines.push(Text::new());
            }
            used += fit::width(word);
            lines.last_mut().expect("never empty").push(*tone, word);
        }
    }
    lines
}

/// Splits a text into words, each with the blanks behind it; a number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 12] = [
        "ns", "µs", "us", "ms", "s", "%", "B", "KiB", "MiB", "GiB", "TiB", "×",
    ];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '%' && c != '×');
        let after_number = words.last().is_some_and(|last| {
            let last = last.trim_end();
            last.ends_with(|c: char| c.is_ascii_digit())
        });
        match words.last_mut() {
            Some(last) if after_number && UNITS.contains(&bare) => last.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Document {
        let mut table = Table::new([
            Column::name("kernel"),
            Column::number("count"),
            Column::number("max").spare(1),
        ]);
        let name = "a_kernel_with_a_name_that_no_terminal_of_80_columns_holds_whole";
        table
            .row([name.into(), "1,000".into(), "12.3 µs".into()])
            .note = Some("first remark".into());
        table.row(["b".into(), "2".into(), "1.00 ms".into()]);
        Document {
            blocks: vec![Block::Table(table)],
        }
    }

    fn page(columns: usize, colour: bool) -> String {
        Terminal { columns, colour }.draw(&table())
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [24, 40, 60, 80, 120] {
            let page = page(columns, false);
            for line in page.lines().filter(|l| !l.contains("also max")) {
                assert!(fit::width(line) <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn a_column_that_has_no_room_is_named() {
        let narrow = page(32, false);
        assert!(narrow.contains("also max"), "{narrow}");
        assert!(!page(60, false).contains("also max"));
    }

    #[test]
    fn colour_changes_no_text() {
        let (plain, coloured) = (page(80, false), page(80, true));
        assert_ne!(plain, coloured);
        let mut bare = String::new();
        for piece in coloured.split("\x1b[") {
            let code = piece
                .find('m')
                .filter(|i| piece[..*i].bytes().all(|b| b.is_ascii_digit() || b == b';'));
            bare.push_str(code.map_or(piece, |i| &piece[i + 1..]));
        }
        assert_eq!(bare, plain);
    }

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&Text::from(text), columns);
        lines.iter().map(Text::plain_text).collect()
    }

    #[test]
    fn words_wrap_and_a_long_one_is_broken() {
        let lines = wrapped("ab cd efghijkl", 5);
        assert_eq!(lines, ["ab cd ", "efghi", "jkl"]);
        let lines = wrapped("行列の積", 5);
        assert_eq!(lines, ["行列", "の積"], "by columns, not by characters");
    }

    #[test]
    fn a_number_is_not_parted_from_its_unit() {
        let lines = wrapped("it took 1.21 µs, or 3 %.", 11);
        assert_eq!(lines, ["it took ", "1.21 µs, or ", "3 %."]);
    }
}
