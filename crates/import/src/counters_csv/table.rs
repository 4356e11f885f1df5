//! Reads comma-separated records, and finds the columns of Xcode's table by their titles.

use gapscope_trace::tables::OpaqueWorkKind;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

/// The maximum size of a record. A longer record is cut there.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// The records of a file.
pub(super) struct Records<R> {
    from: R,
    bytes: u64,
}

impl<R: BufRead> Records<R> {
    pub fn new(from: R) -> Records<R> {
        Records { from, bytes: 0 }
    }

    /// Returns the number of bytes that were read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the cells of the next record; `None` at the end of the file. A line break in quotes belongs to its cell.
    pub fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        let mut record = Vec::new();
        loop {
            let most = MAX_RECORD_BYTES.saturating_sub(record.len() as u64);
            let read = (&mut self.from).take(most).read_until(b'\n', &mut record)?;
            self.bytes += read as u64;
            if record.is_empty() {
                return Ok(None);
            }
            let quotes = record.iter().filter(|byte| **byte == b'"').count();
            if read == 0 || quotes % 2 == 0 {
                break;
            }
        }
        let text = String::from_utf8_lossy(&record);
        let text = text.trim_start_matches('\u{feff}');
        Ok(Some(cells(text.trim_end_matches(['\n', '\r']))))
    }
}

/// Splits a record at commas outside quotes. Two quotes in a quoted cell are one.
fn cells(record: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut characters = record.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('"');
                }
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(other);
                }
            }
        }
    }
    cells
}

/// The columns of the table by meaning.
pub(super) struct Columns {
    /// The column of the command buffer's label; `None` if the table has none.
    command_buffer: Option<usize>,
    /// The columns of labels, outermost first.
    labels: Vec<usize>,
    /// The columns of counters with their names; a repeated name gets a number.
    counters: Vec<(usize, String)>,
}

impl Columns {
    /// Finds the columns by the titles in the first record.
    pub fn from_header(header: &[String]) -> Columns {
        let find = |name: &str| header.iter().position(|column| column.trim() == name);
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let known = [
            "Index",
            "Encoder FunctionIndex",
            "CommandBuffer Label",
            "Debug Group",
            "Encoder Label",
            "",
        ];
        let columns = header.iter().enumerate();
        let counters = columns.filter(|(_, name)| !known.contains(&name.trim()));
        Columns {
            command_buffer: find("CommandBuffer Label"),
            labels: ["Debug Group", "Encoder Label"]
                .into_iter()
                .filter_map(find)
                .collect(),
            counters: counters
                .map(|(column, name)| {
                    let name = name.trim();
                    let times = seen.entry(name).or_default();
                    *times += 1;
                    let name = match *times {
                        1 => name.to_owned(),
                        times => format!("{name} ({times})"),
                    };
                    (column, name)
                })
                .collect(),
        }
    }

    /// Returns the label of a row's command buffer; a fixed text where it has none.
    pub fn command_buffer<'r>(&self, record: &'r [String]) -> &'r str {
        let cell = self.command_buffer.and_then(|column| record.get(column));
        cell.map(|cell| cell.trim())
            .filter(|cell| !cell.is_empty())
            .unwrap_or("command buffer without a label")
    }

    /// Returns the labels of a row inside its command buffer, outermost first.
    pub fn labels<'r>(&self, record: &'r [String]) -> impl Iterator<Item = &'r str> {
        let cells = self.labels.iter().filter_map(|column| record.get(*column));
        cells
            .map(|cell| cell.trim())
            .filter(|cell| !cell.is_empty())
    }

    /// Returns the kind of an encoder (a series of commands in a command buffer) from the invocations that it
    /// counted.
    pub fn kind(&self, record: &[String]) -> OpaqueWorkKind {
        let above_zero = |names: &[&str]| {
            let mut counters = self.counters.iter();
            counters.any(|(column, name)| {
                let value = record
                    .get(*column)
                    .and_then(|cell| cell.trim().parse::<f64>().ok());
                names.contains(&name.as_str()) && value.is_some_and(|value| value > 0.0)
            })
        };
        if above_zero(&["Kernel Invocations", "CS Invocations"]) {
            OpaqueWorkKind::ComputePass
        } else if above_zero(&["VS Invocations", "FS Invocations"]) {
            OpaqueWorkKind::RenderPass
        } else {
            OpaqueWorkKind::Other
        }
    }

    /// Returns all values of a row, such as `ALU Utilization=1.59, Kernel Invocations=4096`; `None` where all are
    /// empty.
    pub fn values(&self, record: &[String]) -> Option<String> {
        let values = self.counters.iter().filter_map(|(column, name)| {
            let value = record.get(*column)?.trim();
            (!value.is_empty()).then(|| format!("{name}={value}"))
        });
        let values: Vec<String> = values.collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_may_be_quoted() {
        assert_eq!(cells("1,\"a, \"\"b\"\"\",,c"), ["1", "a, \"b\"", "", "c"]);
        assert_eq!(cells(""), [""]);
        let mut records = Records::new("a,\"b\nc\"\r\nd,e".as_bytes());
        assert_eq!(records.next().unwrap().unwrap(), ["a", "b\nc"]);
        assert_eq!(records.next().unwrap().unwrap(), ["d", "e"]);
        assert_eq!(records.next().unwrap(), None);
    }
}
