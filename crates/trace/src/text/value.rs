//! Converts values of traces as text (lines of `column=value`): times with units, and parts of the manifest as JSON.

use super::problem::TextProblem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Converts a time to plain nanoseconds; returns the values of other columns unchanged.
pub(super) fn without_unit<'a>(column: &str, text: &'a str) -> Result<Cow<'a, str>, TextProblem> {
    let owned = || (column.to_owned(), text.to_owned());
    if !column.ends_with("_ns") {
        return Ok(Cow::Borrowed(text));
    }
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let digits = match unit {
        "" if !number.contains('.') => return Ok(Cow::Borrowed(text)),
        "" | "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => {
            let (column, text) = owned();
            return Err(TextProblem::NoUnit { column, text });
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number =
        !(whole.is_empty() && fraction.is_empty()) && fraction.bytes().all(|b| b.is_ascii_digit());
    if !is_number {
        let (column, text) = owned();
        return Err(TextProblem::NotATime { column, text });
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > digits {
        let (column, text) = owned();
        return Err(TextProblem::Fraction { column, text });
    }
    Ok(Cow::Owned(format!("{whole}{fraction:0<digits$}")))
}

/// Returns `base` with the fields of `pairs` set. A dot reaches into a part; a repeated name appends to a list.
/// `kind` names the part of the manifest in errors.
pub(super) fn read<P: Serialize + DeserializeOwned>(
    base: &P,
    pairs: &[(String, String)],
    kind: &str,
) -> Result<P, TextProblem> {
    let known = to_json(base);
    let mut json = known.clone();
    let mut given = Vec::new();
    for (name, text) in pairs {
        let field = find(&known, name).ok_or_else(|| {
            let fields = flatten(&known).into_iter().map(|(name, _)| name);
            TextProblem::UnknownField {
                part: kind.to_owned(),
                field: name.clone(),
                known: fields.collect::<Vec<_>>().join(", "),
            }
        })?;
        if !field.is_array() && given.contains(&name) {
            return Err(TextProblem::GivenTwice(name.clone()));
        }
        given.push(name);
        let plain = without_unit(name, text)?;
        json = candidates(&plain)
            .into_iter()
            .map(|value| with(json.clone(), name, value))
            .find(|json| P::deserialize(json).is_ok())
            .ok_or_else(|| TextProblem::not_a_value(text, name))?;
    }
    serde_json::from_value(json).map_err(|error| TextProblem::Json(error.to_string()))
}

/// Returns the fields of `part` that differ from `base`, in the form that [`read`] takes.
pub(super) fn differences<P: Serialize>(base: &P, part: &P) -> Vec<(String, String)> {
    let base = to_json(base);
    let mut pairs = Vec::new();
    for (name, value) in flatten(&to_json(part)) {
        if find(&base, &name) == Some(&value) {
            continue;
        }
        match value {
            Value::Array(items) => {
                pairs.extend(items.iter().map(|item| (name.clone(), leaf_text(item))));
            }
            value => pairs.push((name, leaf_text(&value))),
        }
    }
    pairs
}

fn to_json<P: Serialize>(part: &P) -> Value {
    serde_json::to_value(part).expect("parts of the manifest have texts as keys")
}

/// Returns the text of a value that is neither a list nor a part.
fn leaf_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns all readings of a text; the type of the field decides between them.
fn candidates(text: &str) -> Vec<Value> {
    let number = text
        .parse::<i64>()
        .map(Value::from)
        .or_else(|_| text.parse::<u64>().map(Value::from))
        .or_else(|_| text.parse::<f64>().map(Value::from));
    let truth = text.parse::<bool>().map(Value::from);
    number
        .into_iter()
        .chain(truth)
        .chain([Value::from(text)])
        .filter(|value| !value.is_null())
        .collect()
}

/// Finds the field `name`. The inside of an absent field is unknown, so any name is found there.
fn find<'a>(json: &'a Value, name: &str) -> Option<&'a Value> {
    name.split('.').try_fold(json, |json, part| match json {
        Value::Null => Some(json),
        json => json.get(part),
    })
}

/// Returns `json` with the field `name` set to `value`, or `value` appended where the field is a list.
fn with(mut json: Value, name: &str, value: Value) -> Value {
    let field = name.split('.').fold(&mut json, |json, part| {
        if !json.is_object() {
            *json = Value::Object(Map::new());
        }
        &mut json[part]
    });
    match field {
        Value::Array(items) => items.push(value),
        field => *field = value,
    }
    json
}

/// Returns all leaves with their dotted names. Lists are leaves.
fn flatten(json: &Value) -> Vec<(String, Value)> {
    let Value::Object(fields) = json else {
        return Vec::new();
    };
    let mut leaves = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(_) => {
                for (inner, value) in flatten(value) {
                    leaves.push((format!("{name}.{inner}"), value));
                }
            }
            value => leaves.push((name.clone(), value.clone())),
        }
    }
    leaves
}
