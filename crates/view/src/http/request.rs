//! Parses the path and the query of a request into types, and runs its work on a thread of its own.

use super::Served;
use super::answer::{Answer, Refusal};
use crate::Error;
use crate::store::Store;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use gapscope_timeline::intervals::Interval;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The variable parts of a path. A path that cannot be parsed is answered as not found.
pub struct Key<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Key<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(key)) => Ok(Key(key)),
            Err(_) => Err(Refusal::not_found()),
        }
    }
}

/// The parameters of a request.
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(parameters)) => Ok(Parameters(parameters)),
            Err(error) => Err(Refusal::bad_request(format!("{}.", error.body_text()))),
        }
    }
}

/// The bytes that a request sends.
pub struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let bytes = Bytes::from_request(request, state).await.map(Body);
        bytes.map_err(|error| Refusal::bad_request(format!("{}.", error.body_text())))
    }
}

/// The part of a path that names a trace by its index in the overview.
#[derive(Deserialize)]
pub struct TraceKey {
    pub trace: usize,
}

/// A request about one trace.
pub struct TraceRequest {
    store: Arc<Store>,
    /// The edition of the trace that the page has, where the request names rows.
    edition: Option<u64>,
}

impl FromRequestParts<Arc<Served>> for TraceRequest {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Refusal> {
        /// The parameter with the edition; absent where the request names no rows.
        #[derive(Deserialize)]
        struct Edition {
            edition: Option<u64>,
        }
        let Key(TraceKey { trace }) = Key::from_request_parts(parts, served).await?;
        let Parameters(Edition { edition }) = Parameters::from_request_parts(parts, served).await?;
        let store = served.traces.at(trace).ok_or_else(Refusal::not_found)?;
        Ok(TraceRequest { store, edition })
    }
}

impl TraceRequest {
    /// Makes the answer on a thread of its own. It is refused where the request names the rows of another edition (an
    /// edition ends when a live trace is completed, and its rows get other numbers).
    pub async fn answer(self, answer: impl FnOnce(&Store) -> Answer + Send + 'static) -> Answer {
        blocking(move || {
            let answer = answer(&self.store);
            // Editions only grow: if the edition is still the same, the answer belongs to it.
            match self.edition {
                Some(edition) if self.store.edition()? != edition => Err(Refusal::new(
                    StatusCode::CONFLICT,
                    "The recording was completed meanwhile: ask for everything anew.",
                )),
                _ => answer,
            }
        })
        .await
    }
}

/// Runs work that reads files or computes on a thread of its own.
pub async fn blocking(answer: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let answer = tokio::task::spawn_blocking(answer).await;
    answer.unwrap_or_else(|_| Err(Error::Analysis.into()))
}

/// A time in nanoseconds, which may have a fraction because the page computes it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub struct Time(i64);

impl TryFrom<f64> for Time {
    type Error = &'static str;

    fn try_from(ns: f64) -> Result<Time, &'static str> {
        match ns.is_finite() && ns.abs() <= 9e18 {
            true => Ok(Time(ns.round() as i64)),
            false => Err("not a time"),
        }
    }
}

/// Returns the interval between two times; `None` where neither is given.
pub fn interval(from: Option<Time>, to: Option<Time>) -> Result<Option<Interval>, Refusal> {
    match (from, to) {
        (Some(Time(from)), Some(Time(to))) if from <= to => Ok(Some(Interval::new(from, to))),
        (None, None) => Ok(None),
        _ => Err(Refusal::bad_request(
            "A range has a start and an end that is not before it.",
        )),
    }
}

/// The parameters `from` and `to`.
#[derive(Debug, Deserialize)]
pub struct Range {
    from: Option<Time>,
    to: Option<Time>,
}

impl Range {
    pub fn interval(&self) -> Result<Option<Interval>, Refusal> {
        interval(self.from, self.to)
    }
}
