//! Describes the recording machine for a trace's manifest.

use super::processor::{self, values};
use gapscope_trace::manifest::Host;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Returns the description of this machine. A fact that the system does not tell stays empty.
pub fn describe() -> Host {
    let kernel = rustix::system::uname();
    let kernel = format!(
        "{} {} {}",
        kernel.sysname().to_string_lossy(),
        kernel.release().to_string_lossy(),
        kernel.machine().to_string_lossy(),
    );
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let distribution = values(&release, "PRETTY_NAME", '=')
        .next()
        .map(|name| name.trim_matches('"').to_owned());
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Host {
        system: match distribution {
            Some(distribution) => format!("{distribution}, {kernel}"),
            None => kernel,
        },
        processor: processor::name(&processors),
        cores: std::thread::available_parallelism()
            .ok()
            .map(|n| n.get() as u32),
        boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty()),
        time_namespace: fs::metadata("/proc/self/ns/time")
            .ok()
            .map(|namespace| namespace.ino()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_boot_and_the_time_namespace_are_known() {
        let host = super::describe();
        let boot = host.boot_id.expect("a boot id");
        assert!(boot.len() >= 32 && boot.trim() == boot, "{boot}");
        assert_eq!(super::describe().boot_id, Some(boot));
        assert_ne!(host.time_namespace, Some(0));
    }
}
