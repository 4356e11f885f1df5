//! Turns answers and refusals into HTTP responses.

use crate::Error;
use crate::page::File;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The result of a request: the content of the answer, or a refusal.
pub type Answer = Result<Content, Refusal>;

/// The content of an answer, by its media type.
pub enum Content {
    /// A JSON message.
    Json(Vec<u8>),
    /// A frame: columns of raw numbers behind a header.
    Frame(Vec<u8>),
    /// A file of the page.
    File(File),
}

/// Answers with a message of the protocol.
pub fn json(message: &impl Serialize) -> Answer {
    match serde_json::to_vec(message) {
        Ok(bytes) => Ok(Content::Json(bytes)),
        Err(error) => Err(Error::System(error.to_string()).into()),
    }
}

impl IntoResponse for Content {
    fn into_response(self) -> Response {
        let (media_type, body) = match self {
            Content::Json(bytes) => ("application/json", Body::from(bytes)),
            Content::Frame(bytes) => ("application/octet-stream", Body::from(bytes)),
            Content::File(file) => (file.media_type, Body::from(file.bytes)),
        };
        ([(header::CONTENT_TYPE, media_type)], body).into_response()
    }
}

/// An HTTP status and a sentence that says why there is no answer.
pub struct Refusal {
    status: StatusCode,
    sentence: String,
}

impl Refusal {
    pub fn new(status: StatusCode, sentence: impl ToString) -> Refusal {
        let sentence = sentence.to_string();
        Refusal { status, sentence }
    }

    pub fn not_found() -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, "There is no such thing.")
    }

    /// Returns the refusal of an answer that rests on data that cannot be read.
    pub fn unknown(sentence: String) -> Refusal {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, sentence)
    }

    pub fn bad_request(sentence: impl ToString) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, sentence)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let status = match error {
            Error::NotComparable(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal::new(status, error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = serde_json::json!({ "error": self.sentence });
        let content = Content::Json(error.to_string().into_bytes());
        (self.status, content).into_response()
    }
}
