//! Routes the page's HTTP requests to the functions that make the answers. An answer is a JSON message of the
//! protocol or a frame (columns of raw numbers); a refusal is a status with a sentence. A generation counts the
//! additions to a live trace, which is still being recorded, and tells what the page has already.

mod access;
mod answer;
mod preference_routes;
mod request;
mod sql;

use crate::analysed_trace::AnalysedTrace;
use crate::answers::{self, Extent, Side};
use crate::lanes::Columns;
use crate::notes::NotesError;
use crate::preferences::Preferences;
use crate::protocol::{Overview, Strings};
use crate::range_query::{RangeQuery, TrackRows};
use crate::served_capture::ServedCapture;
use crate::sql::Sql;
use crate::store::Store;
use crate::trace_dependencies::{self, DependencyScope};
use crate::traces::Traces;
use crate::track::{DrawnTable, TrackId};
use crate::{kernel_source, page, ranks, row_details, stack_samples};
use answer::{Answer, Content, Refusal, json};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Router, middleware};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use request::{Body, Key, Parameters, Range, Time, TraceRequest, blocking, interval};
use serde::Deserialize;
use std::sync::Arc;

/// An answer about a range has at most the rows that the page may hold divided by this number, since there are many
/// tracks.
const PART_SHARE: u64 = 64;

/// Everything that the routes answer from.
pub struct Served {
    pub traces: Traces,
    /// The capture, where one is served instead of traces.
    pub capture: Option<Arc<ServedCapture>>,
    /// The program that answers SQL.
    pub sql: Sql,
    pub preferences: Preferences,
    /// Rows of a trace that the page may hold: larger traces are shown in parts.
    pub page_rows: u64,
    /// The first part of every path: without the token, a request is refused.
    pub token: String,
    /// The port of the server on the loopback address.
    pub port: u16,
}

/// Returns the routes. All of them, and unknown paths too, are behind [`access::admit`].
pub fn router(served: Arc<Served>) -> Router {
    let trace = Router::new()
        .route("/strings", get(strings))
        .route("/track/{id}", get(track))
        .route("/track/{id}/label", get(track_labels))
        .route("/counter/{id}", get(counter))
        .route("/findings", get(findings))
        .route("/code", get(samples))
        .route("/code/idle", get(idle_samples))
        .route("/rows/{table}/{row}", get(row))
        .route("/dependencies", get(all_dependencies))
        .route("/dependencies/{table}/{row}", get(dependencies))
        .route("/source/{row}", get(kernel_source))
        .route("/range", get(range))
        .route("/instances", get(instances))
        .route("/graph", get(graph))
        .route("/row/{table}", get(sql::row))
        .route("/arrangement", put(preference_routes::arrange))
        .route("/notes", get(notes).put(replace_notes));
    let api = Router::new()
        .route("/overview", get(overview))
        .route("/live", get(live))
        .route("/compare", get(compare))
        .route("/ranks", get(ranked))
        .route("/query", get(sql::rows))
        .route("/catalogue", get(sql::catalogue))
        .route(
            "/queries",
            get(preference_routes::queries).put(preference_routes::ask),
        )
        .nest("/t/{trace}", trace);
    Router::new()
        .route("/{token}/", get(async || file("index.html")))
        .route(
            "/{token}/{file}",
            get(async |Key(PageFile { file: name })| file(&name)),
        )
        .nest("/{token}/api", api)
        .fallback(async || Refusal::not_found())
        .layer(middleware::from_fn_with_state(
            served.clone(),
            access::admit,
        ))
        .with_state(served)
}

/// The name of a file of the page.
#[derive(Deserialize)]
struct PageFile {
    file: String,
}

/// Answers with a file of the page.
fn file(name: &str) -> Answer {
    let file = page::FILES.into_iter().find(|file| file.name == name);
    file.map(Content::File).ok_or_else(Refusal::not_found)
}

/// Answers with what the first drawing of all traces, or of the capture, needs.
async fn overview(State(served): State<Arc<Served>>) -> Answer {
    blocking(move || match &served.capture {
        Some(capture) => json(&capture.overview()),
        None => json(&Overview {
            page_rows: Some(served.page_rows),
            ..served.traces.overview(&served.preferences)?
        }),
    })
    .await
}

/// The generations of live traces that the page has already.
#[derive(Deserialize)]
struct KnownGenerations {
    /// The generations of all traces that the page has, with points between them.
    #[serde(default)]
    generations: String,
}

/// Answers as soon as a trace has more than the page, or after some seconds, and at once where nothing is recorded.
async fn live(
    State(served): State<Arc<Served>>,
    Parameters(known): Parameters<KnownGenerations>,
) -> Answer {
    let generations = known.generations.split('.').filter(|text| !text.is_empty());
    let generations: Vec<u64> = generations
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| Refusal::bad_request("`generations` are numbers with points between them."))?;
    blocking(move || json(&served.traces.wait_for_more(&generations)?)).await
}

/// The two sides of a comparison. The side `a` is before, `b` after; each is a trace by its index, and in it the work
/// under a label, in a range of time, or all.
#[derive(Deserialize)]
struct ComparedSides {
    #[serde(default)]
    a: usize,
    a_label: Option<String>,
    a_from: Option<Time>,
    a_to: Option<Time>,
    #[serde(default)]
    b: usize,
    b_label: Option<String>,
    b_from: Option<Time>,
    b_to: Option<Time>,
}

/// Answers with a comparison of two sides.
async fn compare(
    State(served): State<Arc<Served>>,
    Parameters(sides): Parameters<ComparedSides>,
) -> Answer {
    let before = extent(sides.a_label, sides.a_from, sides.a_to)?;
    let after = extent(sides.b_label, sides.b_from, sides.b_to)?;
    blocking(move || {
        let side = |trace, extent| match served.traces.at(trace) {
            Some(store) => Ok(Side { store, extent }),
            None => Err(Refusal::not_found()),
        };
        let (before, after) = (side(sides.a, before)?, side(sides.b, after)?);
        json(&answers::comparison(before, after)?)
    })
    .await
}

async fn ranked(State(served): State<Arc<Served>>) -> Answer {
    blocking(move || json(&ranks::compared(&served.traces.of_ranks())?)).await
}

/// Returns the part of a trace that is compared: a label wins over a range, and without both it is everything.
fn extent(label: Option<String>, from: Option<Time>, to: Option<Time>) -> Result<Extent, Refusal> {
    let range = interval(from, to)?;
    Ok(match (label, range) {
        (Some(label), _) => Extent::Label(label),
        (None, Some(range)) => Extent::Range(range),
        (None, None) => Extent::All,
    })
}

/// How much of a live trace the page has already, such as the number of its texts.
#[derive(Deserialize)]
struct KnownGeneration {
    #[serde(default)]
    after: u64,
}

/// Answers with the texts that the page does not have yet: `after` is how many it has.
async fn strings(request: TraceRequest, Parameters(known): Parameters<KnownGeneration>) -> Answer {
    request
        .answer(move |store| {
            let snapshot = store.snapshot()?;
            let all = snapshot.texts.all();
            let from = usize::try_from(known.after).map_or(all.len(), |from| from.min(all.len()));
            json(&Strings {
                from,
                strings: &all[from..],
            })
        })
        .await
}

/// The id of a track in a path.
#[derive(Deserialize)]
struct TrackKey {
    id: String,
}

impl TrackKey {
    fn id(&self) -> Result<TrackId, Refusal> {
        TrackId::parse(&self.id).ok_or_else(Refusal::not_found)
    }
}

/// Answers with a frame; refuses where there is none.
fn frame(frame: Option<Vec<u8>>) -> Answer {
    frame.map(Content::Frame).ok_or_else(Refusal::not_found)
}

/// The parameters that choose rows of a track: those after a generation, or those in a range.
#[derive(Deserialize)]
struct TrackPart {
    #[serde(default)]
    after: u64,
    from: Option<Time>,
    to: Option<Time>,
}

impl TrackPart {
    fn rows(&self, served: &Served) -> Result<TrackRows, Refusal> {
        let most_rows = (served.page_rows / PART_SHARE) as usize;
        Ok(match interval(self.from, self.to)? {
            Some(range) => TrackRows::In(RangeQuery { range, most_rows }),
            None => TrackRows::After(self.after),
        })
    }
}

/// Answers with the frame of a track's rows, or of the gaps of a GPU.
async fn track(
    request: TraceRequest,
    State(served): State<Arc<Served>>,
    Key(key): Key<TrackKey>,
    Parameters(part): Parameters<TrackPart>,
) -> Answer {
    let rows = part.rows(&served)?;
    request
        .answer(move |store| match key.id()? {
            TrackId::Gaps(gpu) => {
                ask_of_causes(store, move |all| answers::gaps(all, gpu as usize, rows))
            }
            id => frame(store.snapshot()?.frame(id, rows, Columns::Rows)),
        })
        .await
}

/// Answers with the labels of a track's rows, in the order of the rows; only tracks of work and command buffers have
/// them.
async fn track_labels(
    request: TraceRequest,
    State(served): State<Arc<Served>>,
    Key(key): Key<TrackKey>,
    Parameters(part): Parameters<TrackPart>,
) -> Answer {
    let rows = part.rows(&served)?;
    request
        .answer(move |store| match key.id()? {
            id @ (TrackId::Work(_) | TrackId::CommandBuffers(_)) => {
                frame(store.full()?.frame(id, rows, Columns::Labels))
            }
            _ => Err(Refusal::not_found()),
        })
        .await
}

/// Answers with a frame that rests on the causes of gaps.
fn ask_of_causes(
    store: &Store,
    analyse: impl FnOnce(&AnalysedTrace) -> Option<Vec<u8>> + Send + 'static,
) -> Answer {
    let gaps =
        store.analyst().ask(
            move |all| match unknown_because(all.timeline.trace, CAUSES) {
                Some(sentence) => Err(Refusal::unknown(sentence)),
                None => Ok(analyse(all)),
            },
        )?;
    frame(gaps?)
}

async fn counter(request: TraceRequest, Key(key): Key<TrackKey>) -> Answer {
    request
        .answer(move |store| {
            let id = key.id()?;
            frame(store.analyst().ask(move |all| answers::counter(all, id))?)
        })
        .await
}

/// Answers with all findings, and waits for their analysis.
async fn findings(request: TraceRequest) -> Answer {
    request
        .answer(|store| {
            let findings = store.analyst().ask(answers::findings)?;
            Ok(Content::Json(findings.to_vec()))
        })
        .await
}

async fn samples(request: TraceRequest) -> Answer {
    request
        .answer(|store| {
            let allowed = store.sources().clone();
            let analyst = store.analyst();
            frame(analyst.ask(move |analysed| stack_samples::samples(analysed, &allowed))?)
        })
        .await
}

async fn idle_samples(request: TraceRequest) -> Answer {
    request
        .answer(|store| ask_of_causes(store, stack_samples::idle))
        .await
}

/// Only the recorder writes to the folder of a live trace.
const LIVE: &str = "Notes can be written when the recording has ended.";

async fn notes(request: TraceRequest) -> Answer {
    request
        .answer(|store| {
            let live = store.status()?.live;
            json(&store.notes().answer(live.then_some(LIVE)))
        })
        .await
}

/// Replaces the notes by those that were sent; refuses while the trace is recorded, or where they were changed
/// meanwhile.
async fn replace_notes(request: TraceRequest, Body(sent): Body) -> Answer {
    request
        .answer(move |store| {
            if store.status()?.live {
                return Err(Refusal::new(StatusCode::CONFLICT, LIVE));
            }
            store.notes().replace(&sent)?;
            json(&store.notes().answer(None))
        })
        .await
}

impl From<NotesError> for Refusal {
    fn from(error: NotesError) -> Refusal {
        let status = match error {
            NotesError::Malformed(_) | NotesError::Invalid(_) => StatusCode::BAD_REQUEST,
            NotesError::Changed => StatusCode::CONFLICT,
            NotesError::Unreadable { .. } | NotesError::Unwritable(_) => StatusCode::FORBIDDEN,
        };
        Refusal::new(status, error)
    }
}

/// A row of a table in a path.
#[derive(Deserialize)]
struct RowKey {
    table: String,
    row: usize,
}

async fn row(request: TraceRequest, Key(RowKey { table, row }): Key<RowKey>) -> Answer {
    request
        .answer(move |store| {
            let details = match table.as_str() {
                "gaps" => store.analyst().ask(move |all| answers::gap(all, row))?,
                table => row_details::details(&*store.full()?, table, row),
            };
            json(&details.ok_or_else(Refusal::not_found)?)
        })
        .await
}

/// The part of a graph of dependencies that is asked for.
#[derive(Deserialize)]
struct PartParameters {
    from: Option<Time>,
    to: Option<Time>,
    /// The index of the first node of the part.
    #[serde(default)]
    first: usize,
    /// A row such as `dispatches.17`.
    around: Option<String>,
}

/// Answers with a part of the dependencies of the capture, or of a range of a trace, or of the work around a row.
async fn all_dependencies(
    State(served): State<Arc<Served>>,
    request: Result<TraceRequest, Refusal>,
    Parameters(part): Parameters<PartParameters>,
) -> Answer {
    if let Some(capture) = served.capture.clone() {
        return blocking(move || json(&capture.dependencies(part.first)?)).await;
    }
    let window = interval(part.from, part.to)?;
    request?
        .answer(move |store| {
            let which = match part.around {
                Some(row) => around(store, &row)?,
                None => DependencyScope::Range {
                    window,
                    first: part.first,
                },
            };
            let analyst = store.analyst();
            json(&analyst.ask_of_all(move |all| trace_dependencies::dependencies(all, &which))?)
        })
        .await
}

/// Finds a dispatch or a transfer by its name `TABLE.ROW`.
fn around(store: &Store, name: &str) -> Result<DependencyScope, Refusal> {
    let (table, row) = name.split_once('.').ok_or_else(Refusal::not_found)?;
    let row: usize = row.parse().map_err(|_| Refusal::not_found())?;
    match drawn_table(store, table, row)? {
        source @ (DrawnTable::Dispatch | DrawnTable::Transfer) => {
            Ok(DependencyScope::Around { source, row })
        }
        _ => Err(Refusal::not_found()),
    }
}

/// Returns the table of a name, where it is drawn and has the row.
fn drawn_table(store: &Store, name: &str, row: usize) -> Result<DrawnTable, Refusal> {
    let source = DrawnTable::from_name(name).ok_or_else(Refusal::not_found)?;
    match row < source.rows(&store.snapshot()?.trace) {
        true => Ok(source),
        false => Err(Refusal::not_found()),
    }
}

/// Answers with what a dispatch or transfer depends on, and what depends on it.
async fn dependencies(request: TraceRequest, Key(RowKey { table, row }): Key<RowKey>) -> Answer {
    request
        .answer(move |store| {
            let source = drawn_table(store, &table, row)?;
            let analyst = store.analyst();
            json(&analyst.ask_of_all(move |all| answers::dependencies(all, source, row))?)
        })
        .await
}

/// A row of the table of kernels in a path.
#[derive(Deserialize)]
struct KernelKey {
    row: usize,
}

async fn kernel_source(request: TraceRequest, Key(KernelKey { row }): Key<KernelKey>) -> Answer {
    request
        .answer(move |store| {
            let trace = &store.snapshot()?.trace;
            let source = kernel_source::kernel_source(trace, store.folder(), row);
            json(&source.ok_or_else(Refusal::not_found)?)
        })
        .await
}

async fn range(request: TraceRequest, Parameters(range): Parameters<Range>) -> Answer {
    let range = range
        .interval()?
        .ok_or_else(|| Refusal::bad_request("A range has a start and an end: from=F&to=E."))?;
    request
        .answer(move |store| json(&store.analyst().ask(move |all| answers::range(all, range))?))
        .await
}

/// The path of a label, from the outermost to its own text.
#[derive(Deserialize)]
struct LabelPath {
    label: Option<String>,
}

/// Answers with the times for which a label was set.
async fn instances(request: TraceRequest, Parameters(path): Parameters<LabelPath>) -> Answer {
    let label = path
        .label
        .ok_or_else(|| Refusal::bad_request("Which label? label=PATH."))?;
    request
        .answer(move |store| {
            json(
                &store
                    .analyst()
                    .ask(move |all| answers::instances(all, &label))?,
            )
        })
        .await
}

/// Answers with the graph of the data flow between kernels, in all of the trace or in a range.
async fn graph(request: TraceRequest, Parameters(range): Parameters<Range>) -> Answer {
    let range = range.interval()?;
    request
        .answer(move |store| {
            json(
                &store
                    .analyst()
                    .ask_of_all(move |all| answers::graph(all, range))?,
            )
        })
        .await
}
