//! Reads the tables of SQLite database files: a file goes in, and the rows of its tables come out.
//!
//! An import scans each table from its first row to its last and joins the tables itself, so that it needs no query
//! engine. This module reads the pages of tables by the documented [file format](https://sqlite.org/fileformat2.html)
//! and knows neither SQL, indexes, views nor triggers. It executes nothing of the file and writes nothing beside it.
//! A scan reads each page at most once, so that a hostile file costs no more than its size. [`Damage`] counts what
//! cannot be read.

mod btree;
mod damage;
mod pages;
mod record;
mod schema;

pub(crate) use damage::Damage;
pub(crate) use record::Row;

use crate::Error;
use pages::{MAGIC, Pages};
use schema::Columns;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The first bytes of the journal of an unfinished transaction.
const HOT_JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// The size of the header of a write-ahead log (WAL). A log of this size holds no changes.
const WAL_HEADER: u64 = 32;

/// A table of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableFacts {
    pub name: String,
    columns: Columns,
    /// The number of the first page of the table's tree.
    root: u32,
}

/// A database that was opened for scanning.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub path: PathBuf,
    /// The size of the file.
    pub bytes: u64,
    /// The tables in the order in which they were created.
    pub tables: Vec<TableFacts>,
    /// Damage to the list of tables, and pages that the file lacks.
    pub damage: Damage,
}

/// Returns true if a file begins with the first bytes of a database.
pub(crate) fn is_database(path: &Path) -> bool {
    let mut start = [0; 16];
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == *MAGIC
}

impl Database {
    /// Opens a database and lists its tables.
    ///
    /// # Errors
    /// The file cannot be read, is no database, or has changes beside it that are not in it yet.
    pub fn open(path: &Path) -> Result<Database, Error> {
        refuse_changes_beside(path)?;
        Database::list(path)
    }

    /// Lists the tables of a database, without regard to changes in files beside it.
    ///
    /// # Errors
    /// The file cannot be read, or is no database.
    pub fn list(path: &Path) -> Result<Database, Error> {
        let mut pages = Pages::open(path)?;
        let mut tables = Vec::new();
        let mut damage = Damage {
            pages: pages.missing(),
            rows: 0,
        };
        let wanted = Columns::for_schema().wanted(&["type", "name", "rootpage", "sql"]);
        damage.add(btree::scan(&mut pages, 1, &wanted, &mut |row| {
            let (Some(kind), Some(name)) = (row.text(0), row.text(1)) else {
                return;
            };
            let root = row.integer(2).and_then(|root| u32::try_from(root).ok());
            if let (b"table", Some(root), Some(sql)) = (kind, root.filter(|r| *r > 0), row.text(3))
                && let Some(columns) = Columns::parse(&String::from_utf8_lossy(sql))
            {
                let name = String::from_utf8_lossy(name).into_owned();
                tables.push(TableFacts {
                    name,
                    columns,
                    root,
                });
            }
        }));
        Ok(Database {
            path: path.to_owned(),
            bytes: pages.file_bytes(),
            tables,
            damage,
        })
    }

    /// Returns the table with a name; `None` if the database has no such table.
    pub fn table(&self, name: &str) -> Option<&TableFacts> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Counts the rows of a table.
    ///
    /// # Errors
    /// The file can no longer be opened.
    pub fn count(&self, table: &TableFacts) -> Result<u64, Error> {
        let mut pages = Pages::open(&self.path)?;
        Ok(btree::count(&mut pages, table.root))
    }
}

/// Passes each row of a table to `take` in the order of row ids, with the values of `columns` in their order, and
/// returns the damage that it met. A column that the table lacks is null in all rows. At most [`record::MAX_VALUES`]
/// columns can be read.
///
/// # Errors
/// The file can no longer be opened.
pub(crate) fn scan(
    path: &Path,
    table: &TableFacts,
    columns: &[&str],
    mut take: impl FnMut(&Row),
) -> Result<Damage, Error> {
    let mut pages = Pages::open(path)?;
    let wanted = table.columns.wanted(columns);
    Ok(btree::scan(&mut pages, table.root, &wanted, &mut take))
}

/// Returns an error if the log or journal beside a database holds changes, because an import would miss them
/// silently.
fn refuse_changes_beside(path: &Path) -> Result<(), Error> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let log = std::fs::metadata(beside("-wal")).map_or(0, |file| file.len());
    if log > WAL_HEADER {
        return Err(Error::ToolOnly {
            path: path.to_owned(),
            form: "a database with changes beside it, in its -wal file: close what writes it, or run `sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'`, and import it again",
        });
    }
    let mut start = [0; 8];
    let journal = File::open(beside("-journal"));
    if journal.is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == HOT_JOURNAL {
        return Err(Error::ToolOnly {
            path: path.to_owned(),
            form: "a database in the middle of a change, as the -journal file beside it says: run `sqlite3 FILE 'PRAGMA integrity_check'`, which takes the change back, and import it again",
        });
    }
    Ok(())
}
