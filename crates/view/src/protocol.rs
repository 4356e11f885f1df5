//! Defines the types of the messages that the page receives as JSON. `PROTOCOL.md` lists the requests that they
//! answer, and the page's TypeScript types (`web/src/generated/protocol.ts`) are generated from them.
//!
//! Times are nanoseconds from the trace's origin. Integers that may pass 2^53 are strings of digits. A *generation*
//! counts the additions to a live trace (one that is being recorded), and an *edition* the times that its rows were
//! numbered anew. A *track* is a line of the drawing, in the *group* of its GPU, process or the host; within a track,
//! *lanes* are lines whose rows do not overlap. Names in frames are indices into the trace's list of texts
//! (`strings`).

mod dependencies;
mod findings;
mod frames;
mod overview;
mod reader;
mod rows;
#[cfg(test)]
mod typescript;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use dependencies::*;
pub use findings::*;
pub use frames::*;
pub use overview::*;
pub use reader::*;
pub use rows::*;

/// An answer, or why it cannot be had.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum OrMissing<T> {
    There(T),
    Missing(Missing),
}

/// Why an answer cannot be had.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Missing {
    /// One sentence.
    pub missing: String,
    /// The file is there, and its content is not that of its hash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

impl<T> OrMissing<T> {
    /// Says in a sentence why there is no answer.
    pub fn missing(sentence: impl Into<String>) -> OrMissing<T> {
        OrMissing::Missing(Missing {
            missing: sentence.into(),
            changed: false,
        })
    }
}

/// Returns a message as JSON in which every text of more than 1000 bytes is cut, as all texts that lists show are.
pub fn cut_texts<T: Serialize>(answer: &T) -> Value {
    fn cut(value: &mut Value) {
        match value {
            Value::String(text) if text.len() > 1000 => *text = crate::texts::cut(text),
            Value::Array(values) => values.iter_mut().for_each(cut),
            Value::Object(values) => values.values_mut().for_each(cut),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    cut(&mut value);
    value
}
