//! Finds the traces of a session: expands globs, reads manifests (`trace.json`, which describes a trace), and makes
//! columns (partitions) of folders called `NAME=VALUE` in the traces' paths.

use crate::Error;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use gapscope_trace::{Manifest, meant_trace, read_manifest};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// A trace that is queried.
#[derive(Debug)]
pub struct Source {
    /// Folder of the trace.
    pub folder: PathBuf,
    /// The value of the column `trace`: the path as it was given or found.
    pub name: String,
    /// Manifest of the trace.
    pub manifest: Manifest,
    /// The value of each partition column, where the path has one.
    pub(crate) partitions: Vec<Option<String>>,
}

/// A column from folders called `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The name before the `=`, in lower case.
    pub name: String,
    /// True when every value is an integer.
    pub is_integer: bool,
}

/// A value that all rows of a trace share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TraceValue {
    /// The trace's name.
    Name,
    /// A folder's value: an index of [`Traces::partitions`].
    Partition(usize),
}

impl Partition {
    pub fn data_type(&self) -> DataType {
        match self.is_integer {
            true => DataType::Int64,
            false => DataType::Utf8View,
        }
    }
}

/// The traces of a session.
#[derive(Debug)]
pub struct Traces {
    /// Traces in the order given; those of a glob sorted by name.
    pub sources: Vec<Source>,
    /// A sentence for each argument that cannot be queried.
    pub skipped: Vec<String>,
    /// The columns from folders, of all traces together, ordered by name.
    pub(crate) partitions: Vec<Partition>,
}

impl Traces {
    /// Finds the traces. Each of `given` is the folder of a trace, or a glob such as `runs/*/rank=*`.
    ///
    /// # Errors
    /// A path does not exist, a glob matches nothing or is invalid, or nothing can be queried.
    pub fn open(given: &[OsString]) -> Result<Traces, Error> {
        let mut traces = Traces {
            sources: Vec::new(),
            skipped: Vec::new(),
            partitions: Vec::new(),
        };
        let (mut known, mut links) = (HashSet::new(), Vec::new());
        for argument in given {
            let found = expand(argument)?;
            let only = found.paths.len() == 1 && given.len() == 1;
            for path in found.paths {
                traces.add(path, only, &mut known)?;
            }
            links.extend(found.links);
        }
        for link in links {
            // Nothing is missing where the trace itself was found too.
            if !link.canonicalize().is_ok_and(|path| known.contains(&path)) {
                traces.skip_link(&link);
            }
        }
        if traces.sources.is_empty() {
            return Err(Error::NoTrace(match traces.skipped.as_slice() {
                [one] => one.clone(),
                many => format!("none of {} traces can be queried: {}", many.len(), many[0]),
            }));
        }
        traces.find_partitions();
        Ok(traces)
    }

    /// Returns a value of the trace with the index `source`; NULL where its path has no such folder.
    pub(crate) fn value(&self, value: TraceValue, source: usize) -> ScalarValue {
        let source = &self.sources[source];
        match value {
            TraceValue::Name => ScalarValue::Utf8View(Some(source.name.clone())),
            TraceValue::Partition(index) => {
                let value = source.partitions[index].clone();
                match self.partitions[index].is_integer {
                    true => ScalarValue::Int64(value.and_then(|value| value.parse().ok())),
                    false => ScalarValue::Utf8View(value),
                }
            }
        }
    }

    /// Adds a trace and the traces of its ranks, unless `known` has its path. A folder that cannot be queried is
    /// skipped; one that cannot be read is an error where it is the `only` one.
    fn add(
        &mut self,
        folder: PathBuf,
        only: bool,
        known: &mut HashSet<PathBuf>,
    ) -> Result<(), Error> {
        if folder.canonicalize().is_ok_and(|path| !known.insert(path)) {
            return Ok(());
        }
        let name = folder.to_string_lossy().into_owned();
        match read_manifest(&folder) {
            Ok(manifest) if manifest.complete => {
                let ranks = manifest.ranks.clone();
                self.sources.push(Source {
                    folder: folder.clone(),
                    name,
                    manifest,
                    partitions: Vec::new(),
                });
                for rank in ranks {
                    let own = folder.join(format!("rank={rank}"));
                    match own.is_symlink() {
                        true => self.skip_link(&own),
                        false => self.add(own, false, known)?,
                    }
                }
            }
            Ok(_) => self.skipped.push(format!(
                "{name} is not complete: it is still being recorded, or its recording was killed; wait for its end, or \
                 run `gapscope recover {name}`"
            )),
            Err(error) => {
                let mut text = error.to_string();
                if let Some(glob) = traces_below(&folder) {
                    text = format!("{text}; for the traces in it write '{glob}'");
                }
                if only {
                    return Err(Error::NoTrace(text));
                }
                self.skipped.push(text);
            }
        }
        Ok(())
    }

    /// Skips a link that the user has not named.
    fn skip_link(&mut self, link: &Path) {
        self.skipped.push(format!(
            "{} is a symbolic link, or inside of one, which may lead anywhere and is not followed: name it without a \
             pattern, or put the trace itself there",
            link.display()
        ));
    }

    /// Finds the columns from folders, and the values of each trace.
    fn find_partitions(&mut self) {
        let of_sources: Vec<_> = self.sources.iter().map(|s| partitions(&s.folder)).collect();
        let names: BTreeSet<&String> = of_sources.iter().flat_map(BTreeMap::keys).collect();
        self.partitions = names
            .into_iter()
            .map(|name| {
                let mut values = of_sources.iter().filter_map(|all| all.get(name)).flatten();
                Partition {
                    name: name.clone(),
                    is_integer: values.all(|value| is_integer(value)),
                }
            })
            .collect();
        for (source, mut values) in self.sources.iter_mut().zip(of_sources) {
            let columns = self.partitions.iter();
            source.partitions = columns
                .map(|column| values.remove(&column.name).flatten())
                .collect();
        }
    }
}

/// Returns true for integers in plain notation: `007` is a name.
fn is_integer(text: &str) -> bool {
    text.parse::<i64>()
        .is_ok_and(|number| number.to_string() == text)
}

/// The paths that an argument stands for.
struct ExpandedPaths {
    paths: Vec<PathBuf>,
    /// The paths that a pattern found through a link.
    links: Vec<PathBuf>,
}

/// Expands an argument into paths. An existing path is taken literally, whatever characters it has.
fn expand(argument: &OsStr) -> Result<ExpandedPaths, Error> {
    let path = Path::new(argument);
    if path.symlink_metadata().is_ok() {
        return Ok(ExpandedPaths {
            paths: vec![path.to_owned()],
            links: Vec::new(),
        });
    }
    let text = argument
        .to_str()
        .filter(|text| text.contains(['*', '?', '[']));
    let Some(pattern) = text else {
        return Err(Error::NoTrace(match argument.is_empty() {
            true => "\"\" is not a path: name a trace".to_owned(),
            false => match meant_trace(path) {
                Some(meant) => format!(
                    "{} does not exist: is {} meant?",
                    path.display(),
                    meant.display()
                ),
                None => format!("{} does not exist", path.display()),
            },
        }));
    };
    let options = glob::MatchOptions {
        require_literal_leading_dot: true,
        ..glob::MatchOptions::new()
    };
    let found = glob::glob_with(pattern, options).map_err(|error| {
        Error::NoTrace(format!("{pattern} cannot be understood: {}", error.msg))
    })?;
    // Unreadable folders are skipped.
    let found: Vec<PathBuf> = found.flatten().collect();
    if found.is_empty() {
        return Err(Error::NoTrace(format!(
            "nothing is called {pattern}: check the pattern, in which * stands for any part of one name and ** for any \
             folders"
        )));
    }
    let (links, paths) = (found.into_iter()).partition(|path| is_behind_link(pattern, path));
    Ok(ExpandedPaths { paths, links })
}

/// Returns true where a path that a pattern found is a link, or inside of one. Links in the part before the pattern's first
/// `*`, `?` or `[` do not count, because the user has named them.
fn is_behind_link(pattern: &str, found: &Path) -> bool {
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().filter(|part| *part != Component::CurDir);
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let is_literal = |part: &OsString| !part.to_string_lossy().contains(['*', '?', '[']);
    let named = parts(Path::new(pattern)).into_iter().take_while(is_literal);
    let (named, all) = (named.count(), parts(found));
    (named + 1..=all.len()).any(|end| all[..end].iter().collect::<PathBuf>().is_symlink())
}

/// Returns true for an argument that is SQL rather than a trace: it starts with an SQL keyword, or has several words
/// that no path has.
pub fn looks_like_sql(argument: &OsStr) -> bool {
    const FIRST: [&str; 18] = [
        "select", "with", "explain", "show", "describe", "values", "create", "drop", "set",
        "insert", "copy", "from", "alter", "prepare", "begin", "update", "delete", "commit",
    ];
    let Some(text) = argument.to_str().map(str::trim_start) else {
        return false;
    };
    if Path::new(argument).symlink_metadata().is_ok() {
        return false;
    }
    let word: String = text
        .chars()
        .take_while(|c| c.is_ascii_alphabetic())
        .collect();
    let after = text[word.len()..].chars().next();
    let is_word = FIRST.iter().any(|first| word.eq_ignore_ascii_case(first));
    let starts_as_sql = is_word && after.is_none_or(|c| c.is_whitespace() || "(*;'\"".contains(c));
    starts_as_sql
        || text.is_empty()
        || text.starts_with(['(', ';'])
        || (text.contains(char::is_whitespace) && expand(argument).is_err())
}

/// Returns a glob for the traces in a folder that is not itself a trace, or in its subfolders; `None` where the first
/// entries have none.
fn traces_below(folder: &Path) -> Option<String> {
    let has_manifest = |path: &Path| path.join("trace.json").is_file();
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).take(1000).collect()
    };
    if has_manifest(folder) {
        return None;
    }
    let first = below(folder);
    if first.iter().any(|path| has_manifest(path)) {
        return Some(folder.join("*").display().to_string());
    }
    let mut second = first.iter().take(100).flat_map(|path| below(path));
    second
        .any(|path| has_manifest(&path))
        .then(|| folder.join("*/*").display().to_string())
}

/// The value by which Hive, and tools like it, mark a folder without a value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the `NAME=VALUE` folders of a path; a value may be absent.
fn partitions(path: &Path) -> BTreeMap<String, Option<String>> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    names
        .filter_map(|name| name.split_once('='))
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| {
            let value = value.strip_suffix(".gapscope").unwrap_or(value);
            let value = (value != NO_VALUE).then(|| decoded(value));
            (decoded(name).to_lowercase(), value)
        })
        .collect()
}

/// Decodes escapes such as `%20`, which stand for characters that folder names lack.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_partitions() {
        let found = partitions(Path::new("runs/Model=big%20one/x/rank=0.gapscope"));
        let found: Vec<_> = found.into_iter().collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("model".to_owned(), some("big one")),
                ("rank".to_owned(), some("0"))
            ]
        );
        assert_eq!(
            partitions(Path::new("a=__HIVE_DEFAULT_PARTITION__"))["a"],
            None
        );
        assert!(partitions(Path::new("../=x/plain")).is_empty());
    }

    #[test]
    fn sql_is_distinguished_from_traces() {
        for sql in [
            "select 1",
            "SELECT*from x",
            "with a as (select 1) select 1",
            "(select 1)",
            "selct 1 from x",
        ] {
            assert!(looks_like_sql(OsStr::new(sql)), "{sql}");
        }
        for trace in [
            "run.gapscope",
            "selection.gapscope",
            "runs/*/rank=*",
            "values-1",
            "src",
        ] {
            assert!(!looks_like_sql(OsStr::new(trace)), "{trace}");
        }
    }

    #[test]
    fn a_percent_sign_that_is_no_code_stays() {
        assert_eq!(decoded("50%"), "50%");
        assert_eq!(decoded("50%zz%2"), "50%zz%2");
        assert_eq!(decoded("%ff"), "%ff");
    }

    #[test]
    fn numbers_are_as_people_write_them() {
        assert!(is_integer("-12"));
        assert!(!is_integer("007") && !is_integer("1.5") && !is_integer(""));
    }
}
