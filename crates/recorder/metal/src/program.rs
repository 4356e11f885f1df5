//! Resolves a command to the binary that it runs. xctrace launches binaries, not scripts, and does not search for
//! them.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How often the interpreter of a script may be a script itself.
const MAX_SCRIPT_DEPTH: u32 = 4;

/// Returns the command with the path of its binary first, and the interpreter of a script before it.
pub(crate) fn resolved(command: &[OsString]) -> Result<Vec<OsString>, Error> {
    let (program, arguments) = command.split_first().ok_or(Error::NoCommand)?;
    let mut resolved = vec![find(program)?.into_os_string()];
    resolved.extend(arguments.iter().cloned());
    for _ in 0..MAX_SCRIPT_DEPTH {
        let Some(interpreter) = interpreter(Path::new(&resolved[0])) else {
            return Ok(resolved);
        };
        let mut around = vec![find(&interpreter[0])?.into_os_string()];
        around.extend(interpreter.into_iter().skip(1));
        around.extend(resolved);
        resolved = around;
    }
    Err(Error::NotExecutable {
        command: program.into(),
        reason: "its interpreter is a script of a script of a script: name the binary instead"
            .to_owned(),
    })
}

/// Returns the absolute path of an executable file, which is searched on the PATH if it is a bare name.
fn find(program: &OsStr) -> Result<PathBuf, Error> {
    let path = Path::new(program);
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if path.components().count() > 1 || path.is_absolute() {
        return match path.metadata() {
            Ok(_) if runs(path) => std::path::absolute(path).map_err(Error::io(path)),
            Ok(found) => Err(Error::NotExecutable {
                command: path.to_owned(),
                reason: if found.is_file() {
                    "it is not executable; chmod +x it, or name its interpreter before it"
                        .to_owned()
                } else {
                    "it is not a file".to_owned()
                },
            }),
            Err(_) => Err(Error::NoSuchCommand {
                command: path.to_owned(),
                reason: "there is no such file; check the path".to_owned(),
            }),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|path| runs(path))
        .ok_or_else(|| Error::NoSuchCommand {
            command: path.to_owned(),
            reason: "there is no such command on the PATH; check its name, or give its path"
                .to_owned(),
        })
}

/// Returns the interpreter that a script's first line names, with its argument. `env` is skipped, because it would
/// become the recorded program.
fn interpreter(script: &Path) -> Option<Vec<OsString>> {
    let mut start = Vec::new();
    File::open(script)
        .ok()?
        .take(512)
        .read_to_end(&mut start)
        .ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = (line.split(|byte| byte.is_ascii_whitespace()))
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()));
    let program = words.next()?;
    let rest: Vec<OsString> = words.collect();
    if Path::new(&program).file_name() != Some(OsStr::new("env")) {
        // The system passes the rest of the line as one argument.
        let argument = rest.join(OsStr::new(" "));
        let mut interpreter = vec![program];
        interpreter.extend((!argument.is_empty()).then_some(argument));
        return Some(interpreter);
    }
    let rest: Vec<OsString> = rest.into_iter().skip_while(|word| word == "-S").collect();
    // With assignments or other options, env itself must run.
    let plain = rest.first().is_some_and(|word| {
        let word = word.to_string_lossy();
        !word.starts_with('-') && !word.contains('=')
    });
    Some(if plain {
        rest
    } else {
        std::iter::once(program).chain(rest).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_script_is_run_by_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let direct = script(folder.path(), "a b", "#!/bin/sh -e\necho\n");
        let resolved = resolved(&[direct.clone().into(), "x".into()]).unwrap();
        assert_eq!(
            resolved,
            [
                OsString::from("/bin/sh"),
                "-e".into(),
                direct.into(),
                "x".into()
            ]
        );
    }

    #[test]
    fn env_is_looked_through() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "s", "#!/usr/bin/env -S sh -e\n");
        let command = resolved(&[path.clone().into()]).unwrap();
        assert!(Path::new(&command[0]).is_absolute());
        assert_eq!(Path::new(&command[0]).file_name().unwrap(), "sh");
        assert_eq!(command[1..], [OsString::from("-e"), path.into()]);
    }

    #[test]
    fn a_binary_gets_its_path() {
        let command = resolved(&["sleep".into(), "1".into()]).unwrap();
        assert!(Path::new(&command[0]).is_absolute());
        assert_eq!(command.len(), 2);
    }

    #[test]
    fn what_cannot_run_says_why() {
        let error_of = |command: &str| resolved(&[command.into()]).unwrap_err().to_string();
        assert!(error_of("/nowhere/x").contains("no such file"));
        assert!(
            error_of("no-such-command-anywhere").contains("not on the PATH")
                || error_of("no-such-command-anywhere").contains("no such command")
        );
        assert!(error_of("/").contains("not a file"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plain");
        std::fs::write(&path, "x").unwrap();
        assert!(error_of(path.to_str().unwrap()).contains("chmod +x"));
        assert!(matches!(resolved(&[]), Err(Error::NoCommand)));
    }
}
