//! Makes the answers that an HTML file has for one trace, and the sentences about those that it lacks for want of
//! room. The key of an answer is the path of the request, such as `t/0/findings` for the findings of the first trace.

use super::comparisons::ComparisonSides;
use super::{FileAnswer, MAX_FILE_ROWS};
use crate::analysed_trace::AnalysedTrace;
use crate::lanes::Columns;
use crate::notes::Notes;
use crate::protocol::{OrMissing, Row, Strings, TraceOverview};
use crate::range_query::TrackRows;
use crate::snapshot::Snapshot;
use crate::trace_dependencies::{self, DependencyScope};
use crate::traces::ListedTrace;
use crate::track::TrackId;
use crate::{Error, answers, kernel_source, overview, row_details, stack_samples};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_comparison::ranks::RankDigest;
use gapscope_report::source_lines::SourceAccess;
use gapscope_timeline::Timeline;
use gapscope_timeline::quantity as number;
use gapscope_trace::parallel;
use gapscope_trace::tables::Table;
use gapscope_trace::{Diagnostic, Names, UnreadTable, table_sizes};
use std::sync::Arc;

/// The most rows of a track that is kept even where the file has no room for all rows of the trace.
const SMALL_TRACK: u64 = 20_000;
/// Number of rows in one block of details.
const BLOCK: usize = 256;
/// The most rows of a table that have details, some hundred bytes each.
const MAX_DETAILED_ROWS: usize = 200_000;

/// The answers of a file for one trace, and what was left out of them.
pub(super) struct TraceAnswers {
    pub answers: Vec<FileAnswer>,
    /// The trace's part of the overview.
    pub overview: TraceOverview,
    /// A sentence for each part that is left out.
    pub left_out: Vec<String>,
    /// A sentence for each file that was changed after it was written.
    pub changed: Vec<String>,
    /// The tables that could not be read.
    pub unread: Vec<UnreadTable>,
    /// The costs of the trace and of its labels, for comparisons.
    pub costs: ComparisonSides,
    /// What a comparison of ranks (processes of a distributed program) needs of each rank in the trace.
    pub digests: Vec<RankDigest>,
}

impl TraceAnswers {
    /// Reads the trace at an index; `names` replaces recorded names of kernels. `alone` means that the file has no other trace, `left` counts the
    /// drawn rows for which the file has room.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub(super) fn read(
        index: usize,
        listed: &ListedTrace,
        names: Option<&Arc<Names>>,
        alone: bool,
        left: &mut u64,
    ) -> Result<TraceAnswers, Error> {
        let snapshot = Arc::new(Snapshot::full(&listed.path, names)?);
        let (timeline, _) = parallel::both(
            || Timeline::new(&snapshot.trace),
            || snapshot.density_index(),
        );
        Ok(of_snapshot(
            index, listed, &snapshot, &timeline, alone, left,
        ))
    }
}

/// Makes all answers of a trace that has been read, and takes its drawn rows from `left` where there is room for all
/// of them.
fn of_snapshot(
    index: usize,
    listed: &ListedTrace,
    snapshot: &Arc<Snapshot>,
    timeline: &Timeline,
    alone: bool,
    left: &mut u64,
) -> TraceAnswers {
    let analysed = AnalysedTrace::new(&listed.name, snapshot.clone(), timeline, &snapshot.remarks);
    let drawn = snapshot.drawn();
    let whole = drawn <= *left;
    *left -= if whole { drawn } else { 0 };
    let samples = snapshot.trace.tables.samples.len() as u64;
    let mut left_out = Vec::new();
    if !whole {
        let others = match *left {
            MAX_FILE_ROWS => String::new(),
            left => format!(", of which {} are left by the others", number::count(left)),
        };
        left_out.push(format!(
            "The trace has {} rows on its tracks, and a file holds {}{others}: tracks with more than {} \
             are drawn as their busy share in {} slices of time, and details of single rows are left out. \
             `gapscope view` shows all.",
            number::count(drawn),
            number::count(MAX_FILE_ROWS),
            number::count(SMALL_TRACK),
            number::count(crate::protocol::BINS as u64)
        ));
    }
    if samples > MAX_FILE_ROWS {
        left_out.push(format!(
            "The {} samples of its threads are left out: a file holds {}.",
            number::count(samples),
            number::count(MAX_FILE_ROWS)
        ));
    }
    let version = snapshot.trace.manifest.format_version;
    let sizes = table_sizes(&listed.path, version).unwrap_or_default();
    let overview = overview::overview(snapshot, &listed.name, &sizes);
    let key = |rest: &str| format!("t/{index}/{rest}");

    // Graph and dependencies need the order of all work, and nothing of the findings.
    let of_data = || {
        let analysed =
            AnalysedTrace::new(&listed.name, snapshot.clone(), timeline, &snapshot.remarks);
        let all = DependencyScope::Range {
            window: None,
            first: 0,
        };
        [
            FileAnswer::json(key("graph"), &answers::graph(&analysed, None)),
            FileAnswer::json(
                key("dependencies"),
                &trace_dependencies::dependencies(&analysed, &all),
            ),
        ]
    };
    let findings = || FileAnswer::new(key("findings"), answers::findings(&analysed).to_vec());
    let (findings, of_data) = parallel::both(findings, of_data);
    let mut answers: Vec<FileAnswer> = std::iter::once(findings).chain(of_data).collect();
    let (found, rank) = (analysed.found(), listed.rank.unwrap_or(0));
    let ((rest, mut changed), digests) = parallel::both(
        || rest(index, listed, &analysed, whole),
        || RankDigest::from_timeline(timeline, found, rank),
    );
    answers.extend(rest);
    let manifest = Diagnostic::for_manifest(&listed.path, &snapshot.trace.manifest);
    changed.extend(manifest.map(|diagnostic| diagnostic.to_string()));
    TraceAnswers {
        answers,
        overview,
        left_out,
        changed,
        unread: snapshot.trace.unread.clone(),
        costs: ComparisonSides::new(&analysed, whole, alone),
        digests,
    }
}

/// Makes the other answers: samples, tracks, notes, texts, sources and, for a `whole` trace, rows. Also returns a sentence for each file that was
/// changed after it was written.
fn rest(
    index: usize,
    listed: &ListedTrace,
    analysed: &AnalysedTrace,
    whole: bool,
) -> (Vec<FileAnswer>, Vec<String>) {
    let snapshot = &analysed.snapshot;
    let key = |rest: &str| format!("t/{index}/{rest}");
    let mut answers = Vec::new();
    let mut add = |rest: &str, frame: Option<Vec<u8>>| {
        answers.extend(frame.map(|frame| FileAnswer::new(key(rest), frame)));
    };
    let causes_known = unknown_because(&snapshot.trace, CAUSES).is_none();
    if snapshot.trace.tables.samples.len() as u64 <= MAX_FILE_ROWS {
        // Whoever gets the file shall see no more than the trace holds.
        let quoted = SourceAccess::Nothing;
        add("code", stack_samples::samples(analysed, &quoted));
        if causes_known {
            add("code/idle", stack_samples::idle(analysed));
        }
    }
    for track in overview::layout(snapshot).1 {
        let Some(id) = TrackId::parse(&track.id) else {
            continue;
        };
        let track_key = format!("track/{id}");
        let rows = TrackRows::After(0);
        match id {
            TrackId::Counter(_) => add(&format!("counter/{id}"), answers::counter(analysed, id)),
            TrackId::Samples(_) => {}
            TrackId::Gaps(gpu) if causes_known => {
                let gaps = analysed.gaps().causes.len() as u64;
                if whole || gaps <= SMALL_TRACK {
                    add(&track_key, answers::gaps(analysed, gpu as usize, rows));
                }
            }
            TrackId::Gaps(_) => {}
            _ if whole || track.rows.unwrap_or(0) <= SMALL_TRACK => {
                add(&track_key, snapshot.frame(id, rows, Columns::Rows));
                if matches!(id, TrackId::Work(_) | TrackId::CommandBuffers(_)) {
                    let labels = snapshot.frame(id, rows, Columns::Labels);
                    add(&format!("{track_key}/label"), labels);
                }
            }
            _ => {}
        }
    }
    let notes = Notes::new(&listed.path).answer(Some(
        "This file is not changed: `gapscope view` of the trace writes notes.",
    ));
    answers.push(FileAnswer::json(key("notes"), &notes));
    let strings = Strings {
        from: 0,
        strings: snapshot.texts.all(),
    };
    answers.push(FileAnswer::json(key("strings"), &strings));
    let mut changed = Vec::new();
    for row in 0..snapshot.trace.tables.kernels.len() {
        let source = kernel_source::kernel_source(&snapshot.trace, &listed.path, row);
        if let Some(OrMissing::Missing(source)) = &source
            && source.changed
            && !changed.contains(&source.missing)
        {
            changed.push(source.missing.clone());
        }
        let key = key(&format!("source/{row}"));
        answers.extend(source.map(|source| FileAnswer::json(key, &source)));
    }
    if whole {
        details(index, analysed, &mut answers);
    }
    (answers, changed)
}

/// Adds the details of the rows of each table and of the gaps, [`BLOCK`] rows in an answer, up to
/// [`MAX_DETAILED_ROWS`] of each table.
fn details(index: usize, analysed: &AnalysedTrace, answers: &mut Vec<FileAnswer>) {
    let mut add = |table: &str, row: &dyn Fn(usize) -> Option<Row>| {
        let mut at = 0;
        while at < MAX_DETAILED_ROWS {
            let block: Vec<Row> = (at..at + BLOCK).map_while(row).collect();
            let last = block.len() < BLOCK;
            if !block.is_empty() {
                let key = format!("t/{index}/rows/{table}/{}", at / BLOCK);
                answers.push(FileAnswer::json(key, &block));
            }
            if last {
                return;
            }
            at += BLOCK;
        }
    };
    for table in row_details::TABLES {
        add(table, &|row| {
            row_details::details(&analysed.snapshot, table, row)
        });
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
        let listed = ListedTrace {
            name: "a".to_owned(),
            path,
            rank: None,
        };
        let drawn = Snapshot::full(&listed.path, None).unwrap().drawn();
        let mut left = 2 * drawn - 1;
        let first = TraceAnswers::read(0, &listed, None, false, &mut left).unwrap();
        assert_eq!((first.left_out.len(), left), (0, drawn - 1));
        let second = TraceAnswers::read(1, &listed, None, false, &mut left).unwrap();
        assert!(
            second.left_out[0].contains(&format!("of which {left} are left by the others")),
            "{:?}",
            second.left_out
        );
        // Small tracks are in it nevertheless; details are not.
        let has = |of: &TraceAnswers, key: &str| of.answers.iter().any(|answer| answer.key == key);
        assert!(has(&first, "t/0/rows/dispatches/0") && has(&second, "t/1/track/q1.work"));
        assert!(!has(&second, "t/1/rows/dispatches/0"));
    }
}
