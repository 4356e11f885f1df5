//! Checks that names say what they stand for, after the table of words in ARCHITECTURE.md. The path and text of a file
//! of Rust or TypeScript go in, and sentences about its vague names come out.

/// Keywords of declarations, the names that no such declaration may have, and what its name should be. A name that
/// ends with `_` stands for all names that begin with it.
const RULES: [(&str, &str, &str); 5] = [
    ("fn function", "of", "`new`, `from_…`, or a verb"),
    (
        "const static",
        "MOST MOST_ LONGEST LONGEST_ LEAST ENOUGH",
        "`MAX_…` or `MIN_…`",
    ),
    (
        "struct enum trait type class interface",
        "Asked Found Half Heard Held Kept Known Open Part Place Said Surroundings Told ToldBy",
        "a noun that says of what",
    ),
    (
        "struct enum class interface",
        "HostMachine DeviceLimits ModelLayer",
        "`Machine`, `DevicePeaks` or `Module`",
    ),
    (
        "mod",
        "aside away heard allowed bypass layered hull kept survey",
        "a noun for what the module holds",
    ),
];

/// Returns a sentence for each declaration with a name that a rule forbids.
pub fn problems(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let is_source = path.ends_with(".rs") || path.ends_with(".ts");
    for (number, line) in (1..).zip(text.lines().filter(|_| is_source)) {
        let Some((keyword, name)) = declaration(line) else {
            continue;
        };
        let forbids = |forbidden: &str| {
            name == forbidden || (forbidden.ends_with('_') && name.starts_with(forbidden))
        };
        let rule = RULES.iter().find(|(keywords, names, _)| {
            keywords.split(' ').any(|word| word == keyword) && names.split(' ').any(forbids)
        });
        if let Some((_, _, instead)) = rule {
            problems.push(format!("{path}:{number}: {name} should be {instead}"));
        }
    }
    problems
}

/// Returns the keyword and the name of a declaration that a line begins with.
fn declaration(line: &str) -> Option<(&str, &str)> {
    let modifiers = ["pub", "export", "async", "unsafe", "declare"];
    let words = line.split(|c: char| !c.is_alphanumeric() && !"_/\"".contains(c));
    let mut words = words.filter(|word| !word.is_empty() && !modifiers.contains(word));
    let words = [words.next()?, words.next()?, words.next().unwrap_or("")];
    Some(match words {
        [
            "const" | "super" | "crate",
            keyword @ ("fn" | "struct" | "enum"),
            name,
        ] => (keyword, name),
        [keyword, name, _] => (keyword, name),
    })
}

#[test]
fn vague_names_of_declarations_are_found() {
    for (line, count) in [
        ("    pub fn of(path: &Path) -> Trace {", 1),
        ("const fn of<'a>(path: &'a Path) -> Trace<'a> {", 1),
        ("const MOST_NAMED: usize = 4;", 1),
        ("export interface Found {", 1),
        ("/// The type Found of a field", 0),
        ("    fn offset(at: u64) {}", 0),
        ("let found = Trace::of(path);", 0),
        ("struct KnownIds;", 0),
    ] {
        assert_eq!(problems("a.rs", line).len(), count, "{line}");
        assert!(problems("a.md", line).is_empty());
    }
}
