//! Has a capture's memory and code on a GPU, runs its launches in order, and compares the memory after each.

use std::ffi::c_int;
use std::time::Duration;

use gapscope_capture::Hash;
use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::model::Content;
use gapscope_replay::DeviceChoice;

use crate::cells::{self, Cell};
use crate::driver::{Driver, Event, device_attribute};
use crate::error::Error;
use crate::known::KnownHashes;
use crate::launch::ReadyLaunch;
use crate::memory::Placed;
use crate::modules::Modules;
use crate::plan::{Plan, Stage};
use crate::transfer::{Range, Stager};

/// The size of the memory that is filled before a timed launch, so that the GPU works while the host hands the launch over.
/// The time between the events around the launch is then the launch's alone.
const AHEAD_BYTES: u64 = 16 << 20;
/// The longest time that a launch may take.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// A GPU that is in use.
pub struct Gpu {
    pub driver: Driver,
    pub device: c_int,
    pub name: String,
    pub driver_version: Option<u32>,
    /// Size of the L2 cache; `None` where the driver does not say it.
    pub l2_bytes: Option<u64>,
}

/// A capture on a GPU.
pub struct Session<'a> {
    pub capture: &'a CudaCapture,
    pub gpu: Gpu,
    pub plan: Plan<'a>,
    pub placed: Placed,
    pub modules: Modules,
    pub stager: Stager,
    /// The launches of the plan's stages.
    pub ready: Vec<ReadyLaunch>,
    /// The bytes that memory has now.
    pub known: KnownHashes,
    pub events: [Event; 2],
    /// The longest time that a launch may take.
    pub time_limit: Duration,
    /// Memory that is filled before a timed launch; `None` where there is no room for it.
    ahead: Option<u64>,
}

/// The most differing cells of a run whose bytes are kept.
const MAX_KEPT: usize = 64;

/// A cell with other bytes than the program left there.
#[derive(Debug, Clone)]
pub struct Different {
    /// The place of the launch in the stages.
    pub stage: usize,
    pub cell: Cell,
    /// The hash of the bytes in this run.
    pub here: Hash,
    /// The bytes in this run; `None` for differences beyond the first ones.
    pub bytes: Option<Vec<u8>>,
}

/// The results of one run.
#[derive(Debug, Default)]
pub struct Run {
    pub compared: u64,
    /// Cells that a launch changed when it was captured.
    pub changed: u64,
    pub different: Vec<Different>,
    /// The time of the launches on the GPU.
    pub ns: f64,
    /// The hashes of the cells that a launch changed, in order, with their place in the stages.
    pub outputs: Vec<(usize, Range, Hash)>,
}

impl Run {
    /// Returns whether the launches changed memory that they did not change when they were captured.
    pub fn has_stray_writes(&self) -> bool {
        self.different
            .iter()
            .any(|found| found.cell.changed.is_none())
    }
}

impl<'a> Session<'a> {
    /// Opens a GPU, and makes memory and code on it. Content follows with [`Session::reset`].
    pub fn open(
        capture: &'a CudaCapture,
        choice: Option<&DeviceChoice>,
    ) -> Result<Session<'a>, Error> {
        let plan = Plan::new(capture)?;
        let driver = Driver::open()?;
        let gpu = Gpu::open(driver, capture, choice)?;
        let driver = &gpu.driver;
        let mut placed = Placed::new(driver, gpu.device, capture)?;
        let modules = Modules::load(driver, capture)?;
        placed.add_globals(driver, capture, &modules)?;
        let stages = plan.stages.iter();
        let ready = stages.map(|stage| {
            let launch = stage.launch;
            let kernel = modules.kernel(launch)?;
            ReadyLaunch::new(driver, capture, &placed, kernel, launch, stage.number)
        });
        let ready = ready.collect::<Result<_, _>>()?;
        let bytes = capture.memories.values().map(|memory| memory.bytes).sum();
        Ok(Session {
            stager: Stager::new(driver, bytes)?,
            events: [driver.event()?, driver.event()?],
            ahead: driver.allocate(AHEAD_BYTES).ok(),
            time_limit: TIME_LIMIT,
            capture,
            gpu,
            plan,
            placed,
            modules,
            ready,
            known: KnownHashes::default(),
        })
    }

    /// Gives memory the content that it has before the first launch.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.known = KnownHashes::default();
        let first = std::mem::take(&mut self.plan.first);
        let done = self.upload(&first);
        self.plan.first = first;
        done
    }

    /// Gives memory the content of records.
    pub fn upload(&mut self, contents: &[&Content]) -> Result<(), Error> {
        let (driver, placed) = (&self.gpu.driver, &self.placed);
        // A later record may replace bytes of an earlier one: pieces of one upload do not overlap.
        let mut from = 0;
        for (index, content) in contents.iter().enumerate() {
            let overlaps = contents[from..index].iter().any(|before| {
                before.memory == content.memory
                    && before.offset < content.offset + self.capture.total_bytes(&content.chunks)
                    && content.offset < before.offset + self.capture.total_bytes(&before.chunks)
            });
            if overlaps {
                self.stager
                    .upload(driver, placed, self.capture, &contents[from..index])?;
                from = index;
            }
        }
        self.stager
            .upload(driver, placed, self.capture, &contents[from..])?;
        forget_ended(self.capture, contents, &mut self.known);
        for content in contents {
            let mut offset = content.offset;
            for hash in &content.chunks {
                let bytes = self.capture.chunk_bytes(*hash).map_or(0, u64::from);
                self.known.insert(content.memory, offset, bytes, *hash);
                offset += bytes;
            }
        }
        Ok(())
    }

    /// Runs the launches of stages in order, each after its content, and compares the memory after each.
    pub fn run(&mut self, stages: std::ops::Range<usize>) -> Result<Run, Error> {
        let mut run = Run::default();
        for stage in stages {
            let contents = std::mem::take(&mut self.plan.stages[stage].contents);
            let done = self.upload(&contents);
            self.plan.stages[stage].contents = contents;
            done?;
            self.run_stage(stage, &mut run)?;
        }
        Ok(run)
    }

    /// Runs one launch on memory as it is, and compares all memory that it reaches.
    pub fn run_stage(&mut self, stage: usize, run: &mut Run) -> Result<(), Error> {
        let cells = cells::cells(self.capture, &self.plan.stages[stage]);
        let before = self.hashes_before(&cells)?;
        run.ns += self.time(stage)?;
        let ranges: Vec<Range> = cells.iter().map(|cell| cell.range).collect();
        let after = self
            .stager
            .hashes(&self.gpu.driver, &self.placed, &ranges)?;
        for ((cell, before), here) in cells.into_iter().zip(before).zip(after) {
            let Range {
                memory,
                offset,
                bytes,
            } = cell.range;
            run.compared += 1;
            if cell.changed.is_some() {
                run.changed += 1;
                run.outputs.push((stage, cell.range, here));
            }
            if cell.changed.or(before) != Some(here) {
                run.different.push(Different {
                    stage,
                    cell,
                    here,
                    bytes: None,
                });
            }
            self.known.insert(memory, offset, bytes, here);
        }
        self.keep_bytes(run)
    }

    /// Runs another launch in the place of one.
    pub fn run_other(
        &mut self,
        stage: usize,
        other: &ReadyLaunch,
        run: &mut Run,
    ) -> Result<(), Error> {
        let captured = std::mem::replace(&mut self.ready[stage], other.clone());
        let done = self.run_stage(stage, run);
        self.ready[stage] = captured;
        done
    }

    /// Returns the hash of each cell that must not change, from what is known, or else from the memory.
    fn hashes_before(&mut self, cells: &[Cell]) -> Result<Vec<Option<Hash>>, Error> {
        let mut hashes: Vec<Option<Hash>> = Vec::with_capacity(cells.len());
        let mut unknown = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            let Range {
                memory,
                offset,
                bytes,
            } = cell.range;
            let known = self.known.get(memory, offset, bytes);
            if known.is_none() && cell.changed.is_none() {
                unknown.push((index, cell.range));
            }
            hashes.push(known);
        }
        let ranges: Vec<Range> = unknown.iter().map(|(_, range)| *range).collect();
        let found = self
            .stager
            .hashes(&self.gpu.driver, &self.placed, &ranges)?;
        for ((index, range), hash) in unknown.into_iter().zip(found) {
            hashes[index] = Some(hash);
            self.known
                .insert(range.memory, range.offset, range.bytes, hash);
        }
        Ok(hashes)
    }

    /// Runs one launch, waits for it, and returns its time on the GPU in nanoseconds.
    pub fn time(&mut self, stage: usize) -> Result<f64, Error> {
        let driver = &self.gpu.driver;
        let ready = &self.ready[stage];
        let [start, end] = self.events;
        self.keep_busy()?;
        driver.record(start)?;
        ready.start(driver)?;
        driver.record(end)?;
        ready.wait(driver, self.time_limit)?;
        driver.elapsed_ns(start, end)
    }

    /// Gives the GPU work for some microseconds.
    pub fn keep_busy(&self) -> Result<(), Error> {
        match self.ahead {
            Some(address) => self.gpu.driver.fill(address, 0, AHEAD_BYTES),
            None => Ok(()),
        }
    }

    /// Runs launches without the host in between, and returns the time of all of them. `before` is called before each, for
    /// copies on the GPU.
    pub fn run_tight(
        &self,
        stages: std::ops::Range<usize>,
        before: impl Fn(&Session<'_>, usize) -> Result<(), Error>,
    ) -> Result<f64, Error> {
        let driver = &self.gpu.driver;
        let [start, end] = self.events;
        self.keep_busy()?;
        driver.record(start)?;
        let last = stages.end.saturating_sub(1);
        for stage in stages {
            before(self, stage)?;
            self.ready[stage].start(driver)?;
        }
        driver.record(end)?;
        self.ready[last].wait(driver, self.time_limit)?;
        driver.elapsed_ns(start, end)
    }

    /// Compares memory with the hashes that it must have.
    pub fn compare_with(
        &mut self,
        expected: &KnownHashes,
        last: usize,
        run: &mut Run,
    ) -> Result<(), Error> {
        let all: Vec<_> = expected.all().collect();
        let ranges: Vec<Range> = (all.iter())
            .map(|(memory, offset, bytes, _)| Range {
                memory: *memory,
                offset: *offset,
                bytes: *bytes,
            })
            .collect();
        let after = self
            .stager
            .hashes(&self.gpu.driver, &self.placed, &ranges)?;
        for ((range, (.., hash)), here) in ranges.into_iter().zip(all).zip(after) {
            run.compared += 1;
            run.outputs.push((last, range, here));
            if hash != here {
                let cell = Cell {
                    range,
                    changed: Some(hash),
                };
                run.different.push(Different {
                    stage: last,
                    cell,
                    here,
                    bytes: None,
                });
            }
        }
        self.keep_bytes(run)
    }

    /// Reads the bytes of the first differences of a run, as long as the memory holds them.
    fn keep_bytes(&mut self, run: &mut Run) -> Result<(), Error> {
        let first = run.different.iter_mut().take(MAX_KEPT);
        let mut new: Vec<&mut Different> = first.filter(|found| found.bytes.is_none()).collect();
        let ranges: Vec<Range> = new.iter().map(|found| found.cell.range).collect();
        let all = self.stager.bytes(&self.gpu.driver, &self.placed, &ranges)?;
        for (found, bytes) in new.iter_mut().zip(all) {
            found.bytes = Some(bytes);
        }
        Ok(())
    }

    /// Returns the stage at a place.
    pub fn stage(&self, index: usize) -> &Stage<'a> {
        &self.plan.stages[index]
    }
}

/// Forgets what is known of the allocations that end where these contents are put into memory.
pub fn forget_ended(capture: &CudaCapture, contents: &[&Content], known: &mut KnownHashes) {
    for (old, new) in capture.replaced() {
        if contents.iter().any(|content| content.memory == new) {
            known.forget(old, 0, u64::MAX);
        }
    }
}

impl Gpu {
    /// Chooses a GPU: the one that is asked for, or the one with the captured GPU's name, or the first. One of another
    /// architecture is refused.
    fn open(
        driver: Driver,
        capture: &CudaCapture,
        choice: Option<&DeviceChoice>,
    ) -> Result<Gpu, Error> {
        let devices = driver.devices()?;
        let captured = &capture.header.device;
        let wanted = match choice {
            Some(DeviceChoice::Number(number)) => devices.get(*number),
            Some(DeviceChoice::Name(name)) => {
                let part = name.to_lowercase();
                devices
                    .iter()
                    .find(|(_, name)| name.to_lowercase().contains(&part))
            }
            None => {
                let same = devices.iter().find(|(_, name)| *name == captured.name);
                same.or(devices.first())
            }
        };
        let (device, name) = match (wanted, choice) {
            (Some((device, name)), _) => (*device, name.clone()),
            (None, Some(choice)) if !devices.is_empty() => {
                let asked = match choice {
                    DeviceChoice::Number(number) => number.to_string(),
                    DeviceChoice::Name(name) => name.clone(),
                };
                let each = devices.iter().enumerate();
                let each = each.map(|(number, (_, name))| format!("{number} ({name})"));
                let there = format!("are {}", each.collect::<Vec<_>>().join(", "));
                return Err(Error::NoSuchDevice { asked, there });
            }
            _ => return Err(Error::NoDevice),
        };
        let here = [device_attribute::MAJOR, device_attribute::MINOR];
        let here = [
            driver.attribute(device, here[0])?,
            driver.attribute(device, here[1])?,
        ];
        let [major, minor] = captured.compute_capability;
        if here.map(i64::from) != [major, minor].map(i64::from) {
            return Err(Error::Architecture {
                captured: format!("{major}.{minor}"),
                captured_device: captured.name.clone(),
                device: name,
                here: format!("{}.{}", here[0], here[1]),
            });
        }
        driver.use_device(device)?;
        let l2_bytes = driver.attribute(device, device_attribute::L2_BYTES);
        Ok(Gpu {
            driver,
            device,
            name,
            driver_version: driver.version(),
            l2_bytes: l2_bytes.ok().and_then(|bytes| u64::try_from(bytes).ok()),
        })
    }
}
