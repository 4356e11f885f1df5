//! Builds SQLite databases with planted rows by the documented file format.

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// A table: its name, its columns and its rows.
type PlantedTable = (String, Vec<String>, Vec<Vec<Cell>>);

/// Builds a database from a text. A line `NAME COLUMN COLUMN …` begins a table, and each line `[…]` of JSON is a row
/// of it. A blob is `{"blob": LENGTH}`.
pub fn database(text: &str) -> Vec<u8> {
    let mut tables: Vec<PlantedTable> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (
            serde_json::from_str::<Vec<serde_json::Value>>(line),
            tables.last_mut(),
        ) {
            (Ok(row), Some((_, _, rows))) => rows.push(row.iter().map(cell).collect()),
            _ => {
                let mut words = line.split_whitespace().map(str::to_owned);
                let name = words.next().unwrap_or_default();
                tables.push((name, words.collect(), Vec::new()));
            }
        }
    }
    write(&tables)
}

fn cell(value: &serde_json::Value) -> Cell {
    use serde_json::Value;
    match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Integer(i64::from(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cell::Integer(whole),
            None => Cell::Real(number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => Cell::Text(text.clone()),
        other => {
            let length = other.get("blob").and_then(Value::as_u64).unwrap_or(0);
            Cell::Blob(vec![7; length.min(1000) as usize])
        }
    }
}

const PAGE_BYTES: usize = 4096;
/// The maximum size of a row. Longer rows would need overflow pages, and their last values are left out.
const MAX_ROW_BYTES: usize = 2000;

fn write(tables: &[PlantedTable]) -> Vec<u8> {
    let mut pages = vec![vec![0; PAGE_BYTES]];
    let mut schema = Vec::new();
    for (name, columns, rows) in tables {
        let root = tree(rows, &mut pages);
        let columns: Vec<String> = columns
            .iter()
            .map(|column| format!("\"{}\"", column.replace('"', "")))
            .collect();
        let sql = format!(
            "CREATE TABLE \"{}\" ({})",
            name.replace('"', ""),
            columns.join(", ")
        );
        schema.push(vec![
            Cell::Text("table".into()),
            Cell::Text(name.clone()),
            Cell::Text(name.clone()),
            Cell::Integer(i64::from(root)),
            Cell::Text(sql),
        ]);
    }
    // Tables whose entry does not fit on the first page are left out.
    let mut first = vec![0; PAGE_BYTES];
    leaf(&mut first, 100, &schema, 1);
    first[..16].copy_from_slice(b"SQLite format 3\0");
    first[16..18].copy_from_slice(&(PAGE_BYTES as u16).to_be_bytes());
    first[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    first[28..32].copy_from_slice(&(pages.len() as u32).to_be_bytes());
    first[44..48].copy_from_slice(&4u32.to_be_bytes());
    first[56..60].copy_from_slice(&1u32.to_be_bytes());
    pages[0] = first;
    pages.concat()
}

/// Writes the pages of a table and returns the number of the first.
fn tree(rows: &[Vec<Cell>], pages: &mut Vec<Vec<u8>>) -> u32 {
    let (mut done, mut leaves) = (0, Vec::new());
    while done < rows.len() || leaves.is_empty() {
        let mut page = vec![0; PAGE_BYTES];
        done += leaf(&mut page, 0, &rows[done..], done as i64 + 1);
        pages.push(page);
        leaves.push((pages.len() as u32, done as i64));
    }
    if leaves.len() == 1 {
        return leaves[0].0;
    }
    let mut root = vec![0; PAGE_BYTES];
    let (last, others) = leaves.split_last().expect("there are several");
    root[0] = 5;
    root[3..5].copy_from_slice(&(others.len() as u16).to_be_bytes());
    root[8..12].copy_from_slice(&last.0.to_be_bytes());
    let mut end = PAGE_BYTES;
    for (at, (page, key)) in others.iter().enumerate() {
        let mut cell = page.to_be_bytes().to_vec();
        varint(*key as u64, &mut cell);
        end -= cell.len();
        root[end..end + cell.len()].copy_from_slice(&cell);
        root[12 + 2 * at..14 + 2 * at].copy_from_slice(&(end as u16).to_be_bytes());
    }
    pages.push(root);
    pages.len() as u32
}

/// Fills a page with the first rows and returns their number.
fn leaf(page: &mut [u8], header: usize, rows: &[Vec<Cell>], first_id: i64) -> usize {
    let mut end = page.len();
    let mut count = 0;
    for (row, id) in rows.iter().zip(first_id..) {
        let record = record(row);
        let mut cell = Vec::new();
        varint(record.len() as u64, &mut cell);
        varint(id as u64, &mut cell);
        cell.extend(record);
        let pointer = header + 8 + 2 * count;
        if pointer + 2 + cell.len() > end {
            break;
        }
        end -= cell.len();
        page[end..end + cell.len()].copy_from_slice(&cell);
        page[pointer..pointer + 2].copy_from_slice(&(end as u16).to_be_bytes());
        count += 1;
    }
    page[header] = 13;
    page[header + 3..header + 5].copy_from_slice(&(count as u16).to_be_bytes());
    page[header + 5..header + 7].copy_from_slice(&(end as u16).to_be_bytes());
    count
}

fn record(row: &[Cell]) -> Vec<u8> {
    let (mut types, mut body) = (Vec::new(), Vec::new());
    for cell in row {
        let (kind, bytes): (u64, Vec<u8>) = match cell {
            Cell::Null => (0, Vec::new()),
            Cell::Integer(0) => (8, Vec::new()),
            Cell::Integer(1) => (9, Vec::new()),
            Cell::Integer(value) => match (i8::try_from(*value), i32::try_from(*value)) {
                (Ok(small), _) => (1, small.to_be_bytes().to_vec()),
                (_, Ok(middle)) => (4, middle.to_be_bytes().to_vec()),
                _ => (6, value.to_be_bytes().to_vec()),
            },
            Cell::Real(value) => (7, value.to_be_bytes().to_vec()),
            Cell::Text(text) => (13 + 2 * text.len() as u64, text.as_bytes().to_vec()),
            Cell::Blob(bytes) => (12 + 2 * bytes.len() as u64, bytes.clone()),
        };
        if types.len() + body.len() + bytes.len() + 9 > MAX_ROW_BYTES {
            break;
        }
        varint(kind, &mut types);
        body.extend(bytes);
    }
    let mut record = Vec::new();
    // The header's length includes itself.
    let length = types.len() as u64 + 1;
    varint(if length < 128 { length } else { length + 1 }, &mut record);
    record.extend(types);
    record.extend(body);
    record
}

fn varint(number: u64, out: &mut Vec<u8>) {
    let bytes = (64 - number.leading_zeros()).div_ceil(7).max(1);
    if bytes > 8 {
        out.extend((0..8).map(|at| (number >> (57 - 7 * at)) as u8 | 0x80));
        out.push(number as u8);
        return;
    }
    for at in (0..bytes).rev() {
        let more = if at > 0 { 0x80 } else { 0 };
        out.push((number >> (7 * at)) as u8 & 0x7f | more);
    }
}
