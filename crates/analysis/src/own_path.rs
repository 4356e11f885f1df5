//! Tells the program's own source files and libraries from installed ones: a path goes in, and comes out as own or foreign.

/// Parts of the paths of code that is not the program's own: installed packages, and Python's own modules.
const FOREIGN_FOLDERS: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];
/// Beginnings of the paths of code that is not the program's own: code without a file (`<`), such as Python's own or
/// generated modules, and the system's libraries.
const FOREIGN_PREFIXES: [&str; 4] = ["<", "/usr/lib", "/lib/", "/lib64/"];

/// Returns true for the path of the program's own code, as far as the path tells.
pub(crate) fn is_own_path(path: &str) -> bool {
    let is_foreign = FOREIGN_PREFIXES.iter().any(|start| path.starts_with(start))
        || FOREIGN_FOLDERS.iter().any(|folder| path.contains(folder));
    !is_foreign
}
