//! The server: who may ask, and who answers what.

use crate::answers::{self, Side};
use crate::lanes::Columns;
use crate::store::Store;
use crate::traces::Traces;
use crate::track::{Source, TrackId};
use crate::{Error, page, rows, source};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use gapscope_analysis::intervals::Interval;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// What is served, to whom.
pub struct Served {
    pub traces: Traces,
    /// The first part of every path.
    pub token: String,
    pub port: u16,
}

/// An answer: its type and bytes, or why there is none.
type Answer = Result<(&'static str, Cow<'static, [u8]>), Refusal>;

/// Why there is no answer.
struct Refusal {
    status: StatusCode,
    sentence: String,
}

const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            sentence: error.to_string(),
        }
    }
}

fn refuse(status: StatusCode, sentence: &str) -> Refusal {
    Refusal {
        status,
        sentence: sentence.to_owned(),
    }
}

fn not_found() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "There is no such thing.")
}

fn wrong(sentence: &str) -> Refusal {
    refuse(StatusCode::BAD_REQUEST, sentence)
}

/// The routes: there is one way in, so that nothing is reachable by oversight.
pub fn router(served: Arc<Served>) -> Router {
    Router::new().fallback(handle).with_state(served)
}

async fn handle(State(served): State<Arc<Served>>, request: Request) -> Response {
    let answer = match admit(
        &served,
        request.method(),
        request.headers(),
        request.uri().path(),
    ) {
        Ok(path) => {
            let (path, query) = (
                path.to_owned(),
                request.uri().query().unwrap_or_default().to_owned(),
            );
            // Answers read files and compute.
            let answer = tokio::task::spawn_blocking(move || served.answer(&path, &query)).await;
            answer.unwrap_or_else(|_| Err(Error::Analysis.into()))
        }
        Err(refusal) => Err(refusal),
    };
    respond(answer)
}

/// The path behind the token, if the request may be answered.
fn admit<'r>(
    served: &Served,
    method: &Method,
    headers: &HeaderMap,
    path: &'r str,
) -> Result<&'r str, Refusal> {
    // A page elsewhere whose name was made to lead here names itself.
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts
        .next()
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let mine = ["127.0.0.1", "localhost"]
        .iter()
        .any(|name| host == format!("{name}:{}", served.port));
    if !mine || hosts.next().is_some() {
        return Err(refuse(
            StatusCode::FORBIDDEN,
            "This server answers to its own address only.",
        ));
    }
    let inside = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let Some((_, path)) = inside.filter(|(token, _)| same(token, &served.token)) else {
        return Err(not_found());
    };
    if method != Method::GET {
        return Err(refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "Only GET is answered.",
        ));
    }
    Ok(path)
}

/// Compares without telling by its time how much was right.
fn same(given: &str, token: &str) -> bool {
    given.len() == token.len()
        && given
            .bytes()
            .zip(token.bytes())
            .fold(0, |all, (a, b)| all | (a ^ b))
            == 0
}

fn respond(answer: Answer) -> Response {
    let (status, kind, bytes) = match answer {
        Ok((kind, bytes)) => (StatusCode::OK, kind, bytes),
        Err(Refusal { status, sentence }) => {
            let text = json!({"error": sentence}).to_string();
            (status, JSON, Cow::Owned(text.into_bytes()))
        }
    };
    let body = match bytes {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The parameters of a request.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(query: &str) -> Parameters {
        let pairs = form_urlencoded::parse(query.as_bytes());
        Parameters(pairs.into_owned().collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let text = self.text(name);
        text.map(|text| {
            text.parse()
                .map_err(|_| wrong(&format!("`{name}` is no number.")))
        })
        .transpose()
    }

    /// The known generations of all traces, with points between them.
    fn generations(&self) -> Result<Vec<u64>, Refusal> {
        let text = self.text("generations").unwrap_or_default();
        let numbers = text.split('.').filter(|text| !text.is_empty());
        numbers
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| wrong("`generations` are numbers with points between them."))
    }

    /// A time: the page may compute it, so it may have a fraction.
    fn time(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let time: Option<f64> = self.number(name)?;
        match time {
            Some(time) if !time.is_finite() || time.abs() > 9e18 => {
                Err(wrong(&format!("`{name}` is no time.")))
            }
            time => Ok(time.map(|time| time.round() as i64)),
        }
    }

    fn range(&self, from: &str, to: &str) -> Result<Option<Interval>, Refusal> {
        match (self.time(from)?, self.time(to)?) {
            (Some(from), Some(to)) if from <= to => Ok(Some(Interval::new(from, to))),
            (None, None) => Ok(None),
            _ => Err(wrong(
                "A range has a begin and an end that is not before it.",
            )),
        }
    }
}

fn value(value: &Value) -> Answer {
    Ok((JSON, Cow::Owned(value.to_string().into_bytes())))
}

fn frame(frame: Option<Vec<u8>>) -> Answer {
    let frame = frame.ok_or_else(not_found)?;
    Ok((BINARY, Cow::Owned(frame)))
}

impl Served {
    fn answer(&self, path: &str, query: &str) -> Answer {
        let path = if path.is_empty() { "index.html" } else { path };
        if let Some((_, kind, bytes)) = page::FILES.iter().find(|(name, _, _)| *name == path) {
            return Ok((kind, Cow::Borrowed(bytes)));
        }
        let key = path.strip_prefix("api/").ok_or_else(not_found)?;
        let parameters = Parameters::of(query);
        let segments: Vec<&str> = key.split('/').collect();
        match segments.as_slice() {
            ["overview"] => value(&self.traces.overview()?),
            ["live"] => value(&self.traces.wait_for_more(&parameters.generations()?)?),
            ["compare"] => self.compare(&parameters),
            ["t", trace, rest @ ..] => {
                let store = trace
                    .parse::<usize>()
                    .ok()
                    .and_then(|trace| self.traces.at(trace));
                let store = store.ok_or_else(not_found)?;
                let answer = of_trace(&store, rest, &parameters);
                // Editions only grow: if it is still the one that was asked for, the answer is of it.
                match parameters.number::<u64>("edition")? {
                    Some(edition) if store.edition()? != edition => Err(refuse(
                        StatusCode::CONFLICT,
                        "The recording was completed meanwhile: ask for everything anew.",
                    )),
                    _ => answer,
                }
            }
            _ => Err(not_found()),
        }
    }

    fn compare(&self, parameters: &Parameters) -> Answer {
        let side = |letter: char| {
            let trace: usize = parameters.number(&letter.to_string())?.unwrap_or(0);
            let store = self.traces.at(trace).ok_or_else(not_found)?;
            let range = parameters.range(&format!("{letter}_from"), &format!("{letter}_to"))?;
            let label = parameters.text(&format!("{letter}_label"));
            let side = match (label, range) {
                (Some(label), _) => Side::Label(label.to_owned()),
                (None, Some(range)) => Side::Range(range),
                (None, None) => Side::All,
            };
            Ok::<_, Refusal>((store, side))
        };
        let ((before, before_side), (after, after_side)) = (side('a')?, side('b')?);
        match answers::comparison((&before, before_side), (&after, after_side))? {
            Ok(comparison) => value(&comparison),
            Err(sentence) => Err(wrong(&sentence)),
        }
    }
}

fn of_trace(store: &Store, key: &[&str], parameters: &Parameters) -> Answer {
    let row = |text: &str| text.parse::<usize>().map_err(|_| not_found());
    let after = || Ok::<u64, Refusal>(parameters.number("after")?.unwrap_or(0));
    match key {
        ["strings"] => {
            let snapshot = store.snapshot()?;
            let all = snapshot.texts.all();
            let from = parameters.number("after")?.unwrap_or(0).min(all.len());
            value(&json!({"from": from, "strings": all[from..]}))
        }
        ["track", id, rest @ ..] => {
            let id = TrackId::parse(id).ok_or_else(not_found)?;
            match (id, rest) {
                (TrackId::Gaps(gpu), []) => frame(
                    store
                        .analyst()
                        .ask(move |all| answers::gaps(all, gpu as usize))?,
                ),
                (_, []) => frame(store.snapshot()?.frame(id, after()?, Columns::Rows)),
                (TrackId::Work(_) | TrackId::CommandBuffers(_), ["label"]) => {
                    frame(store.full()?.frame(id, after()?, Columns::Labels))
                }
                _ => Err(not_found()),
            }
        }
        ["counter", id] => {
            let id = TrackId::parse(id).ok_or_else(not_found)?;
            frame(store.analyst().ask(move |all| answers::counter(all, id))?)
        }
        ["findings"] => {
            let findings = store.analyst().ask(answers::findings)?;
            Ok((JSON, Cow::Owned(findings.to_vec())))
        }
        ["rows", "gaps", at] => {
            let at = row(at)?;
            let gap = store.analyst().ask(move |all| answers::gap(all, at))?;
            value(&gap.ok_or_else(not_found)?)
        }
        ["rows", table, at] => {
            let details = rows::details(&*store.full()?, table, row(at)?);
            value(&details.ok_or_else(not_found)?)
        }
        ["dependencies", table, at] => {
            let (source, at) = (drawn(table).ok_or_else(not_found)?, row(at)?);
            if at >= source.rows(&store.snapshot()?.trace) {
                return Err(not_found());
            }
            value(
                &store
                    .analyst()
                    .ask(move |all| answers::dependencies(all, source, at))?,
            )
        }
        ["source", at] => {
            let snapshot = store.snapshot()?;
            let source = source::source(&snapshot.trace, store.folder(), row(at)?);
            value(&source.ok_or_else(not_found)?)
        }
        ["range"] => {
            let range = parameters.range("from", "to")?;
            let range =
                range.ok_or_else(|| wrong("A range has a begin and an end: from=F&to=E."))?;
            value(&store.analyst().ask(move |all| answers::range(all, range))?)
        }
        ["instances"] => {
            let label = parameters
                .text("label")
                .ok_or_else(|| wrong("Which label? label=PATH."))?;
            let label = label.to_owned();
            value(
                &store
                    .analyst()
                    .ask(move |all| answers::instances(all, &label))?,
            )
        }
        ["graph"] => {
            let range = parameters.range("from", "to")?;
            value(&store.analyst().ask(move |all| answers::graph(all, range))?)
        }
        _ => Err(not_found()),
    }
}

fn drawn(table: &str) -> Option<Source> {
    Source::ALL
        .into_iter()
        .find(|source| source.table() == table)
}
