//! Checks that the crates that read a stranger's traces and captures open files by `gapscope-files` alone, which follows no
//! links. The path and text of a file go in, and the lines that open files in another way come out.

/// The folders of the crates whose files this concerns.
const FOLDERS: [&str; 8] = [
    "crates/trace/src/",
    "crates/capture/format/src/",
    "crates/timeline-builder/src/",
    "crates/report/src/",
    "crates/export/src/",
    "crates/query/src/",
    "crates/view/src/",
    "crates/recorder/recorder/src/drain",
];

/// The calls that follow links, or write over what is there.
const CALLS: [&str; 9] = [
    "File::open(",
    "File::create(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "OpenOptions::new(",
    "fs::metadata(",
];

/// The files that open other files than those of traces, and which.
const EXCEPTED: [(&str, &str); 8] = [
    (
        "crates/capture/format/src/request.rs",
        "the notices of a running capture",
    ),
    (
        "crates/view/src/protocol/typescript.rs",
        "the types of the page",
    ),
    ("crates/trace/src/memory.rs", "the kernel's"),
    ("crates/trace/src/measured.rs", "the user's measurements"),
    ("crates/trace/src/names.rs", "the file that the user names"),
    (
        "crates/trace/src/own_hashes.rs",
        "the user's recordings and captures",
    ),
    ("crates/trace/src/part.rs", "the folder that is synced"),
    (
        "crates/view/src/saved_view.rs",
        "the file that the user names",
    ),
];

/// Returns a sentence for each violation in a file.
pub fn problems(path: &str, text: &str) -> Vec<String> {
    let is_concerned = FOLDERS.iter().any(|folder| path.starts_with(folder));
    let is_excepted = EXCEPTED.iter().any(|(file, _)| path == *file)
        || path.ends_with("tests.rs")
        || path.contains("/synthetic");
    if !is_concerned || is_excepted {
        return Vec::new();
    }
    // Modules of tests are at the end of a file.
    let lines = text.lines().take_while(|line| line.trim() != "mod tests {");
    let opens = |line: &str| {
        CALLS.iter().any(|call| {
            let before = line.split(call).next().unwrap_or_default();
            // `CheckedFile::open` and `TableFile::open` are ours.
            line.contains(call) && !before.ends_with(|c: char| c.is_alphanumeric())
        })
    };
    let found = lines.enumerate().filter(|(_, line)| opens(line));
    found
        .map(|(index, _)| {
            format!(
                "{path}:{}: files of traces are opened by gapscope_files::ContainedPath alone",
                index + 1
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::problems;

    #[test]
    fn a_file_that_is_opened_in_another_way_is_found() {
        let text =
            "fn f() {\n    let a = File::open(path);\n    let b = TableFile::open(path);\n}\n";
        let found = problems("crates/trace/src/reader.rs", text);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/trace/src/reader.rs:2:"));
        assert!(problems("crates/trace/src/memory.rs", text).is_empty());
        assert!(problems("crates/cli/src/main.rs", text).is_empty());
    }
}
