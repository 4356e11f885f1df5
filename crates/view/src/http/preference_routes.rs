//! Answers requests that read or keep the reader's preferences: arrangements of tracks, and queries that were asked.

use super::Served;
use super::answer::{Answer, Refusal, json};
use super::request::{Body, Key, TraceKey, blocking};
use crate::preferences::{PreferenceError, identity};
use crate::protocol::Queries;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

impl From<PreferenceError> for Refusal {
    fn from(error: PreferenceError) -> Refusal {
        let status = match error {
            PreferenceError::TooLong | PreferenceError::Malformed(_) => StatusCode::BAD_REQUEST,
            PreferenceError::NoFolder | PreferenceError::Unwritable(_) => StatusCode::FORBIDDEN,
        };
        Refusal::new(status, error)
    }
}

/// Keeps the sent arrangement of a trace's tracks.
pub async fn arrange(
    State(served): State<Arc<Served>>,
    Key(TraceKey { trace }): Key<TraceKey>,
    Body(sent): Body,
) -> Answer {
    blocking(move || {
        let store = served.traces.at(trace).ok_or_else(Refusal::not_found)?;
        let trace = identity(&*store.snapshot()?, store.name());
        served.preferences.arrange(trace, &sent)?;
        json(&serde_json::json!({}))
    })
    .await
}

fn queries_of(served: &Served) -> Queries {
    Queries {
        queries: served.preferences.queries(),
    }
}

pub async fn queries(State(served): State<Arc<Served>>) -> Answer {
    blocking(move || json(&queries_of(&served))).await
}

/// Keeps the sent query as the latest, and answers with all kept queries.
pub async fn ask(State(served): State<Arc<Served>>, Body(sent): Body) -> Answer {
    blocking(move || {
        served.preferences.ask(&sent)?;
        json(&queries_of(&served))
    })
    .await
}
