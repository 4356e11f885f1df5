//! Notices processes that have a hook (gapscope's library that records inside the program) and cannot write to the
//! spool (the folder for what the hook sees), because they run as another user or see other file systems.

use super::why_no_layer::other_user;
use crate::procfs;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns a sentence on a process that loaded `hook` and cannot reach the folder `spool`, an absolute path; `None` when
/// no obstacle is seen.
pub fn find_obstacle(pid: u32, spool: &Path, hook: &str) -> Option<String> {
    let here = fs::metadata(spool).ok()?;
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let mut there = root.clone();
    there.extend(spool.components().skip(1));
    let same = match fs::metadata(&there) {
        Ok(found) => (found.dev(), found.ino()) == (here.dev(), here.ino()),
        // A process that ends has no file system any more, so that nothing is found there.
        Err(error) if error.kind() == ErrorKind::NotFound && root.metadata().is_ok() => false,
        Err(_) => return None,
    };
    let reason = match (same, other_user(pid, spool)) {
        (false, _) => {
            "its file system does not have the folder of the trace, as in a sandbox or a container"
                .to_owned()
        }
        (true, Some(user)) => format!(
            "it runs as user {user}, who may not write into the folder of the trace; run `gapscope record` as that user"
        ),
        (true, None) => return None,
    };
    let name = procfs::name_for_user(pid);
    Some(format!(
        "{name} (process {pid}) loaded the {hook}, which could not write what it saw: {reason}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    /// Starts a shell under the command `wrapper`, which runs `before` and then waits. `None` when either fails,
    /// because the system forbids it.
    fn shell(wrapper: &[&str], before: &str) -> Option<Child> {
        let mut child = Command::new(wrapper[0])
            .args(&wrapper[1..])
            .args(["sh", "-c", &format!("{before} && echo ready && read line")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?)
            .read_line(&mut line)
            .ok()?;
        if line.trim() == "ready" {
            return Some(child);
        }
        child.wait().ok()?;
        None
    }

    /// Returns the sentence on the process, which is then ended.
    fn obstacle(child: &mut Child, spool: &Path) -> Option<String> {
        let found = find_obstacle(child.id(), spool, "recording layer");
        child.kill().unwrap();
        child.wait().unwrap();
        found
    }

    #[test]
    fn a_process_that_sees_the_folder_is_not_one() {
        let spool = tempfile::tempdir().unwrap();
        let mut child = shell(&["env"], "true").unwrap();
        assert_eq!(obstacle(&mut child, spool.path()), None);
    }

    #[test]
    fn a_sandbox_without_the_folder_is_said_to_be_one() {
        let spool = tempfile::tempdir().unwrap();
        let hide = format!("mount -t tmpfs none '{}'", spool.path().display());
        let Some(mut child) = shell(&["unshare", "-rm"], &hide) else {
            return crate::test_tools::skip("this system allows no mount namespaces");
        };
        let reason = obstacle(&mut child, spool.path()).unwrap();
        assert!(reason.contains("sandbox"), "{reason}");
    }

    #[test]
    fn another_user_is_said_to_be_one() {
        let spool = tempfile::tempdir().unwrap();
        let Some(mut child) = shell(&["setpriv", "--reuid", "65534", "--clear-groups"], "true")
        else {
            return crate::test_tools::skip("only root can become another user");
        };
        let reason = obstacle(&mut child, spool.path()).unwrap();
        assert!(reason.contains("runs as user 65534"), "{reason}");
    }
}
