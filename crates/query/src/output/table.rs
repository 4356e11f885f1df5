//! A table for people. The first rows settle the widths; later ones that need more stand out.

use super::Writer;
use super::cells::{Cells, is_number};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::FormatOptions;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Rows that are looked at before the first is written.
const MEASURED_ROWS: usize = 1000;
/// Characters of a cell; CSV, JSON and Parquet have the whole text.
const WIDEST: usize = 100;

pub(super) struct TableWriter<'a> {
    out: &'a mut (dyn Write + Send),
    columns: Vec<Column>,
    /// Rows that wait for the widths.
    waiting: Vec<Vec<String>>,
    settled: bool,
    /// The plans of `EXPLAIN` are whole pages.
    is_plan: bool,
}

struct Column {
    name: String,
    right: bool,
    width: usize,
}

impl<'a> TableWriter<'a> {
    pub fn new(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> TableWriter<'a> {
        let fields = schema.fields().iter();
        let columns: Vec<Column> = fields
            .map(|field| {
                let name = visible(field.name());
                Column {
                    width: name.width(),
                    name,
                    right: is_number(field.data_type()),
                }
            })
            .collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        TableWriter {
            out,
            is_plan: names == ["plan_type", "plan"],
            columns,
            waiting: Vec::new(),
            settled: false,
        }
    }

    fn settle(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        self.line(&names)?;
        let rules = self.columns.iter().map(|column| "─".repeat(column.width));
        writeln!(self.out, "{}", rules.collect::<Vec<_>>().join("  "))?;
        for row in std::mem::take(&mut self.waiting) {
            self.line(&row)?;
        }
        Ok(())
    }

    fn line(&mut self, cells: &[String]) -> io::Result<()> {
        let mut line = String::new();
        for (cell, column) in cells.iter().zip(&self.columns) {
            let space = " ".repeat(column.width.saturating_sub(cell.width()));
            let (before, after) = if column.right {
                (&*space, "")
            } else {
                ("", &*space)
            };
            line.push_str(before);
            line.push_str(cell);
            line.push_str(after);
            line.push_str("  ");
        }
        writeln!(self.out, "{}", line.trim_end())
    }
}

impl Writer for TableWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = FormatOptions::new();
        let mut cells = Cells::of(batch, &options)?;
        for row in 0..batch.num_rows() {
            if self.is_plan {
                let kind = cells.text(row, 0)?.unwrap_or_default().to_owned();
                let plan = cells.text(row, 1)?.unwrap_or_default();
                writeln!(self.out, "{kind}:\n{}\n", plan.trim_end())?;
                continue;
            }
            let texts = (0..batch.num_columns()).map(|column| {
                let text = cells.text(row, column)?;
                Ok(text.map_or_else(|| "NULL".to_owned(), visible))
            });
            let texts = texts.collect::<io::Result<Vec<_>>>()?;
            if self.settled {
                self.line(&texts)?;
                continue;
            }
            for (column, text) in self.columns.iter_mut().zip(&texts) {
                column.width = column.width.max(text.width());
            }
            self.waiting.push(texts);
            if self.waiting.len() == MEASURED_ROWS {
                self.settle()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if !self.is_plan && !self.columns.is_empty() {
            self.settle()?;
        }
        self.out.flush()
    }
}

/// A text on one line that does nothing to a terminal, cut if it is long.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == WIDEST {
            shown.push('…');
            break;
        }
        // Marks that turn the direction of writing have no width of their own, and hide what is there.
        let turns = matches!(character, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns || character.width().is_none() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_does_nothing_to_a_terminal() {
        assert_eq!(
            visible("a\nb\u{1b}[31mc\u{202e}"),
            "a\\nb\\u{1b}[31mc\\u{202e}"
        );
        assert_eq!(visible("größer"), "größer");
        assert_eq!(visible(&"x".repeat(10_000_000)).chars().count(), WIDEST + 1);
    }
}
