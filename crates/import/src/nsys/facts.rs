//! Reads the facts that an export states about the recording, the machine, and the processes, threads, devices and
//! queues of its rows, into the inventory. [`Import::read_about`] comes before the rows, [`Import::name_things`]
//! after.

use super::import::{Import, pid_of, thread_of};
use crate::Error;
use gapscope_trace::ids::DeviceId;
use gapscope_trace::manifest::{Device, DeviceProperties, Host, Queue};
use gapscope_trace::tables::StreamKind;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The severity at and above which diagnostics become notes.
const WARNING: i64 = 2;
/// The maximum number of diagnostics that become notes; the others are counted.
const MAX_NOTES: usize = 6;
/// The words by which diagnostics about lost events are recognised.
const LOST: [&str; 5] = ["dropped", "lost", "not all", "discarded", "missing"];

/// Returns the digits of a GPU's UUID; nothing where the driver gave zeros for it.
fn uuid(written: Option<String>) -> String {
    let digits = written.unwrap_or_default().replace('-', "");
    match digits.bytes().all(|digit| digit == b'0') {
        true => String::new(),
        false => digits,
    }
}

impl Import {
    /// Reads the facts about the recording as a whole. Returns the wall-clock time of the clock's zero, in nanoseconds
    /// since 1970, if the file says it.
    pub(super) fn read_about(&mut self) -> Result<Option<i64>, Error> {
        let export = self.read_pairs("META_DATA_EXPORT")?;
        let capture = self.read_pairs("META_DATA_CAPTURE")?;
        let arguments = capture.iter().filter_map(|(name, value)| {
            let place = match name.strip_prefix("PROCESS_0:")? {
                "COMMAND" => 0,
                rest => 1 + u32::from(rest.strip_prefix("ARGUMENT_")?.parse::<u16>().ok()?),
            };
            Some((place, value.clone()))
        });
        let command: BTreeMap<u32, String> = arguments.collect();
        let normalized = export
            .get("EXPORT_PARAM_TIME_NORMALIZE")
            .is_some_and(|value| value == "true");
        let shift_ns = export
            .get("EXPORT_PARAM_TIME_SHIFT")
            .and_then(|ns| ns.parse::<i64>().ok());
        // Times count from the start of the session, unless they were shifted.
        if !normalized && shift_ns.is_none_or(|ns| ns == 0) {
            let mut end_ns = None;
            self.scan("ANALYSIS_DETAILS", &["duration"], |_, row| {
                end_ns = end_ns.max(row.integer(0).filter(|ns| *ns > 0));
            })?;
            self.profile.times.end_ns = end_ns;
        }
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
        let environment = self.read_pairs("TARGET_INFO_SYSTEM_ENV")?;
        let known = |name: &str| {
            let value = environment.get(name).map(|value| value.trim());
            value
                .filter(|value| !value.is_empty() && *value != "unknown")
                .map(str::to_owned)
        };
        let inventory = &mut self.profile.inventory;
        if let Some(driver) = known("NvDriverVersion") {
            inventory.driver = format!("NVIDIA {driver}");
        }
        let version = export
            .get("EXPORT_PRODUCT_VERSION")
            .or(export.get("EXPORT_PRODUCT_DATE"));
        if let Some(version) = version {
            inventory.tool = format!("Nsight Systems {version}");
        }
        inventory.manifest.command = command.into_values().collect();
        inventory.manifest.host = Host {
            system: known("OsDescription").unwrap_or_default(),
            processor: known("CpuDescription")
                .or(known("CpuArchitecture"))
                .unwrap_or_default(),
            cores: known("CpuCores").and_then(|cores| cores.parse().ok()),
            ..Host::default()
        };
        self.read_diagnostics()?;
        Ok(zero_unix_ns.and_then(|zero| zero.checked_sub(shift_ns.unwrap_or(0))))
    }

    /// Returns the processes that used a GPU, as far as the file lists them.
    pub(super) fn pids_of_devices(&mut self) -> Result<BTreeSet<u32>, Error> {
        let mut pids = BTreeSet::new();
        self.scan("TARGET_INFO_CUDA_DEVICE", &["pid"], |_, row| {
            pids.extend(row.small::<u32>(0));
        })?;
        Ok(pids)
    }

    /// Reads a table of names and values. A report of several machines has several rows of a name; the first one counts.
    fn read_pairs(&mut self, table: &'static str) -> Result<BTreeMap<String, String>, Error> {
        let mut pairs = BTreeMap::new();
        self.scan(table, &["name", "value"], |_, row| {
            if let (Some(name), Some(value)) = (row.string(0), row.string(1)) {
                pairs.entry(name).or_insert(value);
            }
        })?;
        Ok(pairs)
    }

    /// Reads the faults that nsys reported. Of the first [`MAX_NOTES`] distinct texts by alphabet, those with a word
    /// of [`LOST`] become losses and the others notes.
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
        let inventory = &mut self.profile.inventory;
        for (text, count) in seen
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .take(MAX_NOTES)
        {
            let lower = text.to_ascii_lowercase();
            if LOST.iter().any(|word| lower.contains(word)) {
                let reason = format!("Nsight Systems says: {text}");
                (inventory.losses).add("unknown numbers of events".into(), count, reason);
            } else {
                inventory.note(format!("Nsight Systems warned: {text}."));
            }
        }
        if all > MAX_NOTES {
            let more = all - MAX_NOTES;
            inventory.note(format!(
                "Nsight Systems warned of {more} more things: table DIAGNOSTIC_EVENT."
            ));
        }
        Ok(())
    }

    /// Names the processes, threads, devices and queues of the rows.
    pub(super) fn name_things(&mut self) -> Result<(), Error> {
        let mut pids: FxHashMap<u32, _> = FxHashMap::default();
        let processes = self.profile.inventory.processes();
        pids.extend(processes.map(|(id, pid)| (pid, id)));
        self.scan("PROCESSES", &["globalPid", "name"], |import, row| {
            let process = row.integer(0).and_then(|global| pids.get(&pid_of(global)));
            if let (Some(process), Some(name)) = (process, row.string(1)) {
                let inventory = &mut import.profile.inventory;
                inventory.name_process(*process, &name, Vec::new());
            }
        })?;
        self.scan("ThreadNames", &["globalTid", "nameId"], |import, row| {
            let (Some(global), Some(name)) = (row.integer(0), row.integer(1)) else {
                return;
            };
            if let (Some(process), Some(name)) =
                (pids.get(&pid_of(global)), import.strings.get(name))
            {
                let inventory = &mut import.profile.inventory;
                inventory.name_thread(*process, thread_of(global), name.into_owned());
            }
        })?;
        self.describe_devices()?;
        self.describe_queues()
    }

    /// Gives the devices of rows the facts of their GPUs, by process and number, or else by the number as the GPU's
    /// id.
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
            "deviceId",
        ];
        let mut facts: FxHashMap<i64, Device> = FxHashMap::default();
        self.scan("TARGET_INFO_GPU", &columns, |_, row| {
            // Exports of 2021 call the column `deviceId`.
            let Some(id) = row.integer(0).or(row.integer(15)) else {
                return;
            };
            let above_0 = |at: usize| row.integer(at).filter(|value| *value > 0);
            let small = |at: usize| above_0(at).and_then(|value| u32::try_from(value).ok());
            let large = |at: usize| above_0(at).map(|value| value as u64);
            let minor = row.integer(9);
            let capability = (small(8).zip(minor)).map(|(major, minor)| format!("{major}.{minor}"));
            let fresh = Device {
                name: row.string(1).unwrap_or_default(),
                uuid: uuid(row.string(2)),
                heaps: large(3).into_iter().collect(),
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
                ..Device::default()
            };
            facts.entry(id).or_insert(fresh);
        })?;
        let inventory = &mut self.profile.inventory;
        let pids: FxHashMap<_, _> = inventory.processes().collect();
        let mut by_gpu: BTreeMap<i64, Vec<DeviceId>> = BTreeMap::new();
        for (number, device) in inventory.numbered_devices() {
            let pid = pids.get(&device.process).copied();
            let gpu = pid.and_then(|pid| gpus.get(&(pid, number)).copied());
            let gpu = gpu.unwrap_or(number.into());
            if let Some(facts) = facts.get(&gpu) {
                if facts.uuid.is_empty() {
                    by_gpu.entry(gpu).or_default().push(device.id);
                }
                device.name.clone_from(&facts.name);
                device.uuid.clone_from(&facts.uuid);
                device.heaps.clone_from(&facts.heaps);
                device.limits.clone_from(&facts.limits);
            }
        }
        // Processes that use a GPU with one id use one GPU.
        for (gpu, devices) in by_gpu.into_iter().filter(|(_, devices)| devices.len() > 1) {
            inventory.identify(&devices, &format!("GPU {gpu} of the file"));
        }
        if facts.is_empty() && !self.profile.recorded.work.is_empty() {
            inventory.note("The export does not say which GPUs there are (table TARGET_INFO_GPU): each device of a process counts as a GPU of its own.");
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
        let inventory = &mut self.profile.inventory;
        let pids: FxHashMap<_, _> = inventory.processes().collect();
        for (process, queue) in inventory.streams() {
            let pid = pids.get(&process).copied().unwrap_or(0);
            if let Some(facts) = facts.get(&(pid, queue.family, queue.index)) {
                queue.name.clone_from(&facts.name);
                queue.kind.clone_from(&facts.kind);
                queue.priority = facts.priority;
            }
        }
        Ok(())
    }
}
