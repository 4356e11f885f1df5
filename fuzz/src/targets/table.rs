//! Reads the Parquet file of one table, in a trace that is whole otherwise. The first byte of an input says which
//! table it is, and the byte's highest bit whether all is read as `gapscope report` reads it, or that table alone.

use super::fixture;
use crate::bytes::MutateBytes;
use crate::outcome::{self, Choice};
use crate::{Target, scratch};
use fastrand::Rng;
use gapscope_analysis::Findings;
use gapscope_timeline::Timeline;
use gapscope_trace::tables::*;
use gapscope_trace::{DispatchPieces, Selection, Trace, UnreadTable, for_each_table, read};
use std::cell::OnceCell;
use std::path::Path;
use tempfile::TempDir;

/// The target.
pub const TARGET: Target = Target {
    name: "table",
    read: read_table,
    mutate,
};

thread_local! {
    /// A folder with the manifest alone, and one with all tables of the fixture.
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    static WHOLE: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Returns the names of the tables in the order of the first byte.
pub fn names() -> Vec<&'static str> {
    let mut names = Vec::new();
    macro_rules! name {
        ($($field:ident: $table:ty,)+) => { $(names.push(<$table>::NAME);)+ };
    }
    for_each_table!(name);
    names
}

/// The bytes at both ends of a Parquet file.
const MARK: &[u8] = b"PAR1";

/// Writes the input as the file of its table, shows the trace in the outputs of its [`Choice`], and puts all back.
fn read_table(input: &[u8]) {
    let Some((first, file)) = input.split_first() else {
        return;
    };
    let choice = Choice::from_input(input);
    let names = names();
    let table = names[usize::from(first & 0x7f) % names.len()];
    let name = format!("{table}.parquet");
    if first & 0x80 != 0 {
        WHOLE.with(|folder| {
            let folder = folder.get_or_init(copy).path();
            scratch::file(folder, &name, file);
            show_as_report(folder, choice);
            put(folder, &name);
        });
        return;
    }
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(manifest_alone).path();
        let path = scratch::file(folder, &name, file);
        show_alone(folder, table, choice);
        std::fs::remove_file(path).expect("the table can be removed");
    });
}

/// Makes a folder with the fixture's manifest.
fn manifest_alone() -> TempDir {
    let folder = scratch::folder();
    let manifest = fixture::folder().join("trace.json");
    std::fs::copy(manifest, folder.path().join("trace.json")).expect("the manifest can be copied");
    folder
}

fn copy() -> TempDir {
    let folder = manifest_alone();
    for table in names() {
        put(folder.path(), &format!("{table}.parquet"));
    }
    folder
}

/// Writes the fixture's table, which may be absent: its version of the format allows that.
fn put(folder: &Path, name: &str) {
    let (original, here) = (fixture::folder().join(name), folder.join(name));
    match original.exists() {
        true => drop(std::fs::copy(original, here).expect("a table can be copied")),
        false if here.exists() => std::fs::remove_file(here).expect("a table can be removed"),
        false => {}
    }
}

/// Reads one table; the other tables are the fixture's.
fn show_alone(folder: &Path, table: &str, choice: Choice) {
    let (trace, diagnostics) =
        read(folder, &Selection::all()).expect("a trace is read whatever its tables hold");
    let sizes = gapscope_trace::table_sizes(folder, trace.manifest.format_version);
    let sizes = sizes.expect("the folder can be read");
    let size = sizes.iter().find(|size| size.table == table);
    let said = size.and_then(|size| size.rows).unwrap_or(0);
    let mut whole = fixture::trace().clone();
    macro_rules! put {
        ($($field:ident: $table:ty,)+) => {$(
            if <$table>::NAME == table {
                let rows = trace.tables.$field.len() as u64;
                assert!(rows <= said, "{rows} rows of {table} are read, and its file says {said}");
                whole.tables.$field = trace.tables.$field;
            }
        )+};
    }
    for_each_table!(put);
    let of_table = |unread: &UnreadTable| unread.table == table;
    whole.unread = trace.unread.into_iter().filter(of_table).collect();
    let remarks: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    if choice.one_of(8, 0) == 0 {
        outcome::show_info(&whole, &sizes, &remarks);
    } else if said > 0 || choice.one_of(8, 6) == 0 {
        // A trace of which nothing can be read is shown quickly.
        outcome::show(&whole, &remarks, choice);
    }
}

/// Reads the tables as the report does: dispatches in pieces, up to the first that cannot be read.
fn show_as_report(folder: &Path, choice: Choice) {
    // The comparisons of ranks and of labels read these tables as well.
    let selection = Findings::selection().with::<Markers>();
    let remarks = |diagnostics: &[gapscope_trace::Diagnostic]| -> Vec<String> {
        diagnostics.iter().map(ToString::to_string).collect()
    };
    let opened = |selection: &Selection| -> (Trace, Vec<String>) {
        let (trace, diagnostics) =
            read(folder, selection).expect("a trace is read whatever its tables hold");
        (trace, remarks(&diagnostics))
    };
    if let Some(pieces) = DispatchPieces::open(folder, &selection) {
        let (trace, said) = opened(&selection.clone().without::<Dispatches>());
        let timeline = Timeline::from_pieces(&trace, None, pieces.rows(), |take| {
            pieces.each(&trace, take)
        });
        if let Some((timeline, unknown)) = timeline {
            let said = [said, remarks(&unknown)].concat();
            return outcome::show_timeline(&timeline, &said, choice);
        }
    }
    let (trace, said) = opened(&selection);
    outcome::show_timeline(&Timeline::new(&trace), &said, choice);
}

/// Changes the table's number, its pages or its footer; other inputs at any byte.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    let choice = rng.u8(0..32);
    let Some(parts) = Parts::parse(input).filter(|_| choice > 1) else {
        return mutate_bytes(input, rng);
    };
    let Parts {
        mut first,
        mut pages,
        mut footer,
    } = parts;
    match choice {
        2 => first ^= 0x80,
        3 => first = first & 0x80 | rng.u8(..) & 0x7f,
        // The footer has the offsets of pages, so that their bytes stay at their places.
        4..16 if !pages.is_empty() => {
            let length = pages.len();
            let at = rng.usize(0..length);
            let end = (at + rng.usize(1..=64)).min(length);
            let mut part = pages[at..end].to_vec();
            mutate_bytes(&mut part, rng);
            match rng.u8(0..8) {
                0 => drop(pages.splice(at..end, part)),
                _ => {
                    let rest = pages[at..].iter_mut();
                    rest.zip(part).for_each(|(old, new)| *old = new);
                }
            }
        }
        _ if !footer.is_empty() => {
            let at = rng.usize(0..footer.len());
            let end = (at + rng.usize(1..=32)).min(footer.len());
            let mut part = footer[at..end].to_vec();
            mutate_bytes(&mut part, rng);
            drop(footer.splice(at..end, part));
        }
        _ => {}
    }
    *input = Parts {
        first,
        pages,
        footer,
    }
    .input();
}

/// An input whose file has the structure of Parquet.
struct Parts {
    /// The byte before the file, see above.
    first: u8,
    /// The bytes between the mark at the start and the footer.
    pages: Vec<u8>,
    footer: Vec<u8>,
}

impl Parts {
    /// Takes an input apart; `None` where it is no Parquet file.
    fn parse(input: &[u8]) -> Option<Parts> {
        let (first, file) = input.split_first()?;
        let file = file.strip_prefix(MARK)?.strip_suffix(MARK)?;
        let (file, length) = file.split_last_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (pages, footer) = file.split_at_checked(file.len().checked_sub(length)?)?;
        Some(Parts {
            first: *first,
            pages: pages.to_vec(),
            footer: footer.to_vec(),
        })
    }

    fn input(&self) -> Vec<u8> {
        let length = self.footer.len() as u32;
        let mut input = vec![self.first];
        for part in [MARK, &self.pages, &self.footer, &length.to_le_bytes(), MARK] {
            input.extend(part);
        }
        input
    }
}
