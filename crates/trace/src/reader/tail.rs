//! Reads an unfinished trace while it grows, by its parts (files that each hold some rows of a table).

use super::find_parts;
use super::load::{self, TableSource};
use crate::tables::*;
use crate::{Diagnostic, Error, for_each_table, part};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Reads the parts of an unfinished trace as they are closed, each once.
#[derive(Debug)]
pub struct Tail {
    folder: PathBuf,
    /// The greatest number of a part that was read, by table.
    read: HashMap<String, u32>,
}

impl Tail {
    /// Makes a tail of the trace `folder` whose first call of [`Self::read`] returns the parts closed until then.
    pub fn new(folder: &Path) -> Tail {
        Tail {
            folder: folder.to_owned(),
            read: HashMap::new(),
        }
    }

    /// Returns the rows of the parts that were closed since the last call, and diagnostics about them. Parts are
    /// closed table after table, so a row may refer to another one that comes with the next call.
    ///
    /// # Errors
    /// The folder cannot be read, or its rows take too much memory.
    pub fn read(&mut self) -> Result<(Tables, Vec<Diagnostic>), Error> {
        let mut fresh = find_parts(&self.folder)?;
        for (table, paths) in &mut fresh {
            let last = self.read.entry(table.clone()).or_insert(0);
            let before = *last;
            paths.retain(|path| {
                let name = path.path().file_name().and_then(|name| name.to_str());
                let number = name
                    .and_then(part::part_name)
                    .map_or(0, |(_, number)| number);
                *last = (*last).max(number);
                number > before
            });
        }
        let mut diagnostics = Vec::new();
        let mut tables = Tables::default();
        let mut sources = Vec::new();
        macro_rules! sources {
            ($($field:ident: $table:ty,)+) => {$(
                let name = <$table>::NAME;
                let paths = fresh.remove(name).unwrap_or_default();
                if !paths.is_empty() {
                    sources.push(TableSource::open(paths, &mut tables.$field, |_| true, &mut diagnostics));
                }
            )+};
        }
        for_each_table!(sources);
        load::load(sources, &mut diagnostics)?;
        Ok((tables, diagnostics))
    }
}

impl Tables {
    /// Moves all rows of `other` to the end of these tables.
    pub fn append(&mut self, other: &mut Tables) {
        macro_rules! append {
            ($($field:ident: $table:ty,)+) => {$( self.$field.append(&mut other.$field); )+};
        }
        for_each_table!(append);
    }

    /// Returns true without rows.
    pub fn is_empty(&self) -> bool {
        macro_rules! empty {
            ($($field:ident: $table:ty,)+) => { true $( && self.$field.is_empty() )+ };
        }
        for_each_table!(empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::TraceWriter;

    #[test]
    fn each_row_is_read_once_and_in_order() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("growing.gapscope");
        let mut writer = TraceWriter::create(&folder).unwrap();
        let mut tail = Tail::new(&folder);
        assert!(tail.read().unwrap().0.is_empty());
        let mut all = Tables::default();
        for round in 0..3 {
            for at in 0..5 {
                writer.tables_mut().dispatches.push(Dispatch {
                    position: round * 5 + at,
                    ..Dispatch::default()
                });
            }
            writer.checkpoint().unwrap();
            let (mut rows, diagnostics) = tail.read().unwrap();
            assert_eq!((rows.dispatches.len(), diagnostics.len()), (5, 0));
            all.append(&mut rows);
            assert!(tail.read().unwrap().0.is_empty());
        }
        assert_eq!(all.dispatches.position, (0..15).collect::<Vec<u32>>());
    }

    #[test]
    fn a_damaged_part_is_told_of_once() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("torn.gapscope");
        let mut writer = TraceWriter::create(&folder).unwrap();
        writer.tables_mut().dispatches.push(Dispatch::default());
        writer.checkpoint().unwrap();
        std::fs::write(
            folder.join("parts/dispatches-000002.parquet"),
            b"PAR1 no more",
        )
        .unwrap();
        let mut tail = Tail::new(&folder);
        let (rows, diagnostics) = tail.read().unwrap();
        assert_eq!((rows.dispatches.len(), diagnostics.len()), (1, 1));
        assert!(tail.read().unwrap().1.is_empty());
    }
}
