//! Checks the rules for single files: their length and name, leftovers of debugging, and paths of this machine. The
//! path and text of a file go in, and sentences about violations come out.

/// The number of lines beyond which a Rust file gets a note that it should be split.
const SOFT_LINES: usize = 500;
/// The number of lines beyond which a Rust file is a violation.
const HARD_LINES: usize = 800;

/// Returns a sentence for each violation in a file.
pub fn problems(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if path.ends_with(".rs") {
        let lines = text.lines().count();
        if lines > HARD_LINES {
            problems.push(format!(
                "{path}: {lines} lines, more than {HARD_LINES}: split it"
            ));
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        if ["utils.rs", "util.rs", "common.rs", "helpers.rs", "misc.rs"].contains(&name) {
            problems.push(format!("{path}: name the file after what it holds"));
        }
    }
    for (index, line) in text.lines().enumerate() {
        let mut found = |what: String| problems.push(format!("{path}:{}: {what}", index + 1));
        if path.ends_with(".rs") {
            for leftover in leftovers() {
                if line.contains(&leftover) {
                    found(format!("{leftover} is left over"));
                }
            }
        }
        for folder in machine_folders() {
            if names_folder(line, &folder) {
                found(format!("names {folder}, a folder of one machine"));
            }
        }
    }
    problems
}

/// Returns a note if a Rust file is long but not a violation.
pub fn size_note(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (path.ends_with(".rs") && (SOFT_LINES + 1..=HARD_LINES).contains(&lines))
        .then(|| format!("{path} has {lines} lines, more than {SOFT_LINES}: it wants splitting"))
}

// The words are joined from parts, so that this file does not break its own rules.
fn leftovers() -> [String; 3] {
    ["todo", "dbg", "unimplemented"].map(|name| format!("{name}!("))
}

/// Returns the folders of one machine that no file may name.
fn machine_folders() -> [String; 2] {
    ["work", "root"].map(|name| format!("/{name}"))
}

/// Returns true if `line` contains `folder` as an absolute path, and not as the end of a longer path or the start
/// of a longer name.
fn names_folder(line: &str, folder: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + folder.len()..].chars().next();
        !before.is_some_and(|c| in_name(c) || c == '}' || c == '$') && !after.is_some_and(in_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_machine_path_is_found_and_a_relative_one_is_not() {
        let folder = &machine_folders()[0];
        assert!(names_folder(&format!("cd {folder}"), folder));
        assert!(names_folder(&format!("\"{folder}/main\""), folder));
        assert!(!names_folder(&format!("a{folder}/main"), folder));
        assert!(!names_folder(&format!("{folder}loads"), folder));
    }

    #[test]
    fn leftovers_are_found_with_their_line() {
        let text = format!("fn f() {{\n    {}x)\n}}\n", leftovers()[1]);
        assert_eq!(
            problems("a.rs", &text),
            [format!("a.rs:2: {} is left over", leftovers()[1])]
        );
        assert!(problems("a.md", &text).is_empty());
    }

    #[test]
    fn a_long_file_is_noted_and_a_longer_one_refused() {
        let long = "x\n".repeat(SOFT_LINES + 1);
        assert!(problems("a.rs", &long).is_empty());
        assert!(size_note("a.rs", &long).is_some());
        assert_eq!(problems("a.rs", &"x\n".repeat(HARD_LINES + 1)).len(), 1);
    }
}
