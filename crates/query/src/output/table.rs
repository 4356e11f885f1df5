//! A table for people. The first rows settle the widths; later ones that need more stand out.

use super::Writer;
use super::cells::Cells;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::FormatOptions;
use gapscope_command::steers;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Rows that are looked at before the first is written.
const MEASURED_ROWS: usize = 1000;
/// Characters of a cell; CSV, JSON and Parquet have the whole text.
const WIDEST: usize = 100;
/// Significant digits of a fraction; CSV, JSON and Parquet have all of them.
const DIGITS: usize = 7;

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
    kind: Kind,
    width: usize,
}

/// How a column's cells are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// On the right.
    Number,
    /// Also rounded.
    Fraction,
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
                    kind: match field.data_type() {
                        kind if kind.is_floating() => Kind::Fraction,
                        kind if kind.is_numeric() => Kind::Number,
                        _ => Kind::Text,
                    },
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
            let (before, after) = match column.kind {
                Kind::Text => ("", &*space),
                Kind::Number | Kind::Fraction => (&*space, ""),
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
                let kind = self.columns[column].kind;
                Ok(match cells.text(row, column)? {
                    None => "NULL".to_owned(),
                    Some(number) if kind == Kind::Fraction => rounded(number),
                    Some(text) => visible(text),
                })
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

/// A fraction in [`DIGITS`] significant digits.
fn rounded(number: &str) -> String {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    match number.parse::<f64>() {
        // Arrow writes what is very large or small with an exponent.
        Ok(value) if digits > DIGITS && !number.contains('e') => {
            let whole = value.abs().log10().floor() as isize + 1;
            let decimals = (DIGITS as isize - whole).max(1) as usize;
            let text = format!("{value:.decimals$}");
            let short = text.trim_end_matches('0');
            match short.ends_with('.') {
                true => format!("{short}0"),
                false => short.to_owned(),
            }
        }
        _ => number.to_owned(),
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
        if steers(character) || character.width().is_none() {
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
    fn fractions_have_the_digits_that_people_read() {
        for (number, shown) in [
            ("40.0", "40.0"),
            ("0.1234567", "0.1234567"),
            ("33.333333333333336", "33.33333"),
            ("-33.99999999999999", "-34.0"),
            ("0.00012345678901", "0.0001234568"),
            ("1234567890.1251", "1234567890.1"),
            ("1.2345678901e-12", "1.2345678901e-12"),
            ("NaN", "NaN"),
            ("inf", "inf"),
        ] {
            assert_eq!(rounded(number), shown);
        }
    }

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
