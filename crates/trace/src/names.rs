//! Reads the user's names for kernels (`--names FILE`).
//!
//! One name a line, for the kernels whose SPIR-V hash begins with the given hexadecimal digits, optionally only for
//! one specialisation:
//!
//! ```text
//! # hash [specialisation] = name
//! 48373bb5 = matmul_f16
//! 48373bb5 0:40000000,1:01000000 = matmul_f16_wide
//! ```
//!
//! The hash is the one in reports (`spv:48373bb5`, the `spv:` may stay) and in the `source` column of `kernels`; the
//! specialisation is the text of its `specialisation` column. A tab in place of ` = ` separates as well, so that
//! `hash<TAB>specialisation<TAB>name` and `hash<TAB>name` tables work. Of several lines that fit a kernel, one with
//! its specialisation wins, then the longest hash.

use crate::tables::{Kernels, NameSource};
use crate::text_column::TextColumn;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fewer digits would match too many kernels by chance.
const MIN_HASH_DIGITS: usize = 4;
/// The number of digits of a whole hash.
const MAX_HASH_DIGITS: usize = 32;

/// Names by hash and specialisation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    names: Vec<NameRule>,
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NameRule {
    /// The beginning of the hash, in lower case.
    hash: String,
    /// The text of the specialisation; `None` where the line is for all specialisations.
    specialisation: Option<String>,
    name: String,
}

/// Why a names file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamesError {
    /// The file cannot be read.
    #[error("the file of names {} cannot be read: {source}", path.display())]
    Io {
        /// The path of the names file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line cannot be parsed.
    #[error("{path}, line {}: {}", source.line, source.problem)]
    Line {
        /// The path of the names file.
        path: PathBuf,
        /// The line and its problem.
        source: LineError,
    },
}

/// A line of a names file that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to write.
    pub problem: NameProblem,
}

/// Why a line of a names file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// The name is missing.
    #[error(
        "there is no name; write `HASH = NAME`, or `HASH SPECIALISATION = NAME` for one specialisation"
    )]
    NoName,
    /// The name is empty.
    #[error("the name is empty")]
    EmptyName,
    /// A third word stands before the name.
    #[error("`{0}` is not understood; a hash and at most one specialisation come before the name")]
    MoreWords(String),
    /// The first word is not a hash, or too short or too long.
    #[error(
        "`{0}` is not a SPIR-V hash; give {MIN_HASH_DIGITS} to {MAX_HASH_DIGITS} hexadecimal digits of the one in the report"
    )]
    NoHash(String),
    /// An earlier line names the same kernel.
    #[error("{0} is named twice; keep one of the lines")]
    NamedTwice(String),
}

impl Names {
    /// Reads a names file.
    ///
    /// # Errors
    /// The file cannot be read, or one of its lines cannot be parsed.
    pub fn read(path: &Path) -> Result<Names, NamesError> {
        let text = std::fs::read_to_string(path).map_err(|source| NamesError::Io {
            path: path.to_owned(),
            source,
        })?;
        Names::parse(&text).map_err(|source| NamesError::Line {
            path: path.to_owned(),
            source,
        })
    }

    /// Parses the text of a names file.
    ///
    /// # Errors
    /// A line cannot be parsed.
    pub fn parse(text: &str) -> Result<Names, LineError> {
        let mut names: Vec<NameRule> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let error = |problem| LineError {
                line: index + 1,
                problem,
            };
            let name = parse_line(line).map_err(error)?;
            if names
                .iter()
                .any(|n| n.hash == name.hash && n.specialisation == name.specialisation)
            {
                return Err(error(NameProblem::NamedTwice(name.hash)));
            }
            names.push(name);
        }
        Ok(Names { names })
    }

    /// Returns the number of names, and how many of them match none of these kernels, given as hash and
    /// specialisation.
    pub fn unused<'a>(&self, kernels: impl Iterator<Item = (&'a str, &'a str)>) -> (usize, usize) {
        let mut used = vec![false; self.names.len()];
        for (hash, specialisation) in kernels {
            if let Some(at) = self.index(hash, specialisation) {
                used[at] = true;
            }
        }
        (used.len(), used.iter().filter(|used| !**used).count())
    }

    /// Renames the kernels of a trace, and clears the full names of those that it renames.
    pub(crate) fn apply(&self, kernels: &mut Kernels) {
        for row in 0..kernels.name.len() {
            let text = |column: &TextColumn<Option<Arc<str>>>| column.get(row).cloned().flatten();
            let Some(hash) = text(&kernels.source) else {
                continue;
            };
            let specialisation = text(&kernels.specialisation);
            if let Some(name) = self.get(&hash, specialisation.as_deref().unwrap_or_default()) {
                kernels.name.set(row, name.into());
                if let Some(source) = kernels.name_source.get_mut(row) {
                    *source = NameSource::NamesFile;
                }
                if row < kernels.full_name.len() {
                    kernels.full_name.set(row, None);
                }
            }
        }
    }

    /// Returns the name of a kernel: `hash` as hexadecimal, `specialisation` empty when there is none.
    pub fn get(&self, hash: &str, specialisation: &str) -> Option<&str> {
        let at = self.index(hash, specialisation)?;
        Some(&self.names[at].name)
    }

    /// Returns the index of the line that names a kernel, by the rule above; `None` where no line fits.
    fn index(&self, hash: &str, specialisation: &str) -> Option<usize> {
        (self.names.iter().enumerate())
            .filter(|(_, n)| hash.starts_with(&n.hash))
            .filter(|(_, n)| {
                n.specialisation
                    .as_deref()
                    .is_none_or(|s| s == specialisation)
            })
            .max_by_key(|(_, n)| (n.specialisation.is_some(), n.hash.len()))
            .map(|(at, _)| at)
    }
}

/// Parses a line that is neither empty nor a comment.
fn parse_line(line: &str) -> Result<NameRule, NameProblem> {
    let (kernel, name) = match line.split_once(" = ") {
        Some(parts) => parts,
        None => line.rsplit_once('\t').ok_or(NameProblem::NoName)?,
    };
    let name = name.trim();
    if name.is_empty() {
        return Err(NameProblem::EmptyName);
    }
    let mut words = kernel.split_whitespace();
    let hash = words.next().unwrap_or_default();
    let hash = hash
        .strip_prefix("spv:")
        .unwrap_or(hash)
        .to_ascii_lowercase();
    let specialisation = words.next().map(str::to_owned);
    if let Some(more) = words.next() {
        return Err(NameProblem::MoreWords(more.to_owned()));
    }
    if !hash.bytes().all(|b| b.is_ascii_hexdigit())
        || !(MIN_HASH_DIGITS..=MAX_HASH_DIGITS).contains(&hash.len())
    {
        return Err(NameProblem::NoHash(hash));
    }
    Ok(NameRule {
        hash,
        specialisation,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Kernel, Table};

    #[test]
    fn a_kernel_that_was_recorded_under_another_name_gets_this_one() {
        let mut kernels = Kernels::default();
        for source in [Some("48373bb500"), Some("00000000"), None] {
            kernels.push(Kernel {
                name: "main".into(),
                full_name: Some("main()".into()),
                source: source.map(Into::into),
                ..Kernel::default()
            });
        }
        let names = Names::parse("48373bb5 = matmul").unwrap();
        names.apply(&mut kernels);
        let named: Vec<&str> = kernels.name.iter().map(|name| &**name).collect();
        assert_eq!(named, ["matmul", "main", "main"]);
        assert_eq!(kernels.name_source[0], NameSource::NamesFile);
        assert_eq!(
            (&kernels.full_name[0], kernels.full_name[1].is_some()),
            (&None, true)
        );
        // Columns that were not read are empty.
        kernels.source = TextColumn::default();
        kernels.name_source.clear();
        names.apply(&mut kernels);
    }

    #[test]
    fn the_most_specific_line_names_a_kernel() {
        let names = Names::parse(
            "# llama.cpp\n\nspv:48373BB5 = matmul\n48373bb5 0:40000000 = matmul_wide\n48373bb5aa = matmul_other\n53f8\tsoft max\n53f8\t1:02\tsoft max 2\n",
        )
        .unwrap();
        assert_eq!(names.get("48373bb500", ""), Some("matmul"));
        assert_eq!(names.get("48373bb500", "0:40000000"), Some("matmul_wide"));
        assert_eq!(names.get("48373bb5aa", ""), Some("matmul_other"));
        assert_eq!(names.get("53f86929", "9:00"), Some("soft max"));
        assert_eq!(names.get("53f86929", "1:02"), Some("soft max 2"));
        assert_eq!(names.get("00000000", ""), None);
        let kernels = [("48373bb500", ""), ("53f86929", "1:02"), ("00000000", "")];
        assert_eq!(names.unused(kernels.into_iter()), (5, 3));
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, line, part) in [
            ("48373bb5 = a\nxyz = b", 2, "`xyz` is not a SPIR-V hash"),
            ("483 = a", 1, "hexadecimal digits"),
            ("# c\n48373bb5", 2, "there is no name"),
            ("48373bb5 1:02 3:04 = a", 1, "`3:04` is not understood"),
            ("48373bb5 = a\n48373bb5 = b", 2, "named twice"),
        ] {
            let error = Names::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.problem.to_string().contains(part), "{text}: {error}");
        }
    }
}
