//! Opens saved views: a trace followed by `#` and the state of the page, or a file with both.

use crate::Error;
use form_urlencoded::{Serializer, parse};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The greatest version of the file that this gapscope reads.
const VERSION: u64 = 1;
/// The most bytes of a saved view; a larger file is refused.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The name in the state that says which of several ranks comes first; the page has it in the query of its address.
const FIRST: &str = "first";

/// Names and values, in their order.
type Pairs = Vec<(String, String)>;

/// Traces with the state of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedView {
    /// The traces, or the capture.
    pub paths: Vec<PathBuf>,
    /// The state of the page: pairs of names and values, as behind the `#` of its address.
    state: Pairs,
}

/// The file that `Save this view` of the page writes.
#[derive(Debug, Deserialize)]
struct SavedViewFile {
    /// The version of the file.
    gapscope_view: u64,
    traces: Vec<PathBuf>,
    #[serde(default)]
    state: String,
}

impl SavedView {
    /// Opens the arguments of `gapscope view`: traces, some with `#` and a state, or the file of a saved view.
    ///
    /// # Errors
    /// A file is not a saved view, or its traces are not there.
    pub fn open(arguments: &[PathBuf]) -> Result<SavedView, Error> {
        if let [file] = arguments
            && is_saved(file)
        {
            return SavedView::read(file);
        }
        let mut saved = SavedView::default();
        for argument in arguments {
            let (path, state) = split(argument);
            saved.paths.push(path);
            saved.state.extend(pairs(&state));
        }
        Ok(saved)
    }

    /// Makes a view of traces with a state.
    pub fn new(paths: &[PathBuf], state: &[(&str, &str)]) -> SavedView {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        SavedView {
            paths: paths.to_vec(),
            state: state.iter().map(owned).collect(),
        }
    }

    /// Returns the page's address `url` with the state behind it.
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

    /// Returns the state as the page has it behind its `#`; empty where nothing was saved.
    pub(crate) fn state(&self) -> String {
        let of_page = self.state.iter().filter(|(name, _)| name != FIRST);
        (Serializer::new(String::new()).extend_pairs(of_page)).finish()
    }

    /// Returns the name of the trace that comes first, where one was chosen.
    pub(crate) fn first(&self) -> Option<&str> {
        let mut state = self.state.iter();
        let (_, name) = state.find(|(name, _)| name == FIRST)?;
        Some(name)
    }

    /// Opens the file of a saved view, and finds its traces at their paths or beside the file.
    fn read(path: &Path) -> Result<SavedView, Error> {
        let (paths, state) = read_text(path)
            .and_then(|text| parsed(&text))
            .map_err(|error| Error::Saved {
                path: path.to_owned(),
                reason: error.to_string(),
            })?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let found = paths.iter().map(|trace| {
            let name = trace.file_name().unwrap_or(trace.as_os_str());
            // A view that was moved has its traces beside it.
            let places = [beside.join(trace), beside.join(name)];
            let there = places.into_iter().find(|place| place.exists());
            there.ok_or_else(|| Error::Gone {
                path: path.to_owned(),
                trace: trace.clone(),
            })
        });
        Ok(SavedView {
            paths: found.collect::<Result<_, _>>()?,
            state,
        })
    }
}

/// The reason why a file is not a saved view, as the end of a sentence.
#[derive(Debug, thiserror::Error)]
enum SavedViewError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("it is larger than any saved view")]
    TooLarge,
    #[error("it is not what `Save this view` of the page wrote")]
    Malformed,
    #[error("a later gapscope saved it: open it with that")]
    Later,
    #[error("it names no trace, or more than two")]
    TraceCount,
}

/// Reads a file that is not too large.
fn read_text(path: &Path) -> Result<String, SavedViewError> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_FILE_BYTES {
        true => Err(SavedViewError::TooLarge),
        false => Ok(text),
    }
}

/// Parses the traces and the state of a saved view.
fn parsed(text: &str) -> Result<(Vec<PathBuf>, Pairs), SavedViewError> {
    let written: SavedViewFile =
        serde_json::from_str(text).map_err(|_| SavedViewError::Malformed)?;
    if written.gapscope_view > VERSION {
        return Err(SavedViewError::Later);
    }
    if written.traces.is_empty() || written.traces.len() > 2 {
        return Err(SavedViewError::TraceCount);
    }
    Ok((written.traces, pairs(&written.state)))
}

/// Returns true for a file that may be a saved view: traces and captures are folders.
fn is_saved(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
        && path.is_file()
}

/// Splits `TRACE#STATE`, where a trace of that name exists and no file `TRACE#STATE`.
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

/// Parses a state, with or without its `#`.
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
        let saved = SavedView::open(&[named("#t=5-9&q=a%20b&first=rank+2")]).unwrap();
        assert_eq!(saved.paths, std::slice::from_ref(&trace));
        let url = "http://127.0.0.1:1/x/";
        assert_eq!(
            saved.address(url),
            format!("{url}?first=rank+2#t=5-9&q=a+b")
        );
        assert_eq!(saved.state(), "t=5-9&q=a+b");
        let plain = SavedView::open(&[named("")]).unwrap();
        assert_eq!((plain.paths, plain.state.len()), (vec![trace], 0));
        // What is not there is named whole, as its reader will say.
        let none = SavedView::open(&[PathBuf::from("none.gapscope#t=1-2")]).unwrap();
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
            let saved = SavedView::open(std::slice::from_ref(&file)).unwrap();
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
            let error = SavedView::open(std::slice::from_ref(&file))
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
            let saved = SavedView { paths: Vec::new(), state };
            // What steers a terminal never gets into an address.
            let address = saved.address("http://127.0.0.1:1/x/");
            prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()), "{}", address);
        }
    }
}
