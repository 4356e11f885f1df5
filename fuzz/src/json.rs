//! Changes JSON so that it stays JSON. Which change is made depends on the random numbers only.

use crate::bytes::{NUMBERS, TEXTS, one_of};
use fastrand::Rng;
use serde_json::{Map, Value};

/// Changes a document as [`change`] does. Returns false, and changes nothing, if the bytes are not JSON.
pub fn change_document(bytes: &mut Vec<u8>, rng: &mut Rng) -> bool {
    let Ok(mut document) = serde_json::from_slice(bytes) else {
        return false;
    };
    change(&mut document, rng);
    *bytes = document.to_string().into_bytes();
    true
}

/// Exchanges, removes or doubles one of the values at any depth.
fn change(json: &mut Value, rng: &mut Rng) {
    let mut left = rng.usize(0..count(json));
    at(json, &mut left, rng);
}

/// Returns the number of values at all depths, the outermost one included.
fn count(json: &Value) -> usize {
    1 + match json {
        Value::Array(values) => values.iter().map(count).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value that is `left` values further on. Returns false, and lowers `left`, where there are not so many.
fn at(json: &mut Value, left: &mut usize, rng: &mut Rng) -> bool {
    if *left == 0 {
        changed(json, rng);
        return true;
    }
    *left -= 1;
    match json {
        Value::Array(values) => values.iter_mut().any(|value| at(value, left, rng)),
        Value::Object(fields) => fields.values_mut().any(|value| at(value, left, rng)),
        _ => false,
    }
}

/// Makes one change of a value: an element of a list or object is removed, doubled or moved, or another value takes
/// the value's place.
fn changed(json: &mut Value, rng: &mut Rng) {
    match (rng.u8(0..6), json) {
        (0..4, Value::Array(values)) if !values.is_empty() => {
            let at = rng.usize(0..values.len());
            match rng.u8(0..3) {
                0 => drop(values.remove(at)),
                1 => values.push(values[at].clone()),
                _ => values.reverse(),
            }
        }
        (0..4, Value::Object(fields)) if !fields.is_empty() => {
            let at = rng.usize(0..fields.len());
            let key = fields.keys().nth(at).cloned().unwrap_or_default();
            fields.remove(&key);
        }
        (0..4, Value::String(text)) => *text = one_of(rng, &TEXTS).to_owned(),
        (_, json) => {
            *json = match rng.u8(0..6) {
                0 => Value::Null,
                1 => Value::Bool(rng.bool()),
                2 => Value::String(one_of(rng, &TEXTS).to_owned()),
                3 => Value::Array(vec![json.clone()]),
                4 => Value::Object(Map::new()),
                _ => serde_json::from_str(one_of(rng, &NUMBERS)).unwrap_or(Value::Number(0.into())),
            };
        }
    }
}
