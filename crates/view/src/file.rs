//! The page and its answers as one file.

use crate::analyst::Analysed;
use crate::lanes::Columns;
use crate::notes::Notes;
use crate::recorded::{self, Which};
use crate::snapshot::Snapshot;
use crate::track::TrackId;
use crate::{Error, answers, code, frame, overview, page, rows, source};
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use gapscope_analysis::Timeline;
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_trace::tables::Table;
use gapscope_trace::{Diagnostic, Names, UnreadTable, table_sizes};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Rows that are drawn, at most, in a file that has all of them.
pub const MOST_ROWS: u64 = 200_000;
/// Tracks of a folded file that are small enough to be in it nevertheless, in rows.
const SMALL_TRACK: u64 = 20_000;
/// Rows in a block of details.
const BLOCK: usize = 256;
/// Details of a table with more rows than this are left out: one row is some hundred bytes.
const MOST_DETAILS: usize = 200_000;

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Writes the page with what it shows of the trace `folder` as one HTML file, with these names for kernels. The file must not exist.
///
/// # Errors
/// The trace cannot be opened or is not complete; the file exists or cannot be written.
pub fn write_file(
    folder: &Path,
    path: &Path,
    names: Option<&Arc<Names>>,
) -> Result<Written, Error> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::Exists {
            path: path.to_owned(),
        });
    }
    if !gapscope_trace::read_manifest(folder)?.complete {
        return Err(Error::Unfinished {
            path: folder.to_owned(),
        });
    }
    let snapshot = Snapshot::full(folder, names)?;
    let Answers {
        answers,
        folded,
        mut changed,
    } = answers_of(&snapshot, folder);
    let manifest = Diagnostic::of_manifest(folder, &snapshot.trace.manifest);
    changed.extend(manifest.map(|diagnostic| diagnostic.to_string()));
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
    let written = write(&mut out, &answers)
        .and_then(|()| out.flush())
        .and_then(|()| out.get_ref().metadata());
    match written {
        Ok(facts) => Ok(Written {
            bytes: facts.len(),
            folded,
            unread: snapshot.trace.unread,
            changed,
        }),
        Err(error) => {
            let _ = fs::remove_file(path);
            Err(unwritten(error))
        }
    }
}

/// The answers of a file.
struct Answers {
    answers: Vec<Answer>,
    /// What is left out and why, in a sentence.
    folded: Option<String>,
    /// Code of kernels that was changed, a sentence each.
    changed: Vec<String>,
}

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

fn answers_of(snapshot: &Snapshot, folder: &Path) -> Answers {
    let name = folder.canonicalize().ok();
    let name = name.as_deref().unwrap_or(folder).file_name();
    let name = name
        .unwrap_or(folder.as_os_str())
        .to_string_lossy()
        .into_owned();
    let timeline = Timeline::of(&snapshot.trace);
    let analysed = Analysed::of(&name, snapshot, &timeline);
    let drawn = snapshot.drawn();
    let whole = drawn <= MOST_ROWS;
    let samples = snapshot.trace.tables.samples.len() as u64;
    let mut left_out = Vec::new();
    if !whole {
        left_out.push(format!(
            "The trace has {drawn} rows on its tracks, and a file holds {MOST_ROWS}: tracks with more than {SMALL_TRACK} \
             are drawn as their busy share in {} slices of time, and details of single rows are left out. \
             `gapscope view` shows all.",
            crate::survey::BINS
        ));
    }
    if samples > MOST_ROWS {
        left_out.push(format!(
            "The {samples} samples of its threads are left out: a file holds {MOST_ROWS}."
        ));
    }
    let folded = (!left_out.is_empty()).then(|| left_out.join(" "));
    let made = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let file = json!({"folded": folded, "made_unix_ns": made.to_string()});
    let version = snapshot.trace.manifest.format_version;
    let sizes = table_sizes(folder, version).unwrap_or_default();
    let only = vec![overview::overview(snapshot, &name, &sizes)];
    let overview = overview::together(only, None, file);

    let mut answers = vec![
        Answer::json("overview", &overview),
        Answer::new("t/0/findings", answers::findings(&analysed).to_vec()),
        Answer::json("t/0/graph", &answers::graph(&analysed, None)),
        Answer::json(
            "t/0/dependencies",
            &recorded::dependencies(
                &analysed,
                &Which::Range {
                    window: None,
                    first: 0,
                },
            ),
        ),
    ];
    if samples <= MOST_ROWS {
        let samples = code::samples(&analysed);
        answers.extend(samples.map(|frame| Answer::new("t/0/code", frame)));
        if unknown_because(&snapshot.trace, CAUSES).is_none() {
            let idle = code::idle(&analysed);
            answers.extend(idle.map(|frame| Answer::new("t/0/code/idle", frame)));
        }
    }
    for track in overview::layout(snapshot).1 {
        let Some(id) = TrackId::parse(&track.id) else {
            continue;
        };
        match id {
            TrackId::Counter(_) => {
                let counter = answers::counter(&analysed, id);
                answers
                    .extend(counter.map(|frame| Answer::new(format!("t/0/counter/{id}"), frame)));
            }
            TrackId::Samples(_) => {}
            TrackId::Gaps(_) if unknown_because(&snapshot.trace, CAUSES).is_some() => {}
            TrackId::Gaps(gpu) => {
                let gaps = analysed.gaps().causes.len() as u64;
                if whole || gaps <= SMALL_TRACK {
                    let frame = answers::gaps(&analysed, gpu as usize);
                    answers
                        .extend(frame.map(|frame| Answer::new(format!("t/0/track/{id}"), frame)));
                }
            }
            _ if whole || track.rows.unwrap_or(0) <= SMALL_TRACK => {
                let frame = snapshot.frame(id, 0, Columns::Rows);
                answers.extend(frame.map(|frame| Answer::new(format!("t/0/track/{id}"), frame)));
                if matches!(id, TrackId::Work(_) | TrackId::CommandBuffers(_)) {
                    let labels = snapshot.frame(id, 0, Columns::Labels);
                    answers.extend(
                        labels.map(|frame| Answer::new(format!("t/0/track/{id}/label"), frame)),
                    );
                }
            }
            _ => {}
        }
    }
    let notes = Notes::of(folder).answer(Some(
        "This file is not changed: `gapscope view` of the trace writes notes.",
    ));
    answers.push(Answer::json("t/0/notes", &notes));
    let strings = json!({"from": 0, "strings": snapshot.texts.all()});
    answers.push(Answer::json("t/0/strings", &strings));
    let mut changed = Vec::new();
    for row in 0..snapshot.trace.tables.kernels.len() {
        let source = source::source(&snapshot.trace, folder, row);
        if let Some(source) = &source
            && source.get("changed").is_some()
            && let Some(sentence) = source["missing"].as_str()
            && !changed.iter().any(|said| said == sentence)
        {
            changed.push(sentence.to_owned());
        }
        answers.extend(source.map(|source| Answer::json(format!("t/0/source/{row}"), &source)));
    }
    if whole {
        details(&analysed, &mut answers);
    }
    Answers {
        answers,
        folded,
        changed,
    }
}

fn details(analysed: &Analysed, answers: &mut Vec<Answer>) {
    let mut add = |table: &str, row: &dyn Fn(usize) -> Option<Value>| {
        let mut at = 0;
        while at < MOST_DETAILS {
            let block: Vec<Value> = (at..at + BLOCK).map_while(row).collect();
            let last = block.len() < BLOCK;
            if !block.is_empty() {
                let key = format!("t/0/rows/{table}/{}", at / BLOCK);
                answers.push(Answer::json(key, &Value::from(block)));
            }
            if last {
                return;
            }
            at += BLOCK;
        }
    };
    for table in rows::TABLES {
        add(table, &|row| rows::details(analysed.snapshot, table, row));
    }
    add("gaps", &|row| answers::gap(analysed, row));
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
