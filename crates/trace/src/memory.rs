//! Limits the memory of this process while it reads traces. The limit is checked where columns are decoded, so that a
//! trace that is too large ends in an error message instead of being killed by the system. Nothing is checked while a
//! trace is analysed, drawn or exported.
//!
//! Only Linux says how much memory a process holds. Elsewhere nothing is checked ([`CHECKED`]), and the limit only
//! bounds the size of an unpacked page.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that sets the limit for the commands.
pub const VARIABLE: &str = "GAPSCOPE_MEMORY_LIMIT";

/// True where the system says how much memory a process holds, so that [`is_exceeded`] can be true.
pub const CHECKED: bool = cfg!(target_os = "linux");

/// The limit in bytes; 0 until it is set or first asked for.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Returns the limit in bytes: the one that was set, else three quarters of the memory of the machine or of this
/// process' control group.
pub fn limit() -> u64 {
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            let limit = machine_limit();
            LIMIT.store(limit, Ordering::Relaxed);
            limit
        }
        limit => limit,
    }
}

/// Sets the limit of this process.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes.max(1), Ordering::Relaxed);
}

/// The value of [`VARIABLE`] is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{VARIABLE} is \"{text}\": write a size such as 500M or 8G")]
pub struct NotASize {
    text: String,
}

/// Sets the limit to the value of [`VARIABLE`], where there is one. Returns a warning where the system cannot enforce
/// it.
///
/// # Errors
/// The value is not a size.
pub fn apply_variable() -> Result<Option<String>, NotASize> {
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let bytes = text.to_str().and_then(size).ok_or_else(|| NotASize {
        text: text.to_string_lossy().into_owned(),
    })?;
    set_limit(bytes);
    Ok(unenforced_warning(CHECKED))
}

/// Returns the warning that the limit is not kept to, where `checked` is false.
fn unenforced_warning(checked: bool) -> Option<String> {
    (!checked).then(|| {
        format!(
            "{VARIABLE} is not kept to here: this system does not say how much memory gapscope holds"
        )
    })
}

/// Returns true when this process holds more than the limit; never where that is not [`CHECKED`].
pub fn is_exceeded() -> bool {
    held_bytes().is_some_and(|held| held > limit())
}

/// Formats a size for people: "1.5 GiB".
pub fn size_text(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib @ 1..1024 => format!("{mib} MiB"),
        mib => format!("{:.1} GiB", mib as f64 / 1024.0),
    }
}

/// Parses a number of bytes, which `K`, `M`, `G` or `T` multiply by powers of 1024.
fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase();
    let text = text
        .strip_suffix("IB")
        .or(text.strip_suffix('B'))
        .unwrap_or(&text);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let with_unit = |(unit, bits): (char, u32)| Some((text.strip_suffix(unit)?, bits));
    let (number, bits) = units.into_iter().find_map(with_unit).unwrap_or((text, 0));
    let number: f64 = number.trim().parse().ok()?;
    let bytes = number * (1_u64 << bits) as f64;
    (bytes >= 1.0 && bytes < u64::MAX as f64).then_some(bytes as u64)
}

/// Returns the anonymous memory of this process in bytes; `None` where that is not [`CHECKED`].
fn held_bytes() -> Option<u64> {
    if !CHECKED {
        return None;
    }
    let text = fs::read_to_string("/proc/self/status").ok()?;
    kib_value(&text, "RssAnon:").or_else(|| kib_value(&text, "VmRSS:"))
}

/// Returns three quarters of the memory of the machine or of the control group, whichever is less; `u64::MAX` where
/// the system says neither.
fn machine_limit() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kib_value(&text, "MemTotal:"));
    let groups = fs::read_to_string("/proc/self/cgroup").ok();
    let group = groups.and_then(|text| group_limit(&text, Path::new("/sys/fs/cgroup")));
    let least = machine.into_iter().chain(group).min();
    // On a system that does not say, its own limits apply first.
    least.map_or(u64::MAX, |bytes| bytes / 4 * 3)
}

/// Returns the least memory limit of the control groups that `listed` (the text of `/proc/self/cgroup`) names, and of
/// their ancestors, below `root`.
fn group_limit(listed: &str, root: &Path) -> Option<u64> {
    let limits = listed.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            some if some.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let path = Path::new(path.trim_start_matches('/'));
        let groups = path.ancestors().map(|group| root.join(group).join(file));
        let limits = groups.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
        limits.min()
    });
    limits.min()
}

/// Returns the value of a `NAME: N kB` line, in bytes.
fn kib_value(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_people_write_them() {
        assert_eq!(size("1000"), Some(1000));
        assert_eq!(size("500M"), Some(500 << 20));
        assert_eq!(size("1.5 GiB"), Some(3 << 29));
        assert_eq!(size("2gb"), Some(2 << 30));
        for wrong in ["", "G", "0", "-1G", "1X", "nan", "inf", "1e30G"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!(size_text(3 << 29), "1.5 GiB");
        assert_eq!(size_text(500 << 20), "500 MiB");
    }

    #[test]
    fn a_limit_that_cannot_be_kept_to_is_said_by_name() {
        assert_eq!(unenforced_warning(true), None);
        let said = unenforced_warning(false).unwrap();
        assert!(said.contains("GAPSCOPE_MEMORY_LIMIT is not kept to here"));
        assert_eq!(held_bytes().is_some(), CHECKED);
    }

    #[test]
    fn the_least_limit_of_the_groups_around_a_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("memory.max", "max\n");
        write("a/memory.max", "4096\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "1024\n");
        let limit = |listed| group_limit(listed, root.path());
        assert_eq!(limit("0::/a/b\n"), Some(4096));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("0::/from/outside\n"), None);
        assert_eq!(limit("5:cpu,memory:/c\n0::/a\n"), Some(1024));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_allocated_is_held() {
        let before = held_bytes().unwrap();
        let bytes = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(held_bytes().unwrap() > before + (bytes.len() as u64 / 2));
        assert!(limit() > 64 << 20);
    }
}
