//! Checks that the modules of a crate use each other in one direction: state is below, and the modules that compose
//! it are above. Modules that use each other in a circle can only be read and changed together, so that only a
//! module and its parents may do so. The rule also holds for the crate's folders.

mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::workspace::Package;
use paths::UsedPath;

/// The segments of a module's path; empty for the root of the crate.
type Module = Vec<String>;

/// Returns a sentence for each circle in a crate, whose `files` are paths from the root of the repository.
pub fn problems(package: &Package, root: &Path, files: &[String]) -> Vec<String> {
    let folder = ["lib.rs", "main.rs"].into_iter().find_map(|root| {
        let mut roots = package.roots.iter();
        roots.find_map(|file| {
            file.strip_suffix(root)
                .filter(|folder| folder.ends_with('/'))
        })
    });
    let Some(folder) = folder else {
        return Vec::new();
    };
    let mut sources = BTreeMap::new();
    for file in files {
        if let Some(name) = file.strip_prefix(folder)
            && let Some(module) = module_of(name)
            // Tests may use everything in their crate.
            && module.last().is_none_or(|last| last != "tests")
            && let Ok(text) = std::fs::read_to_string(root.join(file))
        {
            sources.insert(module, text);
        }
    }
    let modules = uses(&sources);
    let found = circle(&modules).or_else(|| circle(&folders(&modules)));
    let problem = found.map(|circle| {
        format!(
            "{}: its modules use each other in a circle: {}",
            package.name,
            circle.join(" -> ")
        )
    });
    problem.into_iter().collect()
}

/// Returns the module that a file contains, from its path in the folder of the crate's root; `None` for other
/// files.
fn module_of(file: &str) -> Option<Module> {
    let name = file.strip_suffix(".rs")?;
    let name = name.strip_suffix("/mod").unwrap_or(name);
    Some(match name {
        "lib" | "main" => Module::new(),
        name => name.split('/').map(str::to_owned).collect(),
    })
}

/// Returns the other modules that each module uses. Declaring a submodule, or exporting its items, is not a use.
fn uses(sources: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let paths: BTreeMap<&Module, Vec<UsedPath>> = sources
        .iter()
        .map(|(module, text)| (module, paths::used_paths(text)))
        .collect();
    let resolve = |from: &Module, path: &UsedPath| -> Option<(Module, Option<String>)> {
        let mut segments = path.segments.iter().peekable();
        let mut module = match segments.next()?.as_str() {
            "crate" => Module::new(),
            "self" => from.clone(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            name => {
                let child = [from.as_slice(), &[name.to_owned()]].concat();
                sources.contains_key(&child).then_some(child)?
            }
        };
        while segments.next_if(|name| *name == "super").is_some() {
            module.pop()?;
        }
        while let Some(name) = segments.peek() {
            let child = [module.as_slice(), &[(*name).clone()]].concat();
            if !sources.contains_key(&child) {
                break;
            }
            module = child;
            segments.next();
        }
        Some((module, segments.next().cloned()))
    };
    let mut exported = BTreeMap::new();
    for (from, paths) in &paths {
        for path in paths.iter().filter(|path| path.is_exported) {
            if let (Some((module, Some(_))), Some(name)) =
                (resolve(from, path), path.segments.last())
            {
                exported.insert(((*from).clone(), name.clone()), module);
            }
        }
    }
    let mut uses = BTreeMap::new();
    for (from, paths) in &paths {
        let used: &mut BTreeSet<Module> = uses.entry((*from).clone()).or_default();
        for path in paths {
            let Some((mut module, item)) = resolve(from, path) else {
                continue;
            };
            if path.is_exported && module.starts_with(from) {
                continue;
            }
            if let Some(item) = item
                && let Some(home) = exported.get(&(module.clone(), item))
            {
                module.clone_from(home);
            }
            if module != **from && !from.starts_with(&module) {
                used.insert(module);
            }
        }
    }
    uses
}

/// Returns the folders of a crate that each folder uses. A file that is in no folder counts as a folder.
fn folders(uses: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    let folder = |module: &Module| module.iter().take(1).cloned().collect::<Module>();
    let mut folders: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, used) in uses {
        let user = folder(module);
        let used = used.iter().map(folder).filter(|used| *used != user);
        folders.entry(user.clone()).or_default().extend(used);
    }
    folders
}

/// Returns modules each of which uses the next, and the last of which uses the first; `None` if there is no circle.
fn circle(uses: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<String>> {
    fn search<'a>(
        module: &'a Module,
        uses: &'a BTreeMap<Module, BTreeSet<Module>>,
        path: &mut Vec<&'a Module>,
        finished: &mut BTreeSet<&'a Module>,
    ) -> bool {
        if let Some(start) = path.iter().position(|earlier| *earlier == module) {
            path.drain(..start);
            path.push(module);
            return true;
        }
        if finished.contains(module) {
            return false;
        }
        path.push(module);
        for used in uses.get(module).into_iter().flatten() {
            if search(used, uses, path, finished) {
                return true;
            }
        }
        path.pop();
        finished.insert(module);
        false
    }
    let (mut path, mut finished) = (Vec::new(), BTreeSet::new());
    let shown = |module: &&Module| match module.join("::") {
        root if root.is_empty() => "crate".to_owned(),
        name => name,
    };
    uses.keys()
        .any(|module| search(module, uses, &mut path, &mut finished))
        .then(|| path.iter().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses_of(sources: &[(&str, &str)]) -> BTreeMap<Module, BTreeSet<Module>> {
        let sources = sources
            .iter()
            .map(|(file, text)| (module_of(file).unwrap(), (*text).to_owned()))
            .collect();
        uses(&sources)
    }

    fn circle_of(sources: &[(&str, &str)]) -> Option<Vec<String>> {
        circle(&uses_of(sources))
    }

    #[test]
    fn modules_in_layers_have_no_circle() {
        let found = circle_of(&[
            ("lib.rs", "mod a; mod b; fn start() { a::run(); }"),
            ("a.rs", "use crate::b::{self, One};"),
            ("b.rs", "mod inner; pub use inner::One;"),
            ("b/inner.rs", "pub struct One;"),
        ]);
        assert_eq!(found, None);
    }

    #[test]
    fn a_circle_is_named() {
        let found = circle_of(&[
            ("a.rs", "use crate::{b::B, c};"),
            ("b.rs", "fn f() { let c = crate::c::C::new(); }"),
            ("c.rs", "use super::a;"),
        ]);
        assert_eq!(found.unwrap(), ["a", "b", "c", "a"]);
    }

    #[test]
    fn a_folder_uses_what_it_exports_from_where_it_is() {
        let found = circle_of(&[
            ("a.rs", "mod part; pub use part::Part;"),
            ("a/part.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::Part;"),
        ]);
        assert_eq!(found.unwrap(), ["a::part", "b", "a::part"]);
    }

    #[test]
    fn a_submodule_may_use_its_parent() {
        let found = circle_of(&[
            ("a.rs", "mod part; use part::put; pub struct State;"),
            ("a/part.rs", "use super::State; pub fn put(state: State) {}"),
        ]);
        assert_eq!(found, None);
    }

    #[test]
    fn folders_in_a_circle_are_found_where_their_modules_are_in_none() {
        let uses = uses_of(&[
            ("a.rs", "mod low; mod high;"),
            ("b.rs", "mod middle;"),
            ("a/low.rs", ""),
            ("a/high.rs", "use crate::b::middle;"),
            ("b/middle.rs", "use crate::a::low;"),
        ]);
        assert_eq!(circle(&uses), None);
        assert_eq!(circle(&folders(&uses)).unwrap(), ["a", "b", "a"]);
    }

    #[test]
    fn comments_strings_and_tests_are_not_looked_at() {
        let found = circle_of(&[
            ("a.rs", "use crate::b; // b uses crate::a"),
            (
                "b.rs",
                "/// [`crate::a`]\nconst A: &str = \"crate::a\"; #[cfg(test)] mod tests { use crate::a; }",
            ),
        ]);
        assert_eq!(found, None);
    }
}
