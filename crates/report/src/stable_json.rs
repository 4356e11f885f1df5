//! Writes JSON whose keys are stable: the version of their meaning, and the form of the text.

use serde::Serialize;

/// The version of the meaning of the keys.
pub(crate) const VERSION: u32 = 1;

/// Returns a value as indented JSON text, which ends with a line feed.
pub(crate) fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
