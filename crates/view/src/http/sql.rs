//! Answers requests with SQL, and requests for the row of a trace that a row of such an answer stands for.

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

/// The refusal while a trace is recorded: the program that answers SQL reads complete traces only.
const LIVE: &str = "SQL is answered when the recording has ended.";

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Refusal {
        let status = match error {
            SqlError::Absent(_) => StatusCode::NOT_IMPLEMENTED,
            SqlError::Failed(_) => StatusCode::BAD_REQUEST,
        };
        Refusal::new(status, error)
    }
}

/// The parameters of a request with SQL.
#[derive(Deserialize)]
pub struct SqlParameters {
    sql: String,
}

/// Answers with the rows of a query over all traces.
pub async fn rows(
    State(served): State<Arc<Served>>,
    Parameters(SqlParameters { sql }): Parameters<SqlParameters>,
) -> Answer {
    let traces = folders(&served).await?;
    json(&served.sql.rows(&traces, &sql).await?)
}

/// Answers with the tables and columns that queries may use.
pub async fn catalogue(State(served): State<Arc<Served>>) -> Answer {
    let traces = folders(&served).await?;
    json(&served.sql.catalogue(&traces).await?)
}

/// Returns the folders of the traces in the order of the overview.
async fn folders(served: &Arc<Served>) -> Result<Vec<PathBuf>, Refusal> {
    if served.capture.is_some() {
        return Err(Refusal::not_found());
    }
    let served = served.clone();
    let folders = tokio::task::spawn_blocking(move || served.traces.recorded()).await;
    let folders = folders.map_err(|_| Error::Analysis)??;
    folders.ok_or_else(|| Refusal::bad_request(LIVE))
}

/// The parameter that names the table of a row to find.
#[derive(Deserialize)]
pub struct Table {
    table: String,
}

/// Finds the only row of a table with the given values (texts by column), or answers with the sentence why there is
/// not exactly one.
pub async fn row(
    request: TraceRequest,
    Key(Table { table }): Key<Table>,
    Parameters(values): Parameters<BTreeMap<String, String>>,
) -> Answer {
    request
        .answer(move |store| {
            let found = find_row(&store.full()?.trace, &table, &values);
            json(&match found.ok_or_else(Refusal::not_found)? {
                Ok(row) => OrMissing::There(RowNumber { row }),
                Err(error) => OrMissing::missing(error.to_string()),
            })
        })
        .await
}
