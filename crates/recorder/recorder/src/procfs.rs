//! Reads facts about processes, such as their parents and libraries, from `/proc`.

use gapscope_model::memory_maps::mappings;
use gapscope_spool::{HostClock, ProcessSpool, filters, pid_namespace};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

/// True where the numbers in `/proc` are those of this process's PID namespace. After `unshare --pid` without
/// `--mount-proc` they are those of another one, in which a number is a stranger's.
static SHOWS_OWN_NAMESPACE: LazyLock<bool> = LazyLock::new(|| own_number() == std::process::id());

/// The note on a recording without the facts that `/proc` has of processes.
pub const FOREIGN_PROC: &str = "/proc shows the processes of another PID namespace, so stacks were not sampled, and programs that no hook \
     records were not noticed: mount the own one first, as `unshare --mount-proc` does.";

/// Returns true where `/proc` shows the processes of this process's PID namespace.
pub fn shows_own_namespace() -> bool {
    *SHOWS_OWN_NAMESPACE
}

/// Returns the number of this process in `/proc`.
pub fn own_number() -> u32 {
    let number = fs::read_link("/proc/self").ok();
    let number = number.and_then(|number| number.to_str()?.parse().ok());
    number.unwrap_or(std::process::id())
}

/// Returns the folder of a process; `None` where it cannot be told from that of a stranger.
fn folder(pid: u32) -> Option<PathBuf> {
    match shows_own_namespace() {
        true => Some(format!("/proc/{pid}").into()),
        false => (pid == std::process::id()).then(|| "/proc/self".into()),
    }
}

/// Returns true while a process runs, which is asked without `/proc`.
fn runs(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // The descriptor is readable once the process has ended.
    process.is_some_and(|process| {
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec::default())) == Ok(0)
    })
}

/// Returns true while the process that began to record at `start_ns` (monotonic clock) lives. A later process with
/// the same id does not count.
pub fn is_alive(pid: u32, start_ns: i64) -> bool {
    if !shows_own_namespace() {
        return runs(pid);
    }
    let Some(stat) = Stat::read(pid) else {
        return false;
    };
    /// The unit of the start time in `stat`, which is the same on every present Linux.
    const NS_PER_TICK: i64 = 10_000_000;
    /// The clocks and ticks do not agree to the nanosecond: so much is allowed for.
    const ROUNDING_NS: i64 = 1_000_000_000;
    // The start time includes time asleep; the monotonic clock does not.
    let asleep_ns = HostClock::Boottime.now_ns() - HostClock::Monotonic.now_ns();
    let started_ns = stat.start_ticks.saturating_mul(NS_PER_TICK) - asleep_ns;
    let is_same = started_ns <= start_ns.saturating_add(ROUNDING_NS);
    !stat.ended && (is_same || has_own_clocks(pid))
}

/// Returns true for a process whose clocks differ from those of this process by a fixed amount (a time namespace).
pub fn has_own_clocks(pid: u32) -> bool {
    let namespace = |folder: PathBuf| fs::metadata(folder.join("ns/time")).ok();
    let own = namespace("/proc/self".into()).map(|facts| facts.ino());
    let others = folder(pid).and_then(namespace).map(|facts| facts.ino());
    others.is_some() && others != own
}

/// Returns the id of a recorded process in this PID namespace; `None` when the process is gone.
///
/// The process recorded the id that it has in its own PID namespace. Its mapping of its control page (in a
/// pool of memory, or a file of its folder in the spool) tells it apart from other processes.
pub fn pid_here(process: &ProcessSpool) -> Option<u32> {
    let inner = process.pid();
    let namespace = process.control().page().pid_namespace.load(Relaxed);
    if namespace != 0 && namespace == pid_namespace() {
        // The search through all processes, which may be thousands, is for other namespaces alone.
        return Some(inner);
    }
    let suffix = process.mapping();
    let maps_it = |pid: u32| mapped_files(pid).iter().any(|file| file.ends_with(&suffix));
    if maps_it(inner) {
        return Some(inner);
    }
    let mut others = all_pids().filter(|pid| innermost_pid(*pid) == Some(inner));
    others.find(|pid| maps_it(*pid)).or_else(|| {
        // A process that may not be inspected is taken to have the id that it recorded, unless that id is one of another
        // namespace, where the process with that id here is a stranger.
        let maps = folder(inner).map(|folder| fs::read(folder.join("maps")));
        let is_hidden = maps.is_some_and(|maps| {
            maps.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        });
        (is_hidden && namespace == 0).then_some(inner)
    })
}

/// Returns the id that a process has in its own (the innermost) PID namespace, if that is another one than this
/// process's.
fn innermost_pid(pid: u32) -> Option<u32> {
    let status = fs::read(folder(pid)?.join("status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    // The first id is that of this namespace.
    numbers.split_whitespace().skip(1).last()?.parse().ok()
}

/// Returns the name of a thread, by ids of this PID namespace; `None` when the thread is gone.
pub fn thread_name(pid: u32, thread: u32) -> Option<String> {
    // The kernel may cut the name inside a character.
    let name = fs::read(folder(pid)?.join(format!("task/{thread}/comm"))).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Returns the ids of all processes.
fn all_pids() -> impl Iterator<Item = u32> {
    let proc = shows_own_namespace().then(|| fs::read_dir("/proc"));
    let entries = proc.into_iter().flatten().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the other processes that were started with this value of a variable.
pub fn pids_with_environment(variable: &str, value: &OsStr) -> Vec<u32> {
    let own = std::process::id();
    let value = value.to_str();
    all_pids()
        .filter(|pid| {
            *pid != own && value.is_some() && environment(*pid, variable).as_deref() == value
        })
        .collect()
}

/// Returns the process and all that descend from it, with the process first.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let threads = folder(pid).map(|folder| fs::read_dir(folder.join("task")));
        for thread in threads.into_iter().flatten().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|c| c.parse::<u32>().ok()),
            );
        }
    }
    found
}

/// Returns the files that a process has mapped, in the order of its memory; none when the process may not be read.
pub fn mapped_files(pid: u32) -> Vec<PathBuf> {
    let maps = folder(pid).and_then(|folder| fs::read(folder.join("maps")).ok());
    let maps = maps.unwrap_or_default();
    let paths = mappings(&maps).filter_map(|mapping| mapping.path);
    let paths = paths.map(|path| path.strip_suffix(b" (deleted)").unwrap_or(path));
    let mut files: Vec<PathBuf> = paths
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect();
    files.dedup();
    files
}

/// Returns the value of an environment variable that a process was started with.
pub fn environment(pid: u32, variable: &str) -> Option<String> {
    let all = fs::read(folder(pid)?.join("environ")).ok()?;
    all.split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='))
        .find(|(name, _)| *name == variable)
        .map(|(_, value)| value.to_owned())
}

/// Returns how many filters of system calls (seccomp) a process has; `None` when it is gone or may not be inspected.
pub fn system_call_filters(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(folder(pid)?.join("status")).ok()?;
    filters::count(&status)
}

/// Returns the short name of a process.
pub fn process_name(pid: u32) -> Option<String> {
    thread_name(pid, pid)
}

/// Returns the short name of a process for sentences.
pub fn name_for_user(pid: u32) -> String {
    process_name(pid).unwrap_or_else(|| "a process".to_owned())
}

/// The facts in the file `stat` of a process.
struct Stat {
    /// Whether the process has ended and only its exit status is left.
    ended: bool,
    /// The start, in ticks since the machine started.
    start_ticks: i64,
}

impl Stat {
    fn read(pid: u32) -> Option<Stat> {
        let stat = fs::read(folder(pid)?.join("stat")).ok()?;
        // The name, in parentheses, may contain anything and be cut inside a character.
        let stat = String::from_utf8_lossy(&stat);
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        Some(Stat {
            ended: matches!(*fields.first()?, "Z" | "X" | "x"),
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_the_same_number() {
        let me = std::process::id();
        assert!(is_alive(me, gapscope_spool::monotonic_ns()));
        assert!(
            !is_alive(me, -60_000_000_000),
            "it was not alive long before it began"
        );
        assert!(!is_alive(u32::MAX, gapscope_spool::monotonic_ns()));
    }

    /// A search takes time with the number of processes, and a recording may have thousands of short ones.
    #[test]
    fn only_a_process_of_another_namespace_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let hello = || gapscope_spool::event::CommonEvent::ProcessEnd { at_ns: 0 };
        let _spool =
            gapscope_spool::Spool::create(folder.path().to_owned(), 1 << 20, true, hello).unwrap();
        let found = gapscope_spool::SpoolReader::open(folder.path())
            .new_processes()
            .unwrap();
        let page = found[0].control().page();
        assert_eq!(pid_here(&found[0]), Some(std::process::id()));
        // No process has this id.
        page.pid.store(u32::MAX, Relaxed);
        assert_eq!(pid_here(&found[0]), Some(u32::MAX), "as it says");
        page.pid_namespace.store(7, Relaxed);
        assert_eq!(pid_here(&found[0]), None, "nobody maps its page");
    }

    #[test]
    fn a_process_without_a_filter_of_its_own_has_as_many_as_this_one() {
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        let filters = system_call_filters(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(filters, system_call_filters(std::process::id()));
        assert!(filters.is_some());
    }

    #[test]
    fn a_name_that_is_cut_inside_a_character_hides_no_process() {
        let folder = tempfile::tempdir().unwrap();
        // A letter takes two bytes, and the kernel keeps 15 bytes.
        let program = folder.path().join("программа");
        // A copy could be busy, because other tests start programs while it is written.
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program)
            .arg("5")
            .spawn()
            .unwrap();
        // Under emulation, a process has its parent's name until it has started its program.
        let named = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            process_name(child.id()).is_some_and(|name| name.starts_with("програм"))
        });
        let alive = is_alive(child.id(), gapscope_spool::monotonic_ns());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(named && alive);
    }

    #[test]
    fn a_child_and_its_mappings_are_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        let exe = std::env::current_exe().unwrap();
        assert!(mapped_files(std::process::id()).contains(&exe));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(child.id(), gapscope_spool::monotonic_ns()));
    }
}
