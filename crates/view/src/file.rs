//! The page and its answers as one file: of one trace, of those of its ranks, of two that are compared, or of a capture.

mod comparisons;
mod trace;

use crate::captured::{Captured, is_capture};
use crate::dependencies::NODES_AT_MOST;
use crate::ranks::together;
use crate::saved::Saved;
use crate::traces::{Listed, common_clock, listed, name};
use crate::{Error, frame, overview, page};
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use comparisons::Costs;
use flate2::Compression;
use flate2::write::GzEncoder;
use gapscope_comparison::ranks::RankDigest;
use gapscope_timeline::quantity::count;
use gapscope_trace::{Names, UnreadTable, rank_folders, read_manifest};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use trace::OfTrace;

/// Rows that are drawn, at most, in a file that has all of them.
pub const MOST_ROWS: u64 = 200_000;

/// What became of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Its size in bytes.
    pub bytes: u64,
    /// What was left out and why, in a sentence; absent when everything is in the file.
    pub folded: Option<String>,
    /// What could not be read, as the page says too.
    pub unread: Vec<UnreadTable>,
    /// What was changed after it was written, a sentence each, as the page says too.
    pub changed: Vec<String>,
}

/// Writes the page with what it shows of traces, or of a capture, as one HTML file, which opens with their saved state, with these names for kernels. The file
/// must not exist.
///
/// # Errors
/// A trace or a capture cannot be opened, a capture is not alone, a trace is not complete or is one of ranks without a common clock; the file exists or cannot be written.
pub fn write_file(
    saved: &Saved,
    path: &Path,
    names: Option<&Arc<Names>>,
) -> Result<Written, Error> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::Exists {
            path: path.to_owned(),
        });
    }
    let All {
        answers,
        mut written,
    } = match saved.paths.iter().find(|path| is_capture(path)) {
        Some(path) if saved.paths.len() > 1 => return Err(Error::Several { path: path.clone() }),
        Some(path) => captured(path)?,
        None => all(saved, names)?,
    };
    let unwritten = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Exists {
            path: path.to_owned(),
        },
        _ => Error::Write {
            path: path.to_owned(),
            reason: error.to_string(),
        },
    };
    let file = fs::File::create_new(path).map_err(unwritten)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let facts = write(&mut out, &answers)
        .and_then(|()| out.flush())
        .and_then(|()| out.get_ref().metadata());
    match facts {
        Ok(facts) => {
            written.bytes = facts.len();
            Ok(written)
        }
        Err(error) => {
            let _ = fs::remove_file(path);
            Err(unwritten(error))
        }
    }
}

/// The answers of a file, and what became of what they are of.
struct All {
    answers: Vec<Answer>,
    written: Written,
}

/// Answers of all traces, one after the other: one of them is in memory at a time.
fn all(saved: &Saved, names: Option<&Arc<Names>>) -> Result<All, Error> {
    let ranks = match saved.paths.as_slice() {
        [one] => rank_folders(one),
        _ => Vec::new(),
    };
    common_clock(&saved.paths, &ranks)?;
    let traces = listed(&saved.paths, &ranks, false);
    for Listed { path, .. } in &traces {
        if !read_manifest(path)?.complete {
            return Err(Error::Unfinished { path: path.clone() });
        }
    }
    let (mut answers, mut overviews, mut costs) = (Vec::new(), Vec::new(), Costs::default());
    let (mut digests, mut of_ranks): (Vec<RankDigest>, Vec<usize>) = Default::default();
    let (mut folded, mut left) = (Vec::new(), MOST_ROWS);
    let mut written = Written::default();
    for (index, trace) in traces.iter().enumerate() {
        let of = OfTrace::read(index, trace, names, traces.len() == 1, &mut left)?;
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
    let file = json!({"folded": written.folded, "made_unix_ns": now()});
    let program = (!ranks.is_empty()).then(|| name(&saved.paths[0]));
    let mut overview = overview::together(overviews, program.as_deref(), file);
    overview["state"] = json!(saved.state());
    overview["first"] = json!(saved.first());
    answers.push(Answer::json("overview", &overview));
    // Two traces that are compared are no ranks.
    if digests.len() > 1 && (program.is_some() || traces.len() == 1) {
        answers.push(Answer::json("ranks", &together(&digests, &of_ranks)));
    }
    answers.extend(costs.answers());
    Ok(All { answers, written })
}

/// Answers of a capture.
fn captured(path: &Path) -> Result<All, Error> {
    let capture = Captured::open(path, name(path))?;
    let mut overview = capture.overview();
    let dependencies = capture.dependencies(0)?;
    let all = dependencies["node_count"].as_u64().unwrap_or(0);
    let folded = (all > NODES_AT_MOST as u64).then(|| {
        format!(
            "Of {} commands the first {} are in this file: `gapscope view` has all of them.",
            count(all),
            count(NODES_AT_MOST as u64)
        )
    });
    overview["file"] = json!({"folded": folded, "made_unix_ns": now()});
    if let (Some(folded), Some(remarks)) = (&folded, overview["capture"]["remarks"].as_array_mut())
    {
        remarks.push(json!(folded));
    }
    Ok(All {
        answers: vec![
            Answer::json("overview", &overview),
            Answer::json("t/0/dependencies", &dependencies),
        ],
        written: Written {
            folded,
            ..Written::default()
        },
    })
}

/// The time on the wall clock, as digits.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos()).to_string()
}

/// An answer, by what the page asks.
struct Answer {
    key: String,
    bytes: Vec<u8>,
}

impl Answer {
    fn new(key: impl Into<String>, bytes: Vec<u8>) -> Answer {
        Answer {
            key: key.into(),
            bytes,
        }
    }

    fn json(key: impl Into<String>, value: &Value) -> Answer {
        Answer::new(key, value.to_string().into_bytes())
    }
}

fn write(mut out: impl Write, answers: &[Answer]) -> io::Result<()> {
    let (before, after) = page::single();
    out.write_all(before.as_bytes())?;
    out.write_all(b"<script type=\"text/plain\" id=\"gapscope-data\">")?;
    let mut places = Map::new();
    let mut offset = 0;
    for Answer { key, bytes } in answers {
        places.insert(key.clone(), json!([offset, bytes.len()]));
        offset = (offset + bytes.len()).next_multiple_of(8);
    }
    let mut packed = GzEncoder::new(
        EncoderWriter::new(&mut out, &STANDARD),
        Compression::default(),
    );
    packed.write_all(&frame::head(&json!({"answers": places})))?;
    for Answer { bytes, .. } in answers {
        packed.write_all(bytes)?;
        packed.write_all(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()])?;
    }
    packed.finish()?.finish()?;
    out.write_all(b"</script>")?;
    out.write_all(after.as_bytes())
}
