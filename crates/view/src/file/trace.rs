//! What a file has of one trace.

use super::comparisons::OfSides;
use super::{Answer, MOST_ROWS};
use crate::analyst::Analysed;
use crate::lanes::Columns;
use crate::notes::Notes;
use crate::recorded::{self, Which};
use crate::snapshot::Snapshot;
use crate::traces::Listed;
use crate::track::TrackId;
use crate::{Error, answers, code, overview, rows, source};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_comparison::ranks::RankDigest;
use gapscope_timeline::Timeline;
use gapscope_timeline::quantity as number;
use gapscope_trace::parallel;
use gapscope_trace::tables::Table;
use gapscope_trace::{Diagnostic, Names, UnreadTable, table_sizes};
use serde_json::{Value, json};
use std::sync::Arc;

/// Tracks of a folded trace that are small enough to be there nevertheless, in rows.
const SMALL_TRACK: u64 = 20_000;
/// Rows in a block of details.
const BLOCK: usize = 256;
/// Details of a table with more rows than this are left out: one row is some hundred bytes.
const MOST_DETAILS: usize = 200_000;

/// What a file has of one trace.
pub(super) struct OfTrace {
    pub answers: Vec<Answer>,
    /// Its part of the overview.
    pub overview: Value,
    /// What is left out and why, a sentence each.
    pub left_out: Vec<String>,
    /// What was changed after it was written, a sentence each.
    pub changed: Vec<String>,
    /// What could not be read.
    pub unread: Vec<UnreadTable>,
    /// What its work and that of its labels cost, to be compared.
    pub costs: OfSides,
    /// Its ranks.
    pub digests: Vec<RankDigest>,
}

impl OfTrace {
    /// Reads the trace at an index, with these names for kernels. `alone`: the file has no other; `left`: drawn rows that it
    /// has room for.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(
        index: usize,
        listed: &Listed,
        names: Option<&Arc<Names>>,
        alone: bool,
        left: &mut u64,
    ) -> Result<OfTrace, Error> {
        let snapshot = Arc::new(Snapshot::full(&listed.path, names)?);
        let (timeline, _) = parallel::both(|| Timeline::new(&snapshot.trace), || snapshot.survey());
        Ok(of_snapshot(
            index, listed, &snapshot, &timeline, alone, left,
        ))
    }
}

fn of_snapshot(
    index: usize,
    listed: &Listed,
    snapshot: &Arc<Snapshot>,
    timeline: &Timeline,
    alone: bool,
    left: &mut u64,
) -> OfTrace {
    let analysed = Analysed::of(&listed.name, snapshot.clone(), timeline, &snapshot.remarks);
    let drawn = snapshot.drawn();
    let whole = drawn <= *left;
    *left -= if whole { drawn } else { 0 };
    let samples = snapshot.trace.tables.samples.len() as u64;
    let mut left_out = Vec::new();
    if !whole {
        let others = match *left {
            MOST_ROWS => String::new(),
            left => format!(", of which {} are left by the others", number::count(left)),
        };
        left_out.push(format!(
            "The trace has {} rows on its tracks, and a file holds {}{others}: tracks with more than {} \
             are drawn as their busy share in {} slices of time, and details of single rows are left out. \
             `gapscope view` shows all.",
            number::count(drawn),
            number::count(MOST_ROWS),
            number::count(SMALL_TRACK),
            number::count(crate::survey::BINS as u64)
        ));
    }
    if samples > MOST_ROWS {
        left_out.push(format!(
            "The {} samples of its threads are left out: a file holds {}.",
            number::count(samples),
            number::count(MOST_ROWS)
        ));
    }
    let version = snapshot.trace.manifest.format_version;
    let sizes = table_sizes(&listed.path, version).unwrap_or_default();
    let overview = overview::overview(snapshot, &listed.name, &sizes);
    let key = |rest: &str| format!("t/{index}/{rest}");

    // They need the order of all work, and nothing that the findings rest on.
    let of_data = || {
        let analysed = Analysed::of(&listed.name, snapshot.clone(), timeline, &snapshot.remarks);
        let all = Which::Range {
            window: None,
            first: 0,
        };
        [
            Answer::json(key("graph"), &answers::graph(&analysed, None)),
            Answer::json(
                key("dependencies"),
                &recorded::dependencies(&analysed, &all),
            ),
        ]
    };
    let findings = || Answer::new(key("findings"), answers::findings(&analysed).to_vec());
    let (findings, of_data) = parallel::both(findings, of_data);
    let mut answers: Vec<Answer> = std::iter::once(findings).chain(of_data).collect();
    let (found, rank) = (analysed.found(), listed.rank.unwrap_or(0));
    let ((rest, mut changed), digests) = parallel::both(
        || rest(index, listed, &analysed, whole),
        || RankDigest::from_timeline(timeline, found, rank),
    );
    answers.extend(rest);
    let manifest = Diagnostic::of_manifest(&listed.path, &snapshot.trace.manifest);
    changed.extend(manifest.map(|diagnostic| diagnostic.to_string()));
    OfTrace {
        answers,
        overview,
        left_out,
        changed,
        unread: snapshot.trace.unread.clone(),
        costs: OfSides::of(&analysed, whole, alone),
        digests,
    }
}

/// What else a file has of a trace: samples, tracks, notes, texts, sources and, of a `whole` one, rows. With it what was changed after it was
/// written, a sentence each.
fn rest(
    index: usize,
    listed: &Listed,
    analysed: &Analysed,
    whole: bool,
) -> (Vec<Answer>, Vec<String>) {
    let snapshot = &analysed.snapshot;
    let key = |rest: &str| format!("t/{index}/{rest}");
    let mut answers = Vec::new();
    if snapshot.trace.tables.samples.len() as u64 <= MOST_ROWS {
        let samples = code::samples(analysed);
        answers.extend(samples.map(|frame| Answer::new(key("code"), frame)));
        if unknown_because(&snapshot.trace, CAUSES).is_none() {
            let idle = code::idle(analysed);
            answers.extend(idle.map(|frame| Answer::new(key("code/idle"), frame)));
        }
    }
    for track in overview::layout(snapshot).1 {
        let Some(id) = TrackId::parse(&track.id) else {
            continue;
        };
        match id {
            TrackId::Counter(_) => {
                let counter = answers::counter(analysed, id);
                answers
                    .extend(counter.map(|frame| Answer::new(key(&format!("counter/{id}")), frame)));
            }
            TrackId::Samples(_) => {}
            TrackId::Gaps(_) if unknown_because(&snapshot.trace, CAUSES).is_some() => {}
            TrackId::Gaps(gpu) => {
                let gaps = analysed.gaps().causes.len() as u64;
                if whole || gaps <= SMALL_TRACK {
                    let frame = answers::gaps(analysed, gpu as usize, None);
                    answers
                        .extend(frame.map(|frame| Answer::new(key(&format!("track/{id}")), frame)));
                }
            }
            _ if whole || track.rows.unwrap_or(0) <= SMALL_TRACK => {
                let frame = snapshot.frame(id, 0, Columns::Rows);
                answers.extend(frame.map(|frame| Answer::new(key(&format!("track/{id}")), frame)));
                if matches!(id, TrackId::Work(_) | TrackId::CommandBuffers(_)) {
                    let labels = snapshot.frame(id, 0, Columns::Labels);
                    answers.extend(
                        labels.map(|frame| Answer::new(key(&format!("track/{id}/label")), frame)),
                    );
                }
            }
            _ => {}
        }
    }
    let notes = Notes::of(&listed.path).answer(Some(
        "This file is not changed: `gapscope view` of the trace writes notes.",
    ));
    answers.push(Answer::json(key("notes"), &notes));
    let strings = json!({"from": 0, "strings": snapshot.texts.all()});
    answers.push(Answer::json(key("strings"), &strings));
    let mut changed = Vec::new();
    for row in 0..snapshot.trace.tables.kernels.len() {
        let source = source::source(&snapshot.trace, &listed.path, row);
        if let Some(source) = &source
            && source.get("changed").is_some()
            && let Some(sentence) = source["missing"].as_str()
            && !changed.iter().any(|said| said == sentence)
        {
            changed.push(sentence.to_owned());
        }
        answers.extend(source.map(|source| Answer::json(key(&format!("source/{row}")), &source)));
    }
    if whole {
        details(index, analysed, &mut answers);
    }
    (answers, changed)
}

fn details(index: usize, analysed: &Analysed, answers: &mut Vec<Answer>) {
    let mut add = |table: &str, row: &dyn Fn(usize) -> Option<Value>| {
        let mut at = 0;
        while at < MOST_DETAILS {
            let block: Vec<Value> = (at..at + BLOCK).map_while(row).collect();
            let last = block.len() < BLOCK;
            if !block.is_empty() {
                let key = format!("t/{index}/rows/{table}/{}", at / BLOCK);
                answers.push(Answer::json(key, &Value::from(block)));
            }
            if last {
                return;
            }
            at += BLOCK;
        }
    };
    for table in rows::TABLES {
        add(table, &|row| rows::details(&analysed.snapshot, table, row));
    }
    add("gaps", &|row| answers::gap(analysed, row));
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::{Trace, TraceWriter};

    #[test]
    fn traces_share_the_room_of_a_file_in_their_order() {
        let text = "device id=1 uuid=aa\nqueue id=1 device=1\nkernel id=1 name=k
             dispatch queue=1 kernel=1 start_ns=0us duration_ns=5us
             dispatch queue=1 kernel=1 start_ns=9us duration_ns=5us";
        let trace = Trace::from_text(text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gapscope");
        let mut writer = TraceWriter::create(&path).unwrap();
        *writer.tables_mut() = trace.tables;
        writer.finish(&trace.manifest).unwrap();
        let listed = Listed {
            name: "a".to_owned(),
            path,
            rank: None,
        };
        let drawn = Snapshot::full(&listed.path, None).unwrap().drawn();
        let mut left = 2 * drawn - 1;
        let first = OfTrace::read(0, &listed, None, false, &mut left).unwrap();
        assert_eq!((first.left_out.len(), left), (0, drawn - 1));
        let second = OfTrace::read(1, &listed, None, false, &mut left).unwrap();
        assert!(
            second.left_out[0].contains(&format!("of which {left} are left by the others")),
            "{:?}",
            second.left_out
        );
        // Small tracks are in it nevertheless; details are not.
        let has = |of: &OfTrace, key: &str| of.answers.iter().any(|answer| answer.key == key);
        assert!(has(&first, "t/0/rows/dispatches/0") && has(&second, "t/1/track/q1.work"));
        assert!(!has(&second, "t/1/rows/dispatches/0"));
    }
}
