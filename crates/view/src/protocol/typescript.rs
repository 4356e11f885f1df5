//! Writes the page's TypeScript types from the schemas of the messages. The input is the JSON schemas of the types
//! in `messages!`; the output is compared with `web/src/generated/protocol.ts`, or written there with `UPDATE=1`.

use super::*;
use gapscope_analysis::dataflow::FlowGraph;
use gapscope_analysis::equal_work::WorkComparison;
use schemars::generate::SchemaSettings;
use std::path::Path;

/// The most columns of a line of the written file.
const MAX_COLUMNS: usize = 160;

/// Returns the TypeScript text of the types of all messages, and of all types that they are made of.
fn types() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    macro_rules! messages {
        ($($message:ty),+ $(,)?) => {$(generator.subschema_for::<$message>();)+};
    }
    messages!(
        Missing,
        Overview,
        Strings,
        Live,
        FrameHeader,
        TrackHeader,
        CounterHeader,
        SamplesHeader,
        IdleSamplesHeader,
        FindingsAnswer,
        RangeFindings,
        Row,
        Neighbours,
        Dependencies,
        FlowGraph,
        Instances,
        WorkComparison,
        RanksAnswer,
        SourceText,
        NotesAnswer,
        Queries,
        SqlAnswer,
        Catalogue,
        RowNumber,
    );
    let mut text = "\
// The messages of the server. `UPDATE=1 cargo test -p gapscope-view typescript` writes this file from `crates/view/src/protocol.rs`, where each
// property is described.
"
    .to_owned();
    for (name, schema) in generator.take_definitions(true) {
        text += &declaration(&name, &schema);
    }
    text
}

/// Returns the declaration of a type: an interface where the schema is an object with known properties, otherwise a
/// name for another type.
fn declaration(name: &str, schema: &Value) -> String {
    let doc = match schema["description"].as_str() {
        Some(doc) => format!("/** {} */\n", in_one_line(doc)),
        None => String::new(),
    };
    let Some(properties) = schema["properties"].as_object() else {
        return format!("\n{doc}export type {name} = {};\n", type_of(schema));
    };
    let members = properties.iter().map(|(key, of)| member(schema, key, of));
    let mut lines: Vec<String> = Vec::new();
    for member in members {
        match lines.last_mut() {
            Some(line) if line.len() + member.len() + 2 <= MAX_COLUMNS => {
                line.push(' ');
                line.push_str(&member);
            }
            _ => lines.push(format!("  {member}")),
        }
        if let Some(line) = lines.last_mut() {
            line.push(';');
        }
    }
    format!(
        "\n{doc}export interface {name} {{\n{}\n}}\n",
        lines.join("\n")
    )
}

/// Returns a property of an interface; one that is not required has a question mark.
fn member(schema: &Value, key: &str, property: &Value) -> String {
    let mut required = schema["required"].as_array().into_iter().flatten();
    let mark = match required.any(|name| name == key) {
        true => "",
        false => "?",
    };
    format!("{key}{mark}: {}", type_of(property))
}

/// Returns the TypeScript type of a schema.
fn type_of(schema: &Value) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().unwrap_or(path).to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let list = |values: &Value, each: &dyn Fn(&Value) -> String| {
        let values = values.as_array()?.iter().map(each);
        let mut types: Vec<String> = values.collect();
        types.dedup();
        Some(types.join(" | "))
    };
    let one_of = list(&schema["enum"], &Value::to_string)
        .or_else(|| list(&schema["anyOf"], &type_of))
        .or_else(|| list(&schema["oneOf"], &type_of));
    if let Some(one_of) = one_of {
        return one_of;
    }
    let named = |name: &Value| named_type(name.as_str().unwrap_or_default(), schema);
    list(&schema["type"], &named).unwrap_or_else(|| named(&schema["type"]))
}

/// Returns the TypeScript type of a schema that names one of the types of JSON.
fn named_type(name: &str, schema: &Value) -> String {
    match name {
        "integer" | "number" => "number".to_owned(),
        "boolean" | "null" | "string" => name.to_owned(),
        "array" => {
            let of = type_of(&schema["items"]);
            match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
                (Some(least), Some(most)) if least == most => {
                    format!("[{}]", vec![of; most as usize].join(", "))
                }
                _ if of.contains(" | ") => format!("({of})[]"),
                _ => format!("{of}[]"),
            }
        }
        "object" => match schema["properties"].as_object() {
            Some(properties) => {
                let members = properties.iter().map(|(key, of)| member(schema, key, of));
                format!("{{ {} }}", members.collect::<Vec<_>>().join("; "))
            }
            None => match &schema["additionalProperties"] {
                Value::Object(_) => {
                    format!(
                        "Record<string, {}>",
                        type_of(&schema["additionalProperties"])
                    )
                }
                _ => "Record<string, unknown>".to_owned(),
            },
        },
        _ => "unknown".to_owned(),
    }
}

/// Returns the first paragraph of a description, without links into the code.
fn in_one_line(doc: &str) -> String {
    let first = doc.split("\n\n").next().unwrap_or_default();
    let mut plain = String::new();
    let mut rest = first;
    while let Some((before, linked)) = rest.split_once("[`") {
        let (name, after) = linked.split_once("`]").unwrap_or((linked, ""));
        let target = after
            .strip_prefix('(')
            .and_then(|text| text.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
        plain += &format!("{before}`{name}`");
    }
    (plain + rest).replace('\n', " ")
}

#[test]
fn typescript_types_are_those_of_the_messages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/generated/protocol.ts");
    let text = types();
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "{} is not what the types say: run the test with UPDATE=1",
        path.display()
    );
}
