//! Names of kernels: what their rows are called, and which kernels share one.
//!
//! Kernels of one name and one code are one row, however they are specialised or launched. Where different code has one
//! name, what tells it apart is behind the name: the words in which the whole names differ, or the hash of the code.

mod marks;

pub use gapscope_trace::kernel_names::readable;

use crate::thresholds::CODES_OF_A_NAME;
use gapscope_trace::kernel_names::{UNKNOWN, library_kernel_name};
use gapscope_trace::tables::{Kernels, NameSource, Table};
use gapscope_trace::text_column::TextColumn;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The kernels of a trace by what they are called.
#[derive(Debug, Clone, Default)]
pub struct KernelNames {
    kernels: Vec<NamedKernel>,
    /// By row of the trace's table.
    of_row: Vec<u32>,
}

/// Kernels that share a name, which no other kernels of the trace have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKernel {
    /// What people read.
    pub name: String,
    /// The whole name in the code, where `name` is a shorter one.
    pub full_name: Option<String>,
    /// Where the name comes from.
    pub name_source: NameSource,
    /// Different codes that share the row: 1, or more than [`CODES_OF_A_NAME`].
    pub codes: u32,
}

impl KernelNames {
    /// The names of all kernels of a trace.
    pub fn of(table: &Kernels) -> KernelNames {
        let mut bases: HashMap<(&str, Option<&str>, NameSource), String> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut by_code: HashMap<(String, Code), u32> = HashMap::new();
        let of_row: Vec<u32> = (0..table.len())
            .map(|row| {
                let name = &*table.name[row];
                let full = text(&table.full_name, row);
                let name_source = table.name_source.get(row).copied().unwrap_or_default();
                let base = bases
                    .entry((name, full, name_source))
                    .or_insert_with(|| base(name, full, name_source));
                let code = Code::of(table, row);
                let fresh = groups.len() as u32;
                let group = *by_code.entry((base.clone(), code)).or_insert(fresh);
                if group == fresh {
                    groups.push(Group {
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
        named(table, groups, of_row)
    }

    /// All of them, in the order in which the trace first has them.
    pub fn all(&self) -> &[NamedKernel] {
        &self.kernels
    }

    /// Index in [`Self::all`] of the kernel in a row of the table.
    pub fn of_row(&self, row: usize) -> Option<usize> {
        self.of_row.get(row).map(|kernel| *kernel as usize)
    }

    /// The name of the kernel in a row of the table.
    pub fn name(&self, row: usize) -> &str {
        self.named(row)
            .map_or(UNKNOWN, |kernel| kernel.name.as_str())
    }

    /// The whole name of the kernel in a row of the table, where its name is a shorter one.
    pub fn full_name(&self, row: usize) -> Option<&str> {
        self.named(row)?.full_name.as_deref()
    }

    fn named(&self, row: usize) -> Option<&NamedKernel> {
        self.kernels.get(self.of_row(row)?)
    }
}

/// A text of a column, which a reader may have left out.
fn text(column: &TextColumn<Option<Arc<str>>>, row: usize) -> Option<&str> {
    column.get(row)?.as_deref()
}

fn base(name: &str, full: Option<&str>, source: NameSource) -> String {
    let known = match source {
        _ if name.trim().is_empty() => Some(UNKNOWN.to_owned()),
        // People chose it for reading.
        NameSource::NamesFile | NameSource::Label => None,
        // A library's name may be in it, but brackets need not be those of C++.
        NameSource::ObjectName | NameSource::SourceName => library_kernel_name(name),
        _ => Some(readable(name, full).into_owned()),
    };
    short(known.as_deref().unwrap_or(name))
}

/// Longer names are cut in their middle.
const LONGEST: usize = 240;

/// A name that tables can show: not longer than they can hold, and without what only looks like a difference.
fn short(name: &str) -> String {
    let plain = |c: char| if c.is_control() { '·' } else { c };
    if name.len() <= LONGEST || name.chars().nth(LONGEST).is_none() {
        return name.trim().chars().map(plain).collect();
    }
    let tail: Vec<char> = name.chars().rev().take(LONGEST / 3).collect();
    let head = name.chars().take(LONGEST - 1 - tail.len());
    let whole = head.chain(['…']).chain(tail.into_iter().rev());
    whole.map(plain).collect()
}

/// What makes kernels different code.
#[derive(PartialEq, Eq, Hash)]
struct Code<'a> {
    /// Hash of the code, else the name that a compiler or a library gave it.
    of: &'a str,
    entry_point: Option<&'a str>,
}

impl<'a> Code<'a> {
    fn of(table: &'a Kernels, row: usize) -> Code<'a> {
        let entry_point = text(&table.entry_point, row);
        let whole = || text(&table.full_name, row).or(entry_point);
        Code {
            of: text(&table.source, row)
                .or_else(whole)
                .unwrap_or(&table.name[row]),
            entry_point,
        }
    }
}

/// Kernels of one name and one code.
struct Group<'a> {
    base: String,
    whole: &'a str,
    hash: Option<&'a str>,
    entry_point: &'a str,
    /// Its first row.
    row: usize,
}

fn named(table: &Kernels, groups: Vec<Group>, of_row: Vec<u32>) -> KernelNames {
    let mut alike: HashMap<&str, Vec<u32>> = HashMap::new();
    for (at, group) in (0..).zip(&groups) {
        alike.entry(group.base.as_str()).or_default().push(at);
    }
    let mut taken: HashSet<String> = alike.keys().map(|base| (*base).to_owned()).collect();
    let mut names: Vec<String> = groups.iter().map(|group| group.base.clone()).collect();
    // Where a group went that shares its row with others.
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
        let members: Vec<&Group> = others.iter().map(|at| &groups[*at as usize]).collect();
        for (other, mark) in others.iter().zip(marks::of(&members)) {
            if !mark.is_empty() {
                names[*other as usize] = free(format!("{} {mark}", group.base), &mut taken);
            }
        }
    }
    // Only what is its own row is a kernel.
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
    let of_row = of_row.into_iter();
    KernelNames {
        of_row: of_row
            .map(|group| places[merged[group as usize] as usize])
            .collect(),
        kernels,
    }
}

/// The name, or one with a number behind it where another kernel has it.
fn free(name: String, taken: &mut HashSet<String>) -> String {
    let mut free = name.clone();
    let mut number = 2;
    while !taken.insert(free.clone()) {
        free = format!("{name} #{number}");
        number += 1;
    }
    free
}

#[cfg(test)]
mod tests;
