//! Writes answers as a table for people. The first rows determine the widths; later, longer cells stick out.

use super::cells::Cells;
use super::writer::Writer;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::FormatOptions;
use gapscope_companion::steers;
use gapscope_timeline::quantity::count;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of rows that are examined for widths and decimals before the first is written.
const MEASURED_ROWS: usize = 1000;
/// The most characters of a cell, beyond which it is cut; CSV, JSON and Parquet have the whole text.
const MAX_CELL_CHARACTERS: usize = 100;
/// Significant digits of the largest fraction in a column; CSV, JSON and Parquet have all digits.
const SIGNIFICANT_DIGITS: i32 = 3;
/// The fewest decimals (digits behind the point) of a column, unless all of its values are below [`SMALL`].
const MIN_DECIMALS: i32 = 2;
/// The most decimals, likewise.
const MAX_DECIMALS: i32 = 3;
/// Columns whose values are all below this number get the decimals that their digits need.
const SMALL: f64 = 0.001;
/// Columns with larger fractions, or which need more decimals than [`MAX_PLAIN_DECIMALS`], are not rounded.
const MAX_PLAIN: f64 = 1e15;
/// The most decimals with which a column is rounded.
const MAX_PLAIN_DECIMALS: i32 = 9;
/// Columns of counts, besides those whose names end in `_count`.
const COUNT_COLUMNS: &[&str] = &[
    "count",
    "n",
    "calls",
    "command_buffers",
    "dispatches",
    "kernels",
    "launches",
    "pieces",
    "samples",
    "submissions",
    "transfers",
];

/// Writes an answer as a table. The first rows wait until the widths of columns are settled.
pub(super) struct TableWriter<'a> {
    out: &'a mut (dyn Write + Send),
    columns: Vec<Column>,
    /// The first rows, not yet rounded, until the widths are settled.
    waiting: Vec<Vec<String>>,
    /// True once widths and decimals are known, and the header is written.
    settled: bool,
    /// True for the plans of `EXPLAIN`, which are whole pages.
    is_plan: bool,
}

/// A column of the written table.
struct Column {
    name: String,
    kind: Kind,
    /// True for numbers with thousands separators.
    is_quantity: bool,
    /// Decimals of a column of fractions, once they are known.
    decimals: Option<usize>,
    /// The width of the widest cell of the first rows or the name, in places of a terminal.
    width: usize,
}

/// The kind of a column, which determines alignment and rounding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// Aligned to the right.
    Number,
    /// Aligned to the right and rounded.
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
                    is_quantity: is_quantity(&name),
                    decimals: None,
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

    /// Determines the decimals and widths, and writes the header and the waiting rows. Does nothing the second time.
    fn settle(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for (place, column) in self.columns.iter_mut().enumerate() {
            if column.kind == Kind::Fraction {
                column.decimals = decimals(waiting.iter().map(|row| row[place].as_str()));
            }
            for row in &mut waiting {
                row[place] = column.text(std::mem::take(&mut row[place]));
                column.width = column.width.max(row[place].width());
            }
        }
        let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        self.line(&names)?;
        let rules = self.columns.iter().map(|column| "─".repeat(column.width));
        writeln!(self.out, "{}", rules.collect::<Vec<_>>().join("  "))?;
        for row in waiting {
            self.line(&row)?;
        }
        Ok(())
    }

    /// Writes a line of cells, aligned by their columns.
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
        let mut cells = Cells::new(batch, &options)?;
        for row in 0..batch.num_rows() {
            if self.is_plan {
                let kind = cells.text(row, 0)?.unwrap_or_default().to_owned();
                let plan = cells.text(row, 1)?.unwrap_or_default();
                writeln!(self.out, "{kind}:\n{}\n", plan.trim_end())?;
                continue;
            }
            let texts = (0..batch.num_columns())
                .map(|column| Ok(cells.text(row, column)?.map_or("NULL".to_owned(), visible)));
            let texts = texts.collect::<io::Result<Vec<_>>>()?;
            if self.settled {
                let columns = self.columns.iter().zip(texts);
                let texts: Vec<String> = columns.map(|(column, text)| column.text(text)).collect();
                self.line(&texts)?;
                continue;
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

impl Column {
    /// Returns the cell's final text: rounded, and with thousands separators where the column has them.
    fn text(&self, value: String) -> String {
        let text = match self.kind {
            Kind::Text => return value,
            Kind::Number => value,
            Kind::Fraction => rounded(value, self.decimals),
        };
        match self.is_quantity {
            true => separated(text),
            false => text,
        }
    }
}

/// Returns true for times, bytes and counts, also when they are aggregated: `sum(t.duration_ns)`. Other integers may
/// be ids.
fn is_quantity(column: &str) -> bool {
    let inner = column.trim_end_matches(')');
    ["_ns", "_bytes", "_count"]
        .iter()
        .any(|unit| inner.ends_with(unit))
        || inner == "bytes"
        || inner.ends_with(".bytes")
        || inner.ends_with("(bytes")
        || column.starts_with("count(")
        || COUNT_COLUMNS.contains(&column)
}

/// Returns the decimals for all fractions of a column: enough for [`SIGNIFICANT_DIGITS`] significant digits of the
/// largest, and no more than the values have; `None` where the values are too small or too large.
fn decimals<'a>(values: impl Iterator<Item = &'a str>) -> Option<usize> {
    let (mut most, mut given) = (0.0, 1);
    for text in values {
        let Some(value) = text.parse().ok().map(f64::abs).filter(|v| v.is_finite()) else {
            continue;
        };
        most = f64::max(most, value);
        let behind = text.split_once('.').map_or(0, |(_, behind)| behind.len());
        given = given.max(behind as i32);
    }
    if most == 0.0 {
        return Some(1);
    }
    let wanted = SIGNIFICANT_DIGITS - 1 - most.log10().floor() as i32;
    let decimals = match most < SMALL {
        true => wanted,
        false => wanted.clamp(MIN_DECIMALS, MAX_DECIMALS).min(given),
    };
    (most < MAX_PLAIN && decimals <= MAX_PLAIN_DECIMALS).then_some(decimals as usize)
}

/// Rounds a fraction to some decimals; without decimals it stays as it is. A value other than 0 never reads as 0:
/// `<0.01` stands for a smaller one.
fn rounded(number: String, decimals: Option<usize>) -> String {
    let Some(value) = number.parse::<f64>().ok().filter(|value| value.is_finite()) else {
        return number;
    };
    let Some(decimals) = decimals.filter(|_| value.abs() < MAX_PLAIN) else {
        return number;
    };
    let least = 10f64.powi(-(decimals as i32));
    match value {
        small if small > 0.0 && small < least / 2.0 => format!("<{least:.decimals$}"),
        small if small < 0.0 && small > -least / 2.0 => format!(">-{least:.decimals$}"),
        value => format!("{value:.decimals$}"),
    }
}

/// Adds thousands separators to the integer part of a plain number.
fn separated(number: String) -> String {
    let sign = number.len() - number.trim_start_matches(['-', '<', '>']).len();
    let end = number.find('.').unwrap_or(number.len());
    match number[sign..end].parse() {
        Ok(whole) => format!("{}{}{}", &number[..sign], count(whole), &number[end..]),
        Err(_) => number,
    }
}

/// Makes a text harmless to a terminal, on one line, and cuts it if it is long.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MAX_CELL_CHARACTERS {
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

    fn column(values: &[&str]) -> Vec<String> {
        let decimals = decimals(values.iter().copied());
        let shown = values.iter();
        shown
            .map(|value| rounded((*value).to_owned(), decimals))
            .collect()
    }

    #[test]
    fn a_column_of_fractions_has_one_number_of_decimals() {
        for (values, shown) in [
            (
                &["99.31141", "130.0157", "0.2"][..],
                &["99.31", "130.02", "0.20"][..],
            ),
            (
                &["40.0", "-33.99999999999999", "NULL"],
                &["40.00", "-34.00", "NULL"],
            ),
            (&["0.1234567", "0.05"], &["0.123", "0.050"]),
            (&["0.012345", "0.0"], &["0.012", "0.000"]),
            (
                &["0.00012345678901", "0.0000001"],
                &["0.000123", "<0.000001"],
            ),
            (&["1.2345678901e-12"], &["1.2345678901e-12"]),
            (&["1e300", "NaN", "inf"], &["1e300", "NaN", "inf"]),
            (&["2186853.9", "1.25"], &["2186853.90", "1.25"]),
        ] {
            assert_eq!(column(values), shown);
        }
    }

    #[test]
    fn amounts_have_separators_and_names_of_things_have_none() {
        for name in [
            "duration_ns",
            "sum(dispatches.duration_ns)",
            "size_bytes",
            "bytes",
            "max(transfers.bytes)",
            "dispatch_count",
            "count(*)",
            "n",
        ] {
            assert!(is_quantity(name), "{name}");
        }
        for name in [
            "id",
            "row",
            "line",
            "pid",
            "thread",
            "command_buffer",
            "a_ms",
            "max(id)",
        ] {
            assert!(!is_quantity(name), "{name}");
        }
        for (number, shown) in [
            ("492521621", "492,521,621"),
            ("-1234", "-1,234"),
            ("999", "999"),
            ("2186854.25", "2,186,854.25"),
            ("1.2e-12", "1.2e-12"),
            ("NULL", "NULL"),
            ("<1", "<1"),
        ] {
            assert_eq!(separated(number.to_owned()), shown);
        }
    }

    #[test]
    fn a_text_does_nothing_to_a_terminal() {
        assert_eq!(
            visible("a\nb\u{1b}[31mc\u{202e}"),
            "a\\nb\\u{1b}[31mc\\u{202e}"
        );
        assert_eq!(visible("größer"), "größer");
        assert_eq!(
            visible(&"x".repeat(10_000_000)).chars().count(),
            MAX_CELL_CHARACTERS + 1
        );
    }
}
