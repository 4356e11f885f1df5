//! Checks that rows of work, calls and labels are appended in one place only:
//! `crates/timeline-builder/src/rows.rs`. The text of a file goes in, and the lines that append such rows elsewhere
//! come out.

/// The tables whose rows only the builder of traces may append.
const TABLES: [&str; 8] = [
    "dispatches",
    "transfers",
    "opaque_work",
    "command_buffers",
    "submissions",
    "dependencies",
    "host_calls",
    "markers",
];

/// Returns a sentence for each violation in a file.
pub fn problems(path: &str, text: &str) -> Vec<String> {
    let is_product = path.starts_with("crates/") && path.ends_with(".rs");
    // The made-up traces of tests and benchmarks are written by the crate of the format itself.
    let is_excepted = path == "crates/timeline-builder/src/rows.rs"
        || path.starts_with("crates/trace/")
        || path.contains("/tests");
    if !is_product || is_excepted {
        return Vec::new();
    }
    // Modules of tests are at the end of a file.
    let lines = text.lines().take_while(|line| line.trim() != "mod tests {");
    let appends = |line: &str| {
        (TABLES.iter()).any(|table| line.contains(&format!("tables.{table}.push(")))
            || (TABLES.iter()).any(|table| line.contains(&format!("tables_mut().{table}.push(")))
    };
    let found = lines.enumerate().filter(|(_, line)| appends(line));
    found
        .map(|(index, _)| {
            format!(
                "{path}:{}: rows of work, calls and labels are appended by gapscope_timeline_builder::rows alone",
                index + 1
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_appended_elsewhere_is_found() {
        let text = "fn write() {\n    self.tables.dispatches.push(row);\n}\n";
        assert_eq!(problems("crates/import/src/new.rs", text).len(), 1);
        let text = "new.tables_mut().host_calls.push(row);\n";
        assert_eq!(problems("crates/import/src/new.rs", text).len(), 1);
        assert!(problems("crates/timeline-builder/src/rows.rs", text).is_empty());
        assert!(problems("crates/import/src/new.rs", "tables.memory.push(row);").is_empty());
        let tests = "mod tests {\n    tables.markers.push(row);\n}\n";
        assert!(problems("crates/import/src/new.rs", tests).is_empty());
    }
}
