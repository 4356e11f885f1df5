//! Writes the page as one HTML file with the answers that it may ask for, for one trace, the traces of its ranks, two
//! traces to compare, or a capture. An answer is what the server would send for one request; the page finds it in the
//! file by the path of the request. The answers stand in the page as one block of base64 text, compressed by gzip.

mod comparisons;
mod trace;

use crate::dependencies::MAX_DEPENDENCY_NODES;
use crate::protocol::{FileFacts, Overview};
use crate::ranks::together;
use crate::saved_view::SavedView;
use crate::served_capture::{ServedCapture, is_capture};
use crate::store::check_complete;
use crate::traces::{ListedTrace, common_clock, listed, name};
use crate::{Error, frame, page};
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use comparisons::ComparisonCosts;
use flate2::Compression;
use flate2::write::GzEncoder;
use gapscope_comparison::ranks::RankDigest;
use gapscope_files::NewFile;
use gapscope_timeline::quantity::count;
use gapscope_trace::{Names, UnreadTable, rank_folders};
use serde::Serialize;
use serde_json::{Map, json};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use trace::TraceAnswers;

/// The most drawn rows of a file: where there are more, large tracks have busy shares instead of rows.
pub const MAX_FILE_ROWS: u64 = 200_000;

/// The facts of a file that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenFile {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// A sentence on what was left out and why; absent when everything is in the file.
    pub folded: Option<String>,
    /// The tables that could not be read, which the page names too.
    pub unread: Vec<UnreadTable>,
    /// A sentence for each file that was changed after it was written, which the page shows too.
    pub changed: Vec<String>,
}

/// Writes the page of a saved view as an HTML file, which must not exist; `names` replaces recorded names of kernels.
///
/// # Errors
/// A trace or a capture cannot be opened, a capture is not alone, a trace is not complete or is one of ranks without
/// a common clock; the file exists or cannot be written.
pub fn write_file(
    saved: &SavedView,
    path: &Path,
    names: Option<&Arc<Names>>,
) -> Result<WrittenFile, Error> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::Exists(path.to_owned()));
    }
    let FileAnswers {
        answers,
        mut written,
    } = match saved.paths.iter().find(|path| is_capture(path)) {
        Some(path) if saved.paths.len() > 1 => return Err(Error::Several(path.clone())),
        Some(path) => captured(path)?,
        None => all(saved, names)?,
    };
    let unwritten = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Exists(path.to_owned()),
        _ => Error::Write {
            path: path.to_owned(),
            reason: error.to_string(),
        },
    };
    let new = NewFile::create(path).map_err(unwritten)?;
    let mut out = BufWriter::with_capacity(1 << 20, new.file());
    let wrote = write(&mut out, &answers).and_then(|()| out.flush());
    drop(out);
    written.bytes = wrote.and_then(|()| new.place()).map_err(unwritten)?;
    Ok(written)
}

/// The answers of a file, and what was left out of them.
struct FileAnswers {
    /// The answers, in the order in which they are written.
    answers: Vec<FileAnswer>,
    written: WrittenFile,
}

/// Makes the answers of all traces, with one trace in memory at a time.
fn all(saved: &SavedView, names: Option<&Arc<Names>>) -> Result<FileAnswers, Error> {
    let ranks = match saved.paths.as_slice() {
        [one] => rank_folders(one),
        _ => Vec::new(),
    };
    common_clock(&saved.paths, &ranks)?;
    let traces = listed(&saved.paths, &ranks, false);
    for ListedTrace { path, .. } in &traces {
        check_complete(path)?;
    }
    let (mut answers, mut overviews, mut costs) =
        (Vec::new(), Vec::new(), ComparisonCosts::default());
    let (mut digests, mut of_ranks): (Vec<RankDigest>, Vec<usize>) = Default::default();
    let (mut folded, mut left) = (Vec::new(), MAX_FILE_ROWS);
    let mut written = WrittenFile::default();
    for (index, trace) in traces.iter().enumerate() {
        let of = TraceAnswers::read(index, trace, names, traces.len() == 1, &mut left)?;
        let whose = |sentence: String| match traces.len() {
            1 => sentence,
            _ => format!("{}: {sentence}", trace.name),
        };
        folded.extend(of.left_out.into_iter().map(whose));
        written.changed.extend(of.changed);
        written.unread.extend(of.unread);
        answers.extend(of.answers);
        overviews.push(of.overview);
        costs.add(index, of.costs);
        of_ranks.extend(of.digests.iter().map(|_| index));
        digests.extend(of.digests);
    }
    folded.extend(costs.left_out());
    written.folded = (!folded.is_empty()).then(|| folded.join(" "));
    let program = (!ranks.is_empty()).then(|| name(&saved.paths[0]));
    let are_ranks = program.is_some() || traces.len() == 1;
    let overview = Overview {
        state: Some(saved.state()),
        first: saved.first().map(str::to_owned),
        ..Overview::new(overviews, program, Some(facts(&written)))
    };
    answers.push(FileAnswer::json("overview", &overview));
    // Two traces that are to be compared are not ranks.
    if digests.len() > 1 && are_ranks {
        answers.push(FileAnswer::json("ranks", &together(&digests, &of_ranks)));
    }
    answers.extend(costs.answers());
    Ok(FileAnswers { answers, written })
}

/// Makes the answers of a capture.
fn captured(path: &Path) -> Result<FileAnswers, Error> {
    let capture = ServedCapture::open(path, name(path))?;
    let dependencies = capture.dependencies(0)?;
    let node_count = dependencies.node_count;
    let written = WrittenFile {
        folded: (node_count > MAX_DEPENDENCY_NODES).then(|| {
            format!(
                "Of {} commands the first {} are in this file: `gapscope view` has all of them.",
                count(node_count as u64),
                count(MAX_DEPENDENCY_NODES as u64)
            )
        }),
        ..WrittenFile::default()
    };
    let mut overview = Overview {
        file: Some(facts(&written)),
        ..capture.overview()
    };
    if let Some(capture) = &mut overview.capture {
        capture.remarks.extend(written.folded.clone());
    }
    Ok(FileAnswers {
        answers: vec![
            FileAnswer::json("overview", &overview),
            FileAnswer::json("t/0/dependencies", &dependencies),
        ],
        written,
    })
}

/// Returns the facts that the page shows about its file.
fn facts(written: &WrittenFile) -> FileFacts {
    FileFacts {
        folded: written.folded.clone(),
        made_unix_ns: now(),
    }
}

/// Returns the time on the wall clock as digits.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos()).to_string()
}

/// An answer and the key by which the page asks for it.
struct FileAnswer {
    key: String,
    bytes: Vec<u8>,
}

impl FileAnswer {
    fn new(key: impl Into<String>, bytes: Vec<u8>) -> FileAnswer {
        FileAnswer {
            key: key.into(),
            bytes,
        }
    }

    /// Makes an answer of a message in JSON.
    fn json(key: impl Into<String>, message: &impl Serialize) -> FileAnswer {
        // Messages of the protocol can all be written as JSON.
        FileAnswer::new(key, serde_json::to_vec(message).unwrap_or_default())
    }
}

/// Writes the page with the answers in its middle: a header with the place of each answer by its key, then their
/// bytes, each filled up to a multiple of eight.
fn write(mut out: impl Write, answers: &[FileAnswer]) -> io::Result<()> {
    let (before, after) = page::single();
    out.write_all(before.as_bytes())?;
    out.write_all(b"<script type=\"text/plain\" id=\"gapscope-data\">")?;
    let mut places = Map::new();
    let mut offset = 0;
    for FileAnswer { key, bytes } in answers {
        places.insert(key.clone(), json!([offset, bytes.len()]));
        offset = (offset + bytes.len()).next_multiple_of(8);
    }
    let mut packed = GzEncoder::new(
        EncoderWriter::new(&mut out, &STANDARD),
        Compression::default(),
    );
    packed.write_all(&frame::head(&json!({"answers": places})))?;
    for FileAnswer { bytes, .. } in answers {
        packed.write_all(bytes)?;
        packed.write_all(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()])?;
    }
    packed.finish()?.finish()?;
    out.write_all(b"</script>")?;
    out.write_all(after.as_bytes())
}
