//! Views that are opened again: a trace with the state of the page behind a `#`, and a file with both.

use crate::Error;
use form_urlencoded::{Serializer, parse};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Version of the file.
const VERSION: u64 = 1;
/// No saved view is larger, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The part of the state that says which of several ranks comes first; the page has it in the query of its address.
const FIRST: &str = "first";

/// Names and values, in their order.
type Pairs = Vec<(String, String)>;

/// Traces, and what the page shows of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    /// The traces, or the capture.
    pub paths: Vec<PathBuf>,
    /// The page's state as pairs of names and values, as behind the `#` of its address.
    state: Pairs,
}

/// What `Save this view` of the page writes.
#[derive(Debug, Deserialize)]
struct SavedViewFile {
    gapscope_view: u64,
    traces: Vec<PathBuf>,
    #[serde(default)]
    state: String,
}

impl Saved {
    /// What arguments of `gapscope view` name: traces, of which each may be followed by `#` and a state, or the file of a saved view.
    ///
    /// # Errors
    /// A file is no saved view, or its traces are not there.
    pub fn open(arguments: &[PathBuf]) -> Result<Saved, Error> {
        if let [file] = arguments
            && is_saved(file)
        {
            return Saved::read(file);
        }
        let mut saved = Saved::default();
        for argument in arguments {
            let (path, state) = split(argument);
            saved.paths.push(path);
            saved.state.extend(pairs(&state));
        }
        Ok(saved)
    }

    /// Traces, with a state.
    pub fn of(paths: &[PathBuf], state: &[(&str, &str)]) -> Saved {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Saved {
            paths: paths.to_vec(),
            state: state.iter().map(owned).collect(),
        }
    }

    /// A page's address with the state.
    pub fn address(&self, url: &str) -> String {
        let mut address = url.to_owned();
        let (first, state): (Vec<_>, Vec<_>) =
            (self.state.iter()).partition(|(name, _)| name == FIRST);
        for (mark, pairs) in [('?', first), ('#', state)] {
            if !pairs.is_empty() {
                address.push(mark);
                address += &Serializer::new(String::new()).extend_pairs(pairs).finish();
            }
        }
        address
    }

    /// The state as the page has it behind its `#`; empty where nothing was saved.
    pub(crate) fn state(&self) -> String {
        let of_page = self.state.iter().filter(|(name, _)| name != FIRST);
        (Serializer::new(String::new()).extend_pairs(of_page)).finish()
    }

    /// The name of the trace that comes first, where that was chosen.
    pub(crate) fn first(&self) -> Option<&str> {
        let mut state = self.state.iter();
        let (_, name) = state.find(|(name, _)| name == FIRST)?;
        Some(name)
    }

    fn read(path: &Path) -> Result<Saved, Error> {
        let refused = |reason: String| Error::Saved {
            path: path.to_owned(),
            reason,
        };
        let mut text = String::new();
        (File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)))
            .map_err(|error| refused(error.to_string()))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(refused("it is larger than any saved view".to_owned()));
        }
        let (paths, state) = parsed(&text).map_err(refused)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let found = paths.iter().map(|trace| {
            let name = trace.file_name().unwrap_or(trace.as_os_str());
            // Who moves a view moves its traces along with it.
            let places = [beside.join(trace), beside.join(name)];
            let there = places.into_iter().find(|place| place.exists());
            there.ok_or_else(|| Error::Gone {
                path: path.to_owned(),
                trace: trace.clone(),
            })
        });
        Ok(Saved {
            paths: found.collect::<Result<_, _>>()?,
            state,
        })
    }
}

/// The traces and the state of a saved view; else why it is none.
fn parsed(text: &str) -> Result<(Vec<PathBuf>, Pairs), String> {
    let written: SavedViewFile = serde_json::from_str(text)
        .map_err(|_| "it is not what `Save this view` of the page wrote".to_owned())?;
    if written.gapscope_view > VERSION {
        return Err("a later gapscope saved it: open it with that".to_owned());
    }
    if written.traces.is_empty() || written.traces.len() > 2 {
        return Err("it names no trace, or more than two".to_owned());
    }
    Ok((written.traces, pairs(&written.state)))
}

/// A file that may be a saved view: traces and captures are folders.
fn is_saved(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
        && path.is_file()
}

/// `TRACE#STATE` as both, where there is a TRACE of that name and no `TRACE#STATE`.
fn split(argument: &Path) -> (PathBuf, String) {
    let whole = || (argument.to_owned(), String::new());
    let Some(text) = argument.to_str().filter(|_| !argument.exists()) else {
        return whole();
    };
    let mut marks = text.match_indices('#').map(|(at, _)| text.split_at(at));
    match marks.find(|(path, _)| !path.is_empty() && Path::new(path).exists()) {
        Some((path, state)) => (PathBuf::from(path), state[1..].to_owned()),
        None => whole(),
    }
}

fn pairs(state: &str) -> Pairs {
    let state = state.trim_start_matches('#');
    parse(state.as_bytes()).into_owned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_trace_is_followed_by_a_state() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a#b.gapscope");
        std::fs::create_dir(&trace).unwrap();
        let named = |end: &str| PathBuf::from(format!("{}{end}", trace.display()));
        let saved = Saved::open(&[named("#t=5-9&q=a%20b&first=rank+2")]).unwrap();
        assert_eq!(saved.paths, std::slice::from_ref(&trace));
        let url = "http://127.0.0.1:1/x/";
        assert_eq!(
            saved.address(url),
            format!("{url}?first=rank+2#t=5-9&q=a+b")
        );
        assert_eq!(saved.state(), "t=5-9&q=a+b");
        let plain = Saved::open(&[named("")]).unwrap();
        assert_eq!((plain.paths, plain.state.len()), (vec![trace], 0));
        // What is not there is named whole, as its reader will say.
        let none = Saved::open(&[PathBuf::from("none.gapscope#t=1-2")]).unwrap();
        assert_eq!(none.paths, [PathBuf::from("none.gapscope#t=1-2")]);
    }

    #[test]
    fn a_saved_view_finds_its_traces_where_they_were_or_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("run.gapscope");
        std::fs::create_dir(&trace).unwrap();
        let file = folder.path().join("run.json");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        for place in ["/somewhere/else/run.gapscope", "run.gapscope"] {
            write(&format!(
                r##"{{"gapscope_view": 1, "traces": ["{place}"], "state": "#p=kernels"}}"##
            ));
            let saved = Saved::open(std::slice::from_ref(&file)).unwrap();
            assert_eq!(
                (saved.paths.clone(), saved.state()),
                (vec![trace.clone()], "p=kernels".to_owned())
            );
        }
        for (text, says) in [
            ("{", "is no saved view: it is not what"),
            (r#"{"traces": ["run.gapscope"]}"#, "is no saved view"),
            (
                r#"{"gapscope_view": 2, "traces": ["run.gapscope"]}"#,
                "later gapscope",
            ),
            (r#"{"gapscope_view": 1, "traces": []}"#, "names no trace"),
            (
                r#"{"gapscope_view": 1, "traces": ["/no/such"]}"#,
                "/no/such, which is neither there nor beside it",
            ),
        ] {
            write(text);
            let error = Saved::open(std::slice::from_ref(&file))
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_view_or_is_refused(text in ".*", state in ".*") {
            let _ = parsed(&text);
            let written = serde_json::json!({"gapscope_view": 1, "traces": ["a"], "state": state});
            let (_, state) = parsed(&written.to_string()).unwrap();
            let saved = Saved { paths: Vec::new(), state };
            // What steers a terminal never gets into an address.
            let address = saved.address("http://127.0.0.1:1/x/");
            prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()), "{}", address);
        }
    }
}
