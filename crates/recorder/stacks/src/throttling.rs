//! Tells for how long a CPU quota kept the sampling thread from running: the path of a root folder goes in, times come out. A quota
//! belongs to a control group, as of a container, and stops all threads of the group until its next period, also on an idle machine.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The most enclosing groups that are read.
const MAX_GROUPS: usize = 16;

/// The files that count the time in which quotas stopped this process.
#[derive(Debug, Default)]
pub struct Throttling {
    files: Vec<File>,
    /// The time at the last reading.
    last_ns: i64,
}

impl Throttling {
    /// Finds the control groups of this process, of either version, below `root`, the folder with `proc` and `sys`.
    pub fn find(root: &Path) -> Throttling {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mount = root.join("sys/fs/cgroup");
        let mut files = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
                continue;
            };
            let top = match controllers {
                "" => mount.clone(),
                names if names.split(',').any(|name| name == "cpu") => mount.join(names),
                _ => continue,
            };
            let folder = top.join(group.trim_start_matches('/'));
            let folders = folder
                .ancestors()
                .take_while(|folder| folder.starts_with(&top));
            let of_groups = folders.filter_map(|folder| File::open(folder.join("cpu.stat")).ok());
            files.extend(of_groups.take(MAX_GROUPS));
        }
        let mut throttling = Throttling { files, last_ns: 0 };
        throttling.since_last();
        throttling
    }

    /// Returns the nanoseconds for which quotas stopped the process since the last call.
    pub fn since_last(&mut self) -> i64 {
        let now_ns = self.files.iter().map(throttled_ns).sum();
        let before_ns = std::mem::replace(&mut self.last_ns, now_ns);
        now_ns.saturating_sub(before_ns).max(0)
    }
}

/// Returns the time that a file `cpu.stat` says; 0 where the group has no quota.
fn throttled_ns(file: &File) -> i64 {
    let mut bytes = [0; 1024];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
    let mut times = text.lines().filter_map(|line| {
        let (name, number) = line.split_once(' ')?;
        let number: i64 = number.parse().ok()?;
        match name {
            "throttled_usec" => number.checked_mul(1000),
            "throttled_time" => Some(number),
            _ => None,
        }
    });
    times.next_back().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_this_group_and_of_enclosing_ones_count_in_both_versions() {
        for (groups, folder, unit) in [
            ("0::/a/b\n", "", "throttled_usec"),
            (
                "9:memory:/x\n3:cpu,cpuacct:/a/b\n0::/\n",
                "cpu,cpuacct/",
                "throttled_time",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let group = |name: &str| root.path().join(format!("sys/fs/cgroup/{folder}{name}"));
            fs::create_dir_all(root.path().join("proc/self")).unwrap();
            fs::write(root.path().join("proc/self/cgroup"), groups).unwrap();
            fs::create_dir_all(group("a/b")).unwrap();
            let set = |name: &str, time: u64| {
                let text = format!("nr_periods 9\nnr_throttled 3\n{unit} {time}\n");
                fs::write(group(name).join("cpu.stat"), text).unwrap();
            };
            set("a", 1_000);
            set("a/b", 5_000);
            let mut throttling = Throttling::find(root.path());
            assert_eq!(throttling.since_last(), 0, "{groups}");
            set("a", 8_000);
            let in_unit = if unit == "throttled_usec" { 1000 } else { 1 };
            assert_eq!(throttling.since_last(), 7_000 * in_unit, "{groups}");
            assert_eq!(throttling.since_last(), 0, "{groups}");
        }
    }

    #[test]
    fn a_process_without_control_groups_is_never_stopped() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Throttling::find(root.path()).since_last(), 0);
    }
}
