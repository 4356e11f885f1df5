//! Names kernels, and finds which kernels share a name and so a row of reports and tables.
//!
//! Kernels of one name and one code share a row, however they are specialised or launched. Where kernels of different code have
//! one name, a mark behind the name tells them apart: the words in which the whole names differ, or the hash of the code.

mod marks;

pub use gapscope_trace::kernel_names::readable;

use crate::thresholds::CODES_OF_A_NAME;
use gapscope_trace::kernel_names::{UNKNOWN, library_kernel_name};
use gapscope_trace::tables::{Kernels, NameSource, Table};
use gapscope_trace::text_column::TextColumn;
use marks::{KernelGroup, marks};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The kernels of a trace, grouped by the names that people read.
#[derive(Debug, Clone, Default)]
pub struct KernelNames {
    kernels: Vec<NamedKernel>,
    /// The index in `kernels` of the kernel in each row of the trace's table.
    by_row: Vec<u32>,
}

/// The kernels of a trace that share a name which no other kernels have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKernel {
    /// The name that people read.
    pub name: String,
    /// The whole name in the code; `None` where `name` is the whole name.
    pub full_name: Option<String>,
    /// The source of the name.
    pub name_source: NameSource,
    /// The number of different codes that share the row: 1, or more than [`CODES_OF_A_NAME`].
    pub codes: u32,
}

impl KernelNames {
    /// Names all kernels of a trace.
    pub fn new(table: &Kernels) -> KernelNames {
        let mut bases: HashMap<(&str, Option<&str>, NameSource), String> = HashMap::new();
        let mut groups: Vec<KernelGroup> = Vec::new();
        let mut by_code: HashMap<(String, Code), u32> = HashMap::new();
        let by_row: Vec<u32> = (0..table.len())
            .map(|row| {
                let name = &*table.name[row];
                let full = text(&table.full_name, row);
                let name_source = table.name_source.get(row).copied().unwrap_or_default();
                let base = bases
                    .entry((name, full, name_source))
                    .or_insert_with(|| base(name, full, name_source));
                let code = Code::new(table, row);
                let fresh = groups.len() as u32;
                let group = *by_code.entry((base.clone(), code)).or_insert(fresh);
                if group == fresh {
                    groups.push(KernelGroup {
                        base: base.clone(),
                        whole: full.unwrap_or(name),
                        hash: text(&table.source, row),
                        entry_point: text(&table.entry_point, row).unwrap_or_default(),
                        row,
                    });
                }
                group
            })
            .collect();
        name_groups(table, groups, by_row)
    }

    /// Returns all names, in the order in which the trace first has them.
    pub fn all(&self) -> &[NamedKernel] {
        &self.kernels
    }

    /// Returns the index in [`Self::all`] of the kernel in a row of the table.
    pub fn index_of_row(&self, row: usize) -> Option<usize> {
        self.by_row.get(row).map(|kernel| *kernel as usize)
    }

    /// Returns the name of the kernel in a row of the table.
    pub fn name(&self, row: usize) -> &str {
        self.named(row)
            .map_or(UNKNOWN, |kernel| kernel.name.as_str())
    }

    /// Returns the whole name of the kernel in a row of the table, where its name is a shorter one.
    pub fn full_name(&self, row: usize) -> Option<&str> {
        self.named(row)?.full_name.as_deref()
    }

    /// Returns the kernel in a row of the table; `None` for no such row.
    fn named(&self, row: usize) -> Option<&NamedKernel> {
        self.kernels.get(self.index_of_row(row)?)
    }
}

/// Returns the text of a row. A reader may have left out the column.
fn text(column: &TextColumn<Option<Arc<str>>>, row: usize) -> Option<&str> {
    column.get(row)?.as_deref()
}

/// Returns a kernel's name for people, still without a mark: names that people chose stay, mangled ones become
/// readable, and an empty one becomes [`UNKNOWN`].
fn base(name: &str, full: Option<&str>, source: NameSource) -> String {
    let known = match source {
        _ if name.trim().is_empty() => Some(UNKNOWN.to_owned()),
        // People chose such a name for reading.
        NameSource::NamesFile | NameSource::Label => None,
        // A library's name may be in it, but brackets need not be those of C++.
        NameSource::ObjectName | NameSource::SourceName => library_kernel_name(name),
        _ => Some(readable(name, full).into_owned()),
    };
    short(known.as_deref().unwrap_or(name))
}

/// The maximum number of characters in a name. Longer names are cut in their middle.
const MAX_NAME_CHARS: usize = 240;

/// Returns a name that tables can show: not too long, and without control characters and outer spaces.
fn short(name: &str) -> String {
    let plain = |c: char| if c.is_control() { '·' } else { c };
    if name.len() <= MAX_NAME_CHARS || name.chars().nth(MAX_NAME_CHARS).is_none() {
        return name.trim().chars().map(plain).collect();
    }
    let tail: Vec<char> = name.chars().rev().take(MAX_NAME_CHARS / 3).collect();
    let head = name.chars().take(MAX_NAME_CHARS - 1 - tail.len());
    let whole = head.chain(['…']).chain(tail.into_iter().rev());
    whole.map(plain).collect()
}

/// The key that distinguishes the code of kernels.
#[derive(PartialEq, Eq, Hash)]
struct Code<'a> {
    /// The hash of the code, or else the name that a compiler or a library gave the code.
    hash_or_name: &'a str,
    /// The function at which the code starts; one code may have several.
    entry_point: Option<&'a str>,
}

impl<'a> Code<'a> {
    fn new(table: &'a Kernels, row: usize) -> Code<'a> {
        let entry_point = text(&table.entry_point, row);
        let whole = || text(&table.full_name, row).or(entry_point);
        Code {
            hash_or_name: text(&table.source, row)
                .or_else(whole)
                .unwrap_or(&table.name[row]),
            entry_point,
        }
    }
}

/// Gives each group a name of its own: groups that share a base name get marks, or one name together where there are
/// more than [`CODES_OF_A_NAME`]. `by_row` has the index of the group of each row of the table.
fn name_groups(table: &Kernels, groups: Vec<KernelGroup>, by_row: Vec<u32>) -> KernelNames {
    let mut alike: HashMap<&str, Vec<u32>> = HashMap::new();
    for (at, group) in (0..).zip(&groups) {
        alike.entry(group.base.as_str()).or_default().push(at);
    }
    let mut taken: HashSet<String> = alike.keys().map(|base| (*base).to_owned()).collect();
    let mut names: Vec<String> = groups.iter().map(|group| group.base.clone()).collect();
    // For each group, the index of the group whose row it shares.
    let mut merged: Vec<u32> = (0..groups.len() as u32).collect();
    let mut codes = vec![1; groups.len()];
    for (at, group) in (0..).zip(&groups) {
        let others = &alike[group.base.as_str()];
        if others[0] != at || others.len() == 1 {
            continue;
        }
        if others.len() > CODES_OF_A_NAME {
            names[at as usize] = format!("{} ({} codes)", group.base, others.len());
            codes[at as usize] = others.len() as u32;
            for other in others {
                merged[*other as usize] = at;
            }
            continue;
        }
        let members: Vec<&KernelGroup> = others.iter().map(|at| &groups[*at as usize]).collect();
        for (other, mark) in others.iter().zip(marks(&members)) {
            if !mark.is_empty() {
                names[*other as usize] = unused(format!("{} {mark}", group.base), &mut taken);
            }
        }
    }
    // Only groups with a row of their own are kernels.
    let mut kernels = Vec::new();
    let mut places = vec![0; groups.len()];
    for (at, group) in groups.iter().enumerate() {
        if merged[at] as usize != at {
            continue;
        }
        places[at] = kernels.len() as u32;
        let is_whole = codes[at] > 1 || names[at].starts_with(group.whole);
        kernels.push(NamedKernel {
            name: std::mem::take(&mut names[at]),
            full_name: (!is_whole).then(|| group.whole.to_owned()),
            name_source: table
                .name_source
                .get(group.row)
                .copied()
                .unwrap_or_default(),
            codes: codes[at],
        });
    }
    let by_row = by_row.into_iter();
    KernelNames {
        by_row: by_row
            .map(|group| places[merged[group as usize] as usize])
            .collect(),
        kernels,
    }
}

/// Returns the name, with a number behind it where another kernel has it.
fn unused(name: String, taken: &mut HashSet<String>) -> String {
    let mut unused = name.clone();
    let mut number = 2;
    while !taken.insert(unused.clone()) {
        unused = format!("{name} #{number}");
        number += 1;
    }
    unused
}

#[cfg(test)]
mod tests;
