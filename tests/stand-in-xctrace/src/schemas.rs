//! The tables of a Metal System Trace (Instruments 27.2) and their columns, from the text of `schemas.txt`: the name of
//! each table, and below it a line for each column with its mnemonic, name and engineering type.

use std::sync::LazyLock;

/// The mnemonic, name and engineering type of each column of a table.
type Columns = Vec<[&'static str; 3]>;

/// The tables that the stand-in exports: the name of each, and its columns.
pub static SCHEMAS: LazyLock<Vec<(&str, Columns)>> = LazyLock::new(|| {
    let mut schemas: Vec<(&str, Columns)> = Vec::new();
    for line in include_str!("schemas.txt").lines() {
        match (line.strip_prefix("  "), schemas.last_mut()) {
            (Some(column), Some((_, columns))) => {
                let mut fields = column.split(" | ");
                columns.push([(); 3].map(|()| fields.next().unwrap_or_default()));
            }
            _ => schemas.push((line, Vec::new())),
        }
    }
    schemas
});
