//! Says why Vulkan's loader in a process did not load the recording layer, by the environment and the rights of the
//! process.

use crate::procfs;
use crate::vulkan_loader::{LAYER_NAME, LAYERS};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The variable that keeps the loader from loading layers, by patterns of their names.
const DISABLE: &str = "VK_LOADER_LAYERS_DISABLE";

/// Returns the reason, as the end of a sentence after a colon. `spool` is the folder of the recording's spool, which the
/// process must be able to reach.
pub fn reason(pid: u32, spool: &Path) -> String {
    if let Some(patterns) = procfs::environment(pid, DISABLE).filter(|value| disables(value)) {
        return format!(
            "{DISABLE}={patterns} keeps the loader from it; unset the variable to record"
        );
    }
    if let Some(user) = other_user(pid, spool) {
        return format!(
            "it runs as user {user}, who may not read the folder of the recording; run `gapscope record` as that user"
        );
    }
    let named = procfs::environment(pid, LAYERS).map(|value| value.contains(LAYER_NAME));
    match (named, has_raised_privileges(pid)) {
        (_, Some(true)) => format!(
            "it has raised privileges (setuid or capabilities), for which the loader ignores {LAYERS}; start it without them"
        ),
        (Some(true), Some(false)) => {
            "the reason is not known; with VK_LOADER_DEBUG=layer the loader prints it".to_owned()
        }
        (None | Some(false), Some(false)) => format!(
            "it was started with an environment without {LAYERS}, as by `env -i` or a service; pass the variables that \
             begin with VK_ and GAPSCOPE_ on"
        ),
        (_, None) => format!(
            "the loader ignores {LAYERS} for programs with raised privileges, or the program was started with another \
             environment"
        ),
    }
}

/// Returns the user that a process runs as, if the folder belongs to another one and lets nobody else in.
pub fn other_user(pid: u32, folder: &Path) -> Option<u32> {
    let user = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let owner = fs::metadata(folder).ok()?.uid();
    (user != owner && user != 0).then_some(user)
}

/// Returns whether the patterns of the variable, separated by commas, include the recording layer. A pattern may begin
/// and end with `*`; `~all~` and `~explicit~` mean all layers that are named by variables.
fn disables(patterns: &str) -> bool {
    let name = LAYER_NAME.to_lowercase();
    patterns.split(',').map(str::to_lowercase).any(|pattern| {
        let end = pattern.strip_prefix('*');
        let middle = end.unwrap_or(&pattern).strip_suffix('*');
        match (pattern.as_str(), end, middle) {
            ("~all~" | "~explicit~" | "*" | "**", ..) => true,
            (_, Some(_), Some(part)) => name.contains(part),
            (_, Some(end), None) => name.ends_with(end),
            (_, None, Some(begin)) => name.starts_with(begin),
            (whole, None, None) => name == whole,
        }
    })
}

/// Returns whether the system started the process with more privileges than its caller has; `None` if that may not be
/// read.
fn has_raised_privileges(pid: u32) -> Option<bool> {
    /// The key of the value that says so, in the vector of pairs that the kernel passes to a program.
    const AT_SECURE: usize = 23;
    let vector = fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let word = |bytes: &[u8]| Some(usize::from_ne_bytes(bytes.try_into().ok()?));
    let mut pairs = vector
        .chunks_exact(2 * size_of::<usize>())
        .filter_map(|pair| {
            let (key, value) = pair.split_at(size_of::<usize>());
            Some((word(key)?, word(value)?))
        });
    pairs
        .find(|(key, _)| *key == AT_SECURE)
        .map(|(_, value)| value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_the_loader() {
        for patterns in [
            "~all~",
            "~explicit~",
            "*",
            "VK_LAYER_GAPSCOPE_recorder",
            "*gapscope*",
            "VK_LAYER_KHRONOS_validation,VK_LAYER_GAPSCOPE*",
            "*_RECORDER",
        ] {
            assert!(disables(patterns), "{patterns}");
        }
        for patterns in [
            "",
            "~implicit~",
            "VK_LAYER_KHRONOS_*",
            "*validation",
            "GAPSCOPE",
        ] {
            assert!(!disables(patterns), "{patterns}");
        }
    }

    #[test]
    fn a_process_without_the_variable_or_with_the_layer_disabled_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let reason_of = |variables: &[(&str, &str)]| {
            let mut command = std::process::Command::new("sleep");
            let mut child = command
                .arg("9")
                .env_clear()
                .envs(variables.iter().copied())
                .spawn()
                .unwrap();
            let found = reason(child.id(), folder.path());
            child.kill().unwrap();
            child.wait().unwrap();
            found
        };
        assert!(reason_of(&[]).contains("environment without VK_INSTANCE_LAYERS"));
        let ours = (LAYERS, LAYER_NAME);
        assert!(reason_of(&[ours]).contains("not known"));
        assert!(
            reason_of(&[ours, (DISABLE, "~all~")]).starts_with("VK_LOADER_LAYERS_DISABLE=~all~")
        );
    }
}
