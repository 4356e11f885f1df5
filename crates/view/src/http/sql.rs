//! SQL, and the rows that its answers mean.

use super::Served;
use super::answer::{Answer, Refusal, json};
use super::request::{Key, Parameters, TraceRequest};
use crate::Error;
use crate::protocol::{OrMissing, RowNumber};
use crate::row_lookup::find_row;
use crate::sql::SqlError;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Its folder is read by another program, which reads whole recordings only.
const LIVE: &str = "SQL is answered when the recording has ended.";

impl From<SqlError> for Refusal {
    fn from(unasked: SqlError) -> Refusal {
        let (status, sentence) = match unasked {
            SqlError::Absent(sentence) => (StatusCode::NOT_IMPLEMENTED, sentence),
            SqlError::Failed(sentence) => (StatusCode::BAD_REQUEST, sentence),
        };
        Refusal { status, sentence }
    }
}

#[derive(Deserialize)]
pub struct Question {
    sql: String,
}

pub async fn rows(
    State(served): State<Arc<Served>>,
    Parameters(Question { sql }): Parameters<Question>,
) -> Answer {
    let traces = folders(&served).await?;
    json(&served.sql.rows(&traces, &sql).await?)
}

pub async fn catalogue(State(served): State<Arc<Served>>) -> Answer {
    let traces = folders(&served).await?;
    json(&served.sql.catalogue(&traces).await?)
}

/// The traces that are asked, in the order of the overview.
async fn folders(served: &Arc<Served>) -> Result<Vec<PathBuf>, Refusal> {
    if served.capture.is_some() {
        return Err(Refusal::not_found());
    }
    let served = served.clone();
    let folders = tokio::task::spawn_blocking(move || served.traces.recorded()).await;
    let folders = folders.map_err(|_| Error::Analysis)??;
    folders.ok_or_else(|| Refusal::bad_request(LIVE))
}

#[derive(Deserialize)]
pub struct Table {
    table: String,
}

/// The row of a table that has these values.
pub async fn row(
    question: TraceRequest,
    Key(Table { table }): Key<Table>,
    Parameters(values): Parameters<BTreeMap<String, String>>,
) -> Answer {
    question
        .answer(move |store| {
            let found = find_row(&store.full()?.trace, &table, &values);
            json(&match found.ok_or_else(Refusal::not_found)? {
                Ok(row) => OrMissing::There(RowNumber { row }),
                Err(sentence) => OrMissing::missing(sentence),
            })
        })
        .await
}
