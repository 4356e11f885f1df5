//! Reads the environment variables, once. The crate's page lists them.

use std::str::FromStr;
use std::sync::OnceLock;

use ash::vk::QueueFlags;

use crate::misuse;

pub struct Config {
    pub families: Vec<Family>,
    pub dispatch_ns: u64,
    pub group_ns: u64,
    pub bytes_per_us: u64,
    pub submit_ns: u64,
    pub overlap: bool,
    pub timestamp_period: f32,
    pub timestamp_bits: u32,
    pub clock_offset_ns: i64,
    pub clock_drift_ppm: f64,
    pub coherent: bool,
    pub calibrated: Calibrated,
    pub host_query_reset: bool,
    pub size: Option<Size>,
    pub counters: Option<Counters>,
    pub lost_after: Option<u64>,
    pub null: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    pub flags: QueueFlags,
    pub timestamp_bits: u32,
    pub queues: u32,
}

/// The size that the GPU claims, and the vendor whose extension says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    pub vendor: Vendor,
    pub multiprocessors: u32,
    /// The warps or waves that each multiprocessor holds.
    pub warps: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Vendor {
    Nvidia,
    Amd,
    Arm,
}

/// The behaviour of the counters of `VK_KHR_performance_query`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counters {
    Usual,
    /// Another program has the profiling lock.
    Locked,
    /// Results never come.
    Never,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Calibrated {
    No,
    RawOnly,
    Yes,
}

pub fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(Config::from_env)
}

impl Config {
    fn from_env() -> Self {
        let timestamp_bits = value("FAKE_VK_TIMESTAMP_BITS", 64);
        let families = parsed("FAKE_VK_QUEUES", |text| families(text, timestamp_bits))
            .or_else(|| families("GCT:2,CT:2,T:1,C0:1", timestamp_bits))
            .unwrap_or_default();
        Self {
            families,
            dispatch_ns: value("FAKE_VK_DISPATCH_NS", 10_000),
            group_ns: value("FAKE_VK_GROUP_NS", 0),
            bytes_per_us: value("FAKE_VK_BYTES_PER_US", 10_000).max(1),
            submit_ns: value("FAKE_VK_SUBMIT_NS", 5_000),
            overlap: switch("FAKE_VK_OVERLAP", false),
            timestamp_period: value("FAKE_VK_TIMESTAMP_PERIOD", 1.0),
            timestamp_bits,
            clock_offset_ns: value("FAKE_VK_CLOCK_OFFSET_NS", 0),
            clock_drift_ppm: value("FAKE_VK_CLOCK_DRIFT_PPM", 0.0),
            coherent: switch("FAKE_VK_COHERENT", true),
            calibrated: choice(
                "FAKE_VK_CALIBRATED",
                &[
                    ("0", Calibrated::No),
                    ("1", Calibrated::Yes),
                    ("raw", Calibrated::RawOnly),
                ],
            )
            .unwrap_or(Calibrated::Yes),
            host_query_reset: switch("FAKE_VK_HOST_QUERY_RESET", true),
            size: parsed("FAKE_VK_SIZE", size),
            counters: choice(
                "FAKE_VK_COUNTERS",
                &[
                    ("1", Counters::Usual),
                    ("locked", Counters::Locked),
                    ("never", Counters::Never),
                ],
            ),
            lost_after: parsed("FAKE_VK_LOST_AFTER", |text| text.parse().ok()),
            null: switch("FAKE_VK_NULL", false),
        }
    }
}

fn size(text: &str) -> Option<Size> {
    let mut parts = text.split(':');
    let vendor = match parts.next()? {
        "nv" => Vendor::Nvidia,
        "amd" => Vendor::Amd,
        "arm" => Vendor::Arm,
        _ => return None,
    };
    Some(Size {
        vendor,
        multiprocessors: parts.next()?.parse().ok()?,
        warps: parts.next().map_or(Some(0), |warps| warps.parse().ok())?,
    })
}

/// Parses a variable. A value that does not parse is reported in the misuse log, which fails the test that set it.
fn parsed<T>(name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    let value = parse(&text);
    if value.is_none() {
        misuse::report(name, format_args!("cannot read the value '{text}'"));
    }
    value
}

fn value<T: FromStr>(name: &str, default: T) -> T {
    parsed(name, |text| text.parse().ok()).unwrap_or(default)
}

/// Returns the choice whose text a variable has.
fn choice<T: Copy>(name: &str, choices: &[(&str, T)]) -> Option<T> {
    parsed(name, |text| {
        let choice = choices.iter().find(|(known, _)| *known == text);
        choice.map(|(_, value)| *value)
    })
}

fn switch(name: &str, default: bool) -> bool {
    choice(name, &[("0", false), ("1", true)]).unwrap_or(default)
}

fn families(text: &str, default_bits: u32) -> Option<Vec<Family>> {
    text.split(',')
        .map(|family| self::family(family, default_bits))
        .collect()
}

fn family(text: &str, default_bits: u32) -> Option<Family> {
    let (kind, queues) = text.trim().split_once(':')?;
    let letters = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut flags = QueueFlags::empty();
    for letter in letters.chars() {
        flags |= match letter {
            'G' => QueueFlags::GRAPHICS,
            'C' => QueueFlags::COMPUTE,
            'T' => QueueFlags::TRANSFER,
            'P' => QueueFlags::PROTECTED,
            _ => return None,
        };
    }
    let timestamp_bits = match &kind[letters.len()..] {
        "" => default_bits,
        bits => bits.parse().ok()?,
    };
    Some(Family {
        flags,
        timestamp_bits,
        queues: queues.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_letters_then_bits_then_queues() {
        let read = families("GCT:2,T36:1,C0:1", 64);
        let expected = vec![
            Family {
                flags: QueueFlags::GRAPHICS | QueueFlags::COMPUTE | QueueFlags::TRANSFER,
                timestamp_bits: 64,
                queues: 2,
            },
            Family {
                flags: QueueFlags::TRANSFER,
                timestamp_bits: 36,
                queues: 1,
            },
            Family {
                flags: QueueFlags::COMPUTE,
                timestamp_bits: 0,
                queues: 1,
            },
        ];
        assert_eq!(read, Some(expected));
        assert_eq!(families("X:1", 64), None);
        assert_eq!(families("GC", 64), None);
    }
}
