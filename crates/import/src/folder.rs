//! Lists the files of a folder that is imported. A link in it that leads out of the folder is left out: a stranger who
//! made the folder could have it show other files of its reader.

use std::path::{Path, PathBuf};

/// The files of a folder, each by name.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// The regular files, also those to which a link leads that does not leave the folder.
    pub files: Vec<PathBuf>,
    /// The links that lead out of the folder to a file.
    pub links_out: Vec<PathBuf>,
}

impl Folder {
    /// Lists the files whose names are wanted. Whatever cannot be read is left out.
    pub fn list(path: &Path, is_wanted: impl Fn(&str) -> bool) -> Folder {
        let mut folder = Folder::default();
        let Ok(root) = path.canonicalize() else {
            return folder;
        };
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                // A pipe might never end.
                is_wanted(&name) && path.is_file()
            })
            .collect();
        entries.sort();
        for entry in entries {
            let leads_out = entry.is_symlink()
                && (entry.canonicalize()).is_ok_and(|target| !target.starts_with(&root));
            match leads_out {
                true => folder.links_out.push(entry),
                false => folder.files.push(entry),
            }
        }
        folder
    }
}

/// Returns a sentence for each of the folders among the inputs that has links out of it, which are not followed.
pub(crate) fn left_out(inputs: &[PathBuf]) -> Vec<String> {
    let is_wanted = |name: &str| {
        [".json", ".sqlite", ".xml"]
            .iter()
            .any(|part| name.contains(part))
    };
    let folders = inputs.iter().filter(|input| input.is_dir());
    folders
        .filter_map(|folder| {
            let links = Folder::list(folder, is_wanted).links_out;
            let names: Vec<String> = (links.iter().take(MAX_NAMED))
                .map(|link| link.file_name().unwrap_or_default().display().to_string())
                .collect();
            let more = match links.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (!links.is_empty()).then(|| {
                format!(
                    "Links in {} that lead out of the folder were left out: {}{more}. Give such a link itself as an input to import its file.",
                    folder.display(),
                    names.join(", ")
                )
            })
        })
        .collect()
}

/// The maximum number of links that a sentence names.
const MAX_NAMED: usize = 8;
