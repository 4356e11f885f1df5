//! Collects the examples in the documentation of the SDK's items for Apple's systems, which nothing compiles
//! elsewhere: each becomes a function in `examples.rs` in cargo's output folder. They are type-checked and linked
//! with the program, and never called.

use std::fs;
use std::path::{Path, PathBuf};

/// The lines of documentation at which an example begins and ends.
const BEGIN: &str = "```no_run";
const END: &str = "```";

fn main() {
    let folder = Path::new("../../crates/sdk/src/metal");
    println!("cargo::rerun-if-changed={}", folder.display());
    let inside = fs::read_dir(folder.join("apple")).expect("the SDK's sources");
    let mut files: Vec<PathBuf> = inside
        .map(|entry| entry.expect("an entry").path())
        .chain([folder.join("apple.rs")])
        .collect();
    files.sort();
    let mut examples = String::new();
    let mut count = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let mut inside = false;
        for line in text.lines() {
            let Some(line) = line.trim_start().strip_prefix("///") else {
                inside = false;
                continue;
            };
            let line = line.strip_prefix(' ').unwrap_or(line);
            match line {
                BEGIN => {
                    count += 1;
                    examples.push_str(&format!("pub fn example_{count}() {{\n"));
                    inside = true;
                }
                END if inside => {
                    examples.push_str("}\n");
                    inside = false;
                }
                // The documentation does not show this line.
                _ if inside => {
                    examples.push_str(line.strip_prefix("# ").unwrap_or(line));
                    examples.push('\n');
                }
                _ => {}
            }
        }
    }
    // If the folder or the form of the examples changes, the build fails instead of checking nothing.
    assert!(count > 20, "the examples were not found");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("examples.rs"), examples).expect("the folder can be written");
}
