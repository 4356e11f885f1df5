//! Prints the JSON schemas of the commands, which are made from the types that the commands write.

use crate::args::Schema as Arguments;
use crate::baseline::Listed;
use crate::capture_json::Captured;
use crate::failure::Failure;
use crate::page;
use crate::replay::json::{Answer, DumpedBuffer, ExportedFolder, FindNan, Fused, ShrunkCapture};
use gapscope_timeline::similar::{join_or, similar};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use std::process::ExitCode;

/// The schema of a command's JSON.
pub struct PublishedSchema {
    /// The name of the schema, which is also its file's name.
    pub name: &'static str,
    /// The command that prints the JSON.
    pub command: &'static str,
    /// Makes the schema of the type that the command writes.
    make: fn() -> Schema,
}

impl PublishedSchema {
    /// Returns the schema as text that ends with a line feed.
    pub fn text(&self) -> Result<String, Failure> {
        let mut schema = (self.make)().to_value();
        // Line breaks inside a paragraph of a doc comment have no meaning.
        unwrap_lines(&mut schema);
        schema["$id"] = format!("gapscope:{}", self.name).into();
        Ok(with_short_lists(&page::json(&schema)?))
    }
}

/// Writes each list of words in a JSON text with one word a line as one line: `"required": ["start_ns", "end_ns"]`.
fn with_short_lists(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut rest = lines.as_slice();
    let mut short = String::new();
    while let Some((line, after)) = rest.split_first() {
        short.push_str(line);
        rest = after;
        let is_word = |line: &&&str| !line.trim_start().starts_with(['{', '[', ']']);
        let words = after.iter().take_while(is_word).count();
        let end = after.get(words).map(|end| end.trim_start());
        if line.ends_with('[')
            && let Some(end) = end.filter(|end| end.starts_with(']'))
        {
            let words_of_list: Vec<&str> = after[..words].iter().map(|word| word.trim()).collect();
            short.push_str(&words_of_list.join(" "));
            short.push_str(end);
            rest = &after[words + 1..];
        }
        short.push('\n');
    }
    short
}

/// Joins the lines of each paragraph in all descriptions, and removes links from them.
fn unwrap_lines(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                match value {
                    serde_json::Value::String(text) if key == "description" => {
                        let paragraphs = text.split("\n\n").map(|text| text.replace('\n', " "));
                        *text = unlinked(&paragraphs.collect::<Vec<_>>().join("\n\n"));
                    }
                    value => unwrap_lines(value),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(unwrap_lines),
        _ => {}
    }
}

/// Removes links into the code from a description: ``[`X`](crate::X)`` becomes `X`.
fn unlinked(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("[`") {
        plain.push_str(before);
        plain.push('`');
        let Some((name, after)) = after.split_once("`]") else {
            rest = after;
            continue;
        };
        plain.push_str(name);
        plain.push('`');
        rest = match after
            .strip_prefix('(')
            .and_then(|link| link.split_once(')'))
        {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + rest
}

/// Returns the schema that is made from `T`, the type that the command writes.
const fn published<T: JsonSchema>(name: &'static str, command: &'static str) -> PublishedSchema {
    PublishedSchema {
        name,
        command,
        make: || {
            let settings = SchemaSettings::draft2020_12().for_serialize();
            settings.into_generator().into_root_schema_for::<T>()
        },
    }
}

/// The schemas of all commands.
pub const ALL: &[PublishedSchema] = &[
    published::<gapscope_report::json::Json>("report", "gapscope report --json TRACE"),
    published::<gapscope_report::ranks::Json>(
        "report-ranks",
        "gapscope report --json FOLDER, of several ranks",
    ),
    published::<gapscope_report::explanation::Explanation>("explain", "gapscope explain --json"),
    published::<gapscope_report::diff::Json<'static>>(
        "diff",
        "gapscope diff --json, gapscope baseline compare --json",
    ),
    published::<Vec<Listed>>("baseline-list", "gapscope baseline list --json"),
    published::<crate::bench::Measured>("bench-device", "gapscope bench device --json"),
    published::<crate::doctor::check::Examined>("doctor", "gapscope doctor --json"),
    published::<gapscope_dependencies::Json>("deps", "gapscope deps --json"),
    published::<gapscope_analysis::what_if::Answer>("what-if", "gapscope what-if --json"),
    published::<Captured>("capture", "gapscope capture --json"),
    published::<Answer>("replay", "gapscope replay --json"),
    published::<DumpedBuffer>("replay-dump", "gapscope replay --dump --json"),
    published::<FindNan>("replay-find-nan", "gapscope replay --find-nan --json"),
    published::<ExportedFolder>("replay-export", "gapscope replay --export --json"),
    published::<ShrunkCapture>("replay-shrink", "gapscope replay --shrink --json"),
    published::<Fused>("replay-fuse", "gapscope replay --fuse --json"),
];

/// Prints a schema, or the names of all schemas.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let text = match &arguments.name {
        Some(name) => {
            let found = ALL.iter().find(|one| one.name == *name);
            let names: Vec<&str> = ALL.iter().map(|one| one.name).collect();
            let found =
                found.ok_or_else(|| match similar(name, names.iter().copied()).as_slice() {
                    [] => failure!("no schema \"{name}\": there are {}", names.join(", ")),
                    alike => failure!("no schema \"{name}\": did you mean {}?", join_or(alike)),
                })?;
            found.text()?
        }
        None => {
            let lines = ALL
                .iter()
                .map(|one| format!("{:<16} {}\n", one.name, one.command));
            lines.collect()
        }
    };
    page::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::path::PathBuf;

    #[test]
    fn each_key_is_described() {
        fn described(name: &str, schema: &serde_json::Value) {
            if let Some(keys) = schema["properties"].as_object() {
                for (key, value) in keys {
                    // The values of these keys are the words of enums whose variants are objects.
                    let is_word = matches!(key.as_str(), "kind" | "detail" | "code" | "signal");
                    let text = value["description"].as_str().unwrap_or_default();
                    assert!(is_word || !text.is_empty(), "{name}: {key}");
                    assert!(!text.contains("]("), "{name}: {key}: {text}");
                }
            }
            match schema {
                serde_json::Value::Object(object) => {
                    object.values().for_each(|inner| described(name, inner));
                }
                serde_json::Value::Array(all) => {
                    all.iter().for_each(|inner| described(name, inner))
                }
                _ => {}
            }
        }
        for one in ALL {
            described(
                one.name,
                &serde_json::from_str(&one.text().unwrap()).unwrap(),
            );
        }
    }

    #[test]
    fn the_published_files_are_what_the_types_say() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let mut names = Vec::new();
        for one in ALL {
            let path = folder.join(format!("{}.schema.json", one.name));
            let text = one.text().unwrap();
            if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let published = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                published == text,
                "{} is not what the types say: run the test with UPDATE=1, and say in CHANGELOG.md what changed",
                path.display()
            );
            names.push(path.file_name().unwrap().to_owned());
        }
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(names.contains(&name), "{name:?} is of no command");
        }
    }
}
