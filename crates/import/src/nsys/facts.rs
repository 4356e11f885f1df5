//! Reads the facts that an export states about the recording, the machine, and the processes, threads, devices and
//! queues of its rows.

use super::import::{Import, pid_of, thread_of};
use crate::Error;
use crate::profile::{About, DeviceFacts};
use gapscope_trace::manifest::{DeviceProperties, Host, Queue};
use gapscope_trace::tables::StreamKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The severity at and above which diagnostics become notes.
const WARNING: i64 = 2;
/// The maximum number of diagnostics that become notes; the others are counted.
const MAX_NOTES: usize = 6;
/// The words by which diagnostics about lost events are recognised.
const LOST: [&str; 5] = ["dropped", "lost", "not all", "discarded", "missing"];

impl Import {
    /// Reads the facts about the recording as a whole.
    pub(super) fn read_about(&mut self) -> Result<About, Error> {
        let mut export = BTreeMap::new();
        self.scan("META_DATA_EXPORT", &["name", "value"], |_, row| {
            export.extend(row.string(0).zip(row.string(1)));
        })?;
        let mut command: BTreeMap<usize, String> = BTreeMap::new();
        self.scan("META_DATA_CAPTURE", &["name", "value"], |_, row| {
            let (Some(name), Some(value)) = (row.string(0), row.string(1)) else {
                return;
            };
            match name.strip_prefix("PROCESS_0:") {
                Some("COMMAND") => {
                    command.insert(0, value);
                }
                Some(rest) => {
                    let number = rest.strip_prefix("ARGUMENT_");
                    let number = number.and_then(|number| number.parse::<u16>().ok());
                    if let Some(number) = number {
                        command.insert(1 + usize::from(number), value);
                    }
                }
                None => {}
            }
        })?;
        let normalized = export
            .get("EXPORT_PARAM_TIME_NORMALIZE")
            .is_some_and(|value| value == "true");
        let shift_ns = export
            .get("EXPORT_PARAM_TIME_SHIFT")
            .and_then(|ns| ns.parse::<i64>().ok());
        let mut zero_unix_ns = None;
        self.scan(
            "TARGET_INFO_SESSION_START_TIME",
            &["utcEpochNs"],
            |_, row| {
                zero_unix_ns = zero_unix_ns.or(row.integer(0));
            },
        )?;
        let zero_unix_ns = match normalized {
            true => Some(0),
            false => zero_unix_ns,
        };
        let mut environment = BTreeMap::new();
        self.scan("TARGET_INFO_SYSTEM_ENV", &["name", "value"], |_, row| {
            // A report of several machines has several rows; the first one counts.
            if let (Some(name), Some(value)) = (row.string(0), row.string(1)) {
                environment.entry(name).or_insert(value);
            }
        })?;
        let known = |name: &str| {
            let value = environment.get(name).map(|value| value.trim());
            value
                .filter(|value| !value.is_empty() && *value != "unknown")
                .map(str::to_owned)
        };
        if let Some(driver) = known("NvDriverVersion") {
            self.profile.set_driver(format!("NVIDIA {driver}"));
        }
        self.read_diagnostics()?;
        let version = export
            .get("EXPORT_PRODUCT_VERSION")
            .or(export.get("EXPORT_PRODUCT_DATE"));
        Ok(About {
            tool: match version {
                Some(version) => format!("Nsight Systems {version}"),
                None => "Nsight Systems".to_owned(),
            },
            command: command.into_values().collect(),
            zero_unix_ns: zero_unix_ns.and_then(|zero| zero.checked_sub(shift_ns.unwrap_or(0))),
            host: Host {
                system: known("OsDescription").unwrap_or_default(),
                processor: known("CpuDescription")
                    .or(known("CpuArchitecture"))
                    .unwrap_or_default(),
                cores: known("CpuCores").and_then(|cores| cores.parse().ok()),
                ..Host::default()
            },
            notes: Vec::new(),
            rank: None,
        })
    }

    /// Reads the faults that nsys reported, as notes and losses.
    fn read_diagnostics(&mut self) -> Result<(), Error> {
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        let columns = ["severity", "text"];
        self.scan("DIAGNOSTIC_EVENT", &columns, |import, row| {
            let text = match (row.string(1), row.integer(1)) {
                (Some(text), _) => Some(text),
                (None, Some(id)) => import.strings.get(id).map(|text| text.into_owned()),
                _ => None,
            };
            let severe = row.integer(0).is_some_and(|severity| severity >= WARNING);
            if let Some(text) = text.filter(|_| severe) {
                let line = text.lines().next().unwrap_or_default().trim();
                let short: String = line.trim_end_matches('.').chars().take(300).collect();
                *seen.entry(short).or_default() += 1;
            }
        })?;
        let all = seen.len();
        for (text, count) in seen
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .take(MAX_NOTES)
        {
            let lower = text.to_ascii_lowercase();
            if LOST.iter().any(|word| lower.contains(word)) {
                let reason = format!("Nsight Systems says: {text}");
                let ledger = &mut self.profile.ledger;
                ledger.add("unknown numbers of events".into(), count, reason);
            } else {
                self.notes.push(format!("Nsight Systems warned: {text}."));
            }
        }
        if all > MAX_NOTES {
            let more = all - MAX_NOTES;
            self.notes.push(format!(
                "Nsight Systems warned of {more} more things: table DIAGNOSTIC_EVENT."
            ));
        }
        Ok(())
    }

    /// Names the processes, threads, devices and queues of the rows.
    pub(super) fn name_things(&mut self) -> Result<(), Error> {
        let mut pids: FxHashMap<u32, _> = FxHashMap::default();
        pids.extend(self.profile.processes().map(|(id, pid)| (pid, id)));
        self.scan("PROCESSES", &["globalPid", "name"], |import, row| {
            let process = row.integer(0).and_then(|global| pids.get(&pid_of(global)));
            if let (Some(process), Some(name)) = (process, row.string(1)) {
                import.profile.name_process(*process, name);
            }
        })?;
        self.scan("ThreadNames", &["globalTid", "nameId"], |import, row| {
            let (Some(global), Some(name)) = (row.integer(0), row.integer(1)) else {
                return;
            };
            if let (Some(process), Some(name)) =
                (pids.get(&pid_of(global)), import.strings.get(name))
            {
                let name = name.into_owned();
                import
                    .profile
                    .name_thread(*process, thread_of(global), name);
            }
        })?;
        self.describe_devices()?;
        self.describe_queues()
    }

    /// Gives the devices of rows the facts of their GPUs.
    fn describe_devices(&mut self) -> Result<(), Error> {
        // GPUs by process and number, and by the number alone.
        let mut gpus: FxHashMap<(u32, u32), i64> = FxHashMap::default();
        self.scan(
            "TARGET_INFO_CUDA_DEVICE",
            &["gpuId", "cudaId", "pid"],
            |_, row| {
                if let (Some(gpu), Some(number), Some(pid)) =
                    (row.integer(0), row.small(1), row.small(2))
                {
                    gpus.insert((pid, number), gpu);
                }
            },
        )?;
        let columns = [
            "id",
            "name",
            "uuid",
            "totalMemory",
            "memoryBandwidth",
            "clockRate",
            "smCount",
            "l2CacheSize",
            "computeMajor",
            "computeMinor",
            "maxWarpsPerSm",
            "threadsPerWarp",
            "maxRegistersPerSm",
            "maxShmemPerSm",
            "maxBlocksPerSm",
        ];
        let mut facts: FxHashMap<i64, DeviceFacts> = FxHashMap::default();
        self.scan("TARGET_INFO_GPU", &columns, |_, row| {
            let Some(id) = row.integer(0) else { return };
            let above_0 = |at: usize| row.integer(at).filter(|value| *value > 0);
            let small = |at: usize| above_0(at).and_then(|value| u32::try_from(value).ok());
            let large = |at: usize| above_0(at).map(|value| value as u64);
            let minor = row.integer(9);
            let capability = (small(8).zip(minor)).map(|(major, minor)| format!("{major}.{minor}"));
            let fresh = DeviceFacts {
                name: row.string(1).unwrap_or_default(),
                uuid: row.string(2).unwrap_or_default().replace('-', ""),
                memory_bytes: large(3),
                limits: Some(DeviceProperties {
                    compute_capability: capability,
                    multiprocessors: small(6),
                    core_clock_khz: large(5).and_then(|hz| u32::try_from(hz / 1000).ok()),
                    memory_bytes_per_s: large(4),
                    l2_bytes: large(7),
                    threads_per_multiprocessor: small(10)
                        .zip(small(11))
                        .and_then(|(warps, threads)| warps.checked_mul(threads)),
                    registers_per_multiprocessor: small(12),
                    shared_bytes_per_multiprocessor: large(13),
                    groups_per_multiprocessor: small(14),
                    partition: false,
                    measured: None,
                }),
            };
            facts.entry(id).or_insert(fresh);
        })?;
        let pids: FxHashMap<_, _> = self.profile.processes().collect();
        let devices: Vec<_> = self.profile.devices().collect();
        for (device, process, number) in devices {
            let pid = pids.get(&process).copied();
            let gpu = pid
                .and_then(|pid| gpus.get(&(pid, number)).copied())
                .unwrap_or(i64::from(number));
            if let Some(facts) = facts.get(&gpu) {
                self.profile.describe_device(device, facts.clone());
            }
        }
        if facts.is_empty() && self.profile.has_work() {
            self.notes.push("The export does not say which GPUs there are (table TARGET_INFO_GPU): each device of a process counts as a GPU of its own.".to_owned());
        }
        Ok(())
    }

    /// Gives the queues of rows the kind and priority of their streams.
    fn describe_queues(&mut self) -> Result<(), Error> {
        type Stream = (u32, u32, u32);
        let mut facts: FxHashMap<Stream, Queue> = FxHashMap::default();
        let columns = ["processId", "contextId", "streamId", "priority", "flag"];
        let stream = |row: &crate::sqlite::Row| -> Option<Stream> {
            Some((row.small(0)?, row.small(1)?, row.small(2)?))
        };
        self.scan("TARGET_INFO_CUDA_STREAM", &columns, |_, row| {
            let Some(stream) = stream(row) else { return };
            let kind = match row.integer(4) {
                Some(1) => Some(StreamKind::Blocking),
                Some(2) => Some(StreamKind::NonBlocking),
                Some(3) => Some(StreamKind::Default),
                _ => None,
            };
            let queue = facts.entry(stream).or_default();
            queue.kind = kind.map(|kind| kind.to_string());
            // Negative priorities are written as unsigned numbers.
            queue.priority = row.integer(3).map(|priority| priority as i32);
        })?;
        let columns = ["processId", "contextId", "nullStreamId"];
        self.scan("TARGET_INFO_CUDA_CONTEXT_INFO", &columns, |_, row| {
            if let Some(stream) = stream(row) {
                facts.entry(stream).or_default().kind = Some(StreamKind::Default.to_string());
            }
        })?;
        let columns = ["processId", "contextId", "streamId", "name"];
        self.scan("TARGET_INFO_NVTX_CUDA_STREAM", &columns, |_, row| {
            if let (Some(stream), Some(name)) = (stream(row), row.string(3)) {
                facts.entry(stream).or_default().name = Some(name).filter(|name| !name.is_empty());
            }
        })?;
        let pids: FxHashMap<_, _> = self.profile.processes().collect();
        let queues: Vec<_> = self.profile.queues().collect();
        for (queue, process, context, number) in queues {
            let Some(pid) = pids.get(&process).copied() else {
                continue;
            };
            if let Some(facts) = facts.get(&(pid, context, number)) {
                self.profile.describe_queue(queue, facts.clone());
            }
        }
        Ok(())
    }
}
