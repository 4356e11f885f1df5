//! Sets labels (named ranges of time, as of NVTX) in a PyTorch program that sets none, by files that each Python of
//! the program runs at its start.
//!
//! The files lie in a folder of the recording that comes first in PYTHONPATH, under the names that Python's `site`
//! imports. They leave files there that tell how far they came: `python` ran, `torch` was imported, or `failed` with
//! a reason ([`LabelInjection::missing_note`]).

use crate::Error;
use gapscope_spool::env;
use gapscope_trace::create_private_folder;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The folder of the files inside a trace.
pub const LABELS_FOLDER: &str = "labels";

/// The names and texts of the files.
const FILES: [(&str, &str); 3] = [
    (
        "sitecustomize.py",
        include_str!("../../../../python/labels/sitecustomize.py"),
    ),
    (
        "_gapscope_labels.py",
        include_str!("../../../../python/labels/_gapscope_labels.py"),
    ),
    (
        "_gapscope_hooks.py",
        include_str!("../../../../python/gapscope/_hooks.py"),
    ),
];

/// The user's choice of what to label in a PyTorch program that sets no labels itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelInjection {
    /// Label the modules of its models, by their paths.
    pub modules: bool,
    /// Label PyTorch's operators, by their names.
    pub operators: bool,
}

impl LabelInjection {
    /// Returns true when anything is to be labelled.
    pub fn any(self) -> bool {
        self.modules || self.operators
    }

    /// Returns the choice as the hooks (gapscope's libraries in the program) and the files read it.
    fn names(self) -> String {
        let wanted = [(self.modules, "modules"), (self.operators, "operators")];
        let names = wanted.iter().filter(|(wanted, _)| *wanted);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
    }

    /// Makes every Python that the command starts run the files.
    pub(crate) fn inject(self, command: &mut Command, output: &Path) -> Result<(), Error> {
        command.env_remove(env::LABELS);
        if !self.any() {
            return Ok(());
        }
        let folder = output.join(LABELS_FOLDER);
        create_private_folder(&folder).map_err(Error::io(&folder))?;
        for (name, text) in FILES {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(Error::io(&path))?;
        }
        let mut path = OsString::from(&folder);
        if let Some(rest) = std::env::var_os("PYTHONPATH").filter(|rest| !rest.is_empty()) {
            path.push(":");
            path.push(rest);
        }
        command.env("PYTHONPATH", path);
        command.env(env::LABELS, self.names());
        Ok(())
    }

    /// Returns a sentence for the report that says why a program, which has ended, lacks the labels that were asked
    /// for.
    pub(crate) fn missing_note(self, output: &Path) -> Option<String> {
        if !self.any() {
            return None;
        }
        let folder = output.join(LABELS_FOLDER);
        let left = |name: &str| folder.join(name).exists();
        let why = match std::fs::read_to_string(folder.join("failed")) {
            Ok(reason) => format!("PyTorch could not be asked for them: {reason}"),
            Err(_) if left("torch") => return None,
            Err(_) if left("python") => "the Python that ran has not imported torch".to_owned(),
            Err(_) => "no Python ran that takes them; one that is started with -S, -I or -E does not, nor with an \
                       environment without PYTHONPATH"
                .to_owned(),
        };
        Some(format!("Labels of {} are missing: {why}.", self.words()))
    }

    /// Returns the choice in words for the user.
    fn words(self) -> &'static str {
        match (self.modules, self.operators) {
            (true, true) => "modules and operators",
            (true, false) => "modules",
            _ => "operators",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_by_how_far_the_files_came() {
        let output = tempfile::tempdir().expect("a folder");
        let injection = LabelInjection {
            modules: true,
            operators: true,
        };
        let mut command = Command::new("true");
        injection
            .inject(&mut command, output.path())
            .expect("files");
        let folder = output.path().join(LABELS_FOLDER);
        let set = |name: &str| {
            let set = command.get_envs().find(|(known, _)| *known == name);
            set.and_then(|(_, value)| Some(value?.to_string_lossy().into_owned()))
        };
        let path = set("PYTHONPATH").expect("a path");
        assert!(path.starts_with(&*folder.to_string_lossy()), "{path}");
        assert_eq!(set(env::LABELS).as_deref(), Some("modules,operators"));

        let note = || injection.missing_note(output.path());
        let tell =
            |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
        assert!(note().is_some_and(|note| note.contains("no Python ran")));
        tell("python", "");
        assert!(note().is_some_and(|note| note.contains("has not imported torch")));
        tell("torch", "");
        assert_eq!(note(), None);
        tell("failed", "AttributeError: no hooks");
        assert_eq!(
            note().as_deref(),
            Some(
                "Labels of modules and operators are missing: PyTorch could not be asked for them: AttributeError: no hooks."
            )
        );
        assert_eq!(LabelInjection::default().missing_note(output.path()), None);
    }
}
