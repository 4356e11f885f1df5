//! `trace.json`: any bytes, in a trace whose tables are whole.

use super::fixture;
use crate::bytes::{self, Any, NUMBERS, TEXTS, one_of};
use crate::outcome::{self, Choice};
use crate::{Target, scratch};
use fastrand::Rng;
use gapscope_trace::Selection;
use serde_json::{Map, Value};
use std::cell::OnceCell;
use tempfile::TempDir;

/// See the module.
pub const TARGET: Target = Target {
    name: "manifest",
    read,
    mutate,
};

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

fn read(input: &[u8]) {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(scratch::folder).path();
        scratch::file(folder, "trace.json", input);
        let Ok((mut trace, diagnostics)) = gapscope_trace::read(folder, &Selection::manifest())
        else {
            return;
        };
        let remarks: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        let choice = Choice::of(input);
        if choice.one_of(4, 0) == 0 {
            let sizes = gapscope_trace::table_sizes(folder, trace.manifest.format_version);
            let sizes = sizes.expect("the folder can be read");
            return outcome::show_info(&trace, &sizes, &remarks);
        }
        trace.tables = fixture::trace().tables.clone();
        outcome::show(&trace, &remarks, choice);
    });
}

fn mutate(input: &mut Vec<u8>, rng: &mut Rng, any: Any<'_>) {
    match rng.u8(0..8) {
        0 => any(input, rng),
        1 => bytes::change_value(input, rng),
        _ => {
            let Ok(mut json) = serde_json::from_slice(input) else {
                return any(input, rng);
            };
            let mut left = rng.usize(0..count(&json));
            change(&mut json, &mut left, rng);
            *input = json.to_string().into_bytes();
        }
    }
}

fn count(json: &Value) -> usize {
    1 + match json {
        Value::Array(values) => values.iter().map(count).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value that is `left` values further on.
fn change(json: &mut Value, left: &mut usize, rng: &mut Rng) -> bool {
    if *left == 0 {
        changed(json, rng);
        return true;
    }
    *left -= 1;
    match json {
        Value::Array(values) => values.iter_mut().any(|value| change(value, left, rng)),
        Value::Object(fields) => fields.values_mut().any(|value| change(value, left, rng)),
        _ => false,
    }
}

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
