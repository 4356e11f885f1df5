//! An open window: launches go in, one after the other, records of the capture come out.
//!
//! Before a launch everything before it has ended, and the memory that it reaches is copied; content that the capture
//! does not have yet is written. After the launch the same memory is copied again, and what changed is its outcome.

use super::captured_device::describe;
use super::copier::{CopiedPart, Copier, DriverError, Range, check};
use super::driver_functions::DriverFunctions;
use super::launch_call::LaunchCall;
use super::loaded_code::Cubin;
use super::prepared_launch::PreparedLaunch;
use super::reached_memory::{
    AddressSpace, Allocation, AllocationKind, allocation_at, words_of_parameters,
};
use super::refusal::Refusal;
use super::saved_memory::SavedMemory;
use super::synchronise::synchronise;
use gapscope_capture::cuda::{CudaMemory, CudaModule, CudaRecord, Launch, MemoryPlace, Relocation};
use gapscope_capture::model::{
    CapturedApi, Content, ContentCause, End, EndReason, Header, MemoryId, ModuleId, Outcome,
};
use gapscope_capture::request::Window;
use gapscope_capture::{CHUNK_BYTES, CUDA_FORMAT, Frame, Hash, Writer, piece_count};
use gapscope_spool::hook;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Why a window cannot go on.
#[derive(Debug)]
pub enum Stop {
    /// The next launch cannot be captured.
    Refused(Refusal),
    /// The capture cannot be written.
    Failed(io::Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl Stop {
    /// Returns whether work of the program is still running, which may wait for the program.
    pub fn leaves_work(&self) -> bool {
        matches!(
            self,
            Stop::Refused(Refusal::NoIdle { .. } | Refusal::NoEnd { .. })
        )
    }

    /// Returns the end of the window for the capture.
    pub fn reason(&self) -> EndReason {
        match self {
            Stop::Refused(refusal) => EndReason::Refused(refusal.to_string()),
            Stop::Failed(error) => EndReason::Failed(error.to_string()),
        }
    }
}

/// Memory whose content the capture has.
#[derive(Debug)]
struct KnownMemory {
    id: MemoryId,
    range: Range,
    /// The hash of each piece, as the capture has it last; `None` before the first.
    hashes: Vec<Option<Hash>>,
}

/// An open window.
#[derive(Debug)]
pub struct OpenWindow {
    path: PathBuf,
    writer: Writer,
    started: Instant,
    /// The context of all launches, and its device.
    context: *mut c_void,
    device: i32,
    copier: Copier,
    /// Events before and after a launch.
    events: [*mut c_void; 2],
    keeps_outputs: bool,
    most_bytes: u64,
    /// The modules, by their code and by where its variables are: a program may load one cubin several times.
    modules: FxHashMap<(Hash, Vec<Range>), ModuleId>,
    /// All memory, by its id.
    memories: Vec<KnownMemory>,
    /// The allocations by their address.
    allocations: BTreeMap<u64, MemoryId>,
    /// The variables of code, by module and name.
    globals: FxHashMap<(ModuleId, String), MemoryId>,
    streams: Vec<*mut c_void>,
    /// The launch that is under way.
    pending: Option<Launch>,
    launches: u64,
}

// SAFETY: the driver takes its handles from any thread; one thread at a time uses the window.
unsafe impl Send for OpenWindow {}

/// What the threads that look at copied memory have found.
#[derive(Default)]
struct FoundPieces {
    /// New hashes: the memory's index, the piece and the hash.
    changed: Vec<(usize, usize, Hash)>,
    /// Pieces that the capture may lack.
    frames: Vec<Frame>,
    /// Words that may be addresses.
    words: FxHashSet<u64>,
    failed: Option<io::Error>,
}

impl OpenWindow {
    /// Opens a window: makes the capture's folder and what copies need, in the thread's current context.
    ///
    /// # Errors
    /// The folder cannot be made, or the driver refuses.
    pub fn begin(
        driver: &DriverFunctions,
        context: *mut c_void,
        path: &Path,
        window: &Window,
        keeps_outputs: bool,
        most_bytes: u64,
    ) -> Result<OpenWindow, String> {
        let refused = |error: DriverError| format!("{} answered {}", error.function, error.code);
        let mut device = 0;
        // SAFETY: the driver's function, which stores a number.
        let code = unsafe { (driver.context_device)(&mut device) };
        check("cuCtxGetDevice", code).map_err(refused)?;
        let copier = Copier::new(driver).map_err(refused)?;
        let mut events = [std::ptr::null_mut(); 2];
        for event in &mut events {
            // SAFETY: the driver's function, which stores a handle.
            let code = unsafe { (driver.create_event)(event, 0) };
            check("cuEventCreate", code).map_err(refused)?;
        }
        let header = Header {
            format: CUDA_FORMAT,
            api: CapturedApi::Cuda,
            gapscope: env!("CARGO_PKG_VERSION").to_owned(),
            command: hook::command_line(),
            pid: std::process::id(),
            started_unix_ns: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos() as i64),
            window: window.to_string(),
            device: describe(driver, device)?,
        };
        let writer = Writer::create(path, header).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!("{} exists", path.display()),
            _ => format!("{} cannot be written: {error}", path.display()),
        })?;
        Ok(OpenWindow {
            path: path.to_owned(),
            writer,
            started: Instant::now(),
            context,
            device,
            copier,
            events,
            keeps_outputs,
            most_bytes,
            modules: FxHashMap::default(),
            memories: Vec::new(),
            allocations: BTreeMap::new(),
            globals: FxHashMap::default(),
            streams: Vec::new(),
            pending: None,
            launches: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of launches that the capture has.
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// Captures what a launch runs on, at the start of the call.
    ///
    /// # Errors
    /// The launch cannot be captured right, or the capture cannot be written.
    pub fn before(
        &mut self,
        driver: &DriverFunctions,
        context: *mut c_void,
        call: &LaunchCall,
        prepared: PreparedLaunch,
        number: Option<u64>,
    ) -> Result<(), Stop> {
        let called = Instant::now();
        let kernel = prepared.kernel.clone();
        if context != self.context {
            return Err(Refusal::OtherContext { kernel }.into());
        }
        synchronise(driver, context).map_err(|why| Refusal::not_idle(&kernel, why, false))?;
        let variables = prepared.variables(driver);
        let module = self.module(&prepared.cubin, &variables)?;
        let globals = self.globals(module, &variables)?;
        let mut relocations = Vec::new();
        let mut reached: Vec<MemoryId> = globals.clone();
        let mut new: Vec<MemoryId> = globals.clone();
        for (at, word) in words_of_parameters(&prepared.parameters) {
            if let Some(global) = self.among(&globals, word) {
                relocations.push(Relocation {
                    at: at as u32,
                    memory: global,
                });
                continue;
            }
            self.reach(driver, word, &kernel, &mut reached, &mut new)?;
        }
        let space = AddressSpace::of_this_process();
        while !new.is_empty() {
            let words = self.read(driver, &kernel, &new, Some(&space), None)?;
            new.clear();
            for word in words {
                if let Some(global) = self.among(&globals, word) {
                    let name = self.name_of_global(global);
                    return Err(Refusal::PointsToGlobal { kernel, name }.into());
                }
                self.reach(driver, word, &kernel, &mut reached, &mut new)?;
            }
        }
        let stream = call.stream.for_driver();
        self.pending = Some(Launch {
            module,
            kernel,
            grid: call.grid,
            block: call.block,
            shared_bytes: call.shared_bytes,
            parameters: prepared.parameters,
            relocations,
            attributes: call.attributes.clone(),
            function: prepared.attributes,
            stream: self.stream(stream),
            reached,
            number,
            called_ns: nanoseconds(called - self.started),
            device_ns: None,
        });
        // SAFETY: an event of ours, and the program's stream.
        unsafe { (driver.record_event)(self.events[0], stream) };
        Ok(())
    }

    /// Captures what a launch did, at the end of the call.
    ///
    /// # Errors
    /// The kernel does not end, or the capture cannot be written.
    pub fn after(
        &mut self,
        driver: &DriverFunctions,
        call_stream: *mut c_void,
        has_succeeded: bool,
    ) -> Result<(), Stop> {
        let Some(mut launch) = self.pending.take() else {
            return Ok(());
        };
        if !has_succeeded {
            // Nothing ran.
            return Ok(());
        }
        // SAFETY: an event of ours, and the program's stream.
        let is_timed = unsafe { (driver.record_event)(self.events[1], call_stream) } == 0;
        let (kernel, reached) = (launch.kernel.clone(), launch.reached.clone());
        synchronise(driver, self.context).map_err(|why| Refusal::not_idle(&kernel, why, true))?;
        let mut ms = 0.0;
        // SAFETY: events of ours; the driver stores a number, or answers with an error.
        let code = unsafe { (driver.elapsed)(&mut ms, self.events[0], self.events[1]) };
        launch.device_ns = (is_timed && code == 0).then_some((f64::from(ms) * 1e6) as u64);
        self.read(driver, &kernel, &reached, None, Some(launch))?;
        self.launches += 1;
        Ok(())
    }

    /// Saves the memory that these words and variables lead to, so that it can be put back.
    ///
    /// # Errors
    /// Some of the memory cannot be put back, or it is too large.
    pub fn save(
        &mut self,
        driver: &DriverFunctions,
        kernel: &str,
        variables: Vec<Range>,
        words: Vec<u64>,
    ) -> Result<SavedMemory, Refusal> {
        let (device, most) = (self.device, self.most_bytes);
        SavedMemory::save(
            driver,
            &mut self.copier,
            device,
            kernel,
            most,
            variables,
            words,
        )
    }

    /// Saves memory to which words of saved memory lead now, and did not before.
    ///
    /// # Errors
    /// Some of the memory cannot be put back, or it is too large.
    pub fn save_more(
        &mut self,
        driver: &DriverFunctions,
        kernel: &str,
        saved: &mut SavedMemory,
    ) -> Result<(), Refusal> {
        saved.save_more(
            driver,
            &mut self.copier,
            self.device,
            kernel,
            self.most_bytes,
        )
    }

    /// Ends the window: writes the reason. `driver`: frees what it holds of the driver, which may be gone otherwise.
    pub fn end(mut self, reason: EndReason, driver: Option<&DriverFunctions>) {
        let after_ns = nanoseconds(self.started.elapsed());
        // A capture without an end is one that was cut off.
        let _ = self
            .writer
            .record(&CudaRecord::End(End { reason, after_ns }));
        if let Some(driver) = driver {
            for event in self.events {
                // SAFETY: an event of ours.
                unsafe { (driver.destroy_event)(event) };
            }
            self.copier.free(driver);
        }
    }

    /// Returns the id of a cubin whose variables are at these places; it is written at its first use.
    fn module(&mut self, cubin: &Arc<Cubin>, variables: &[(&str, Range)]) -> io::Result<ModuleId> {
        let places = variables.iter().map(|(_, range)| *range).collect();
        let key = (cubin.hash, places);
        if let Some(id) = self.modules.get(&key) {
            return Ok(*id);
        }
        let id = ModuleId(self.modules.len() as u32);
        let mut code = Vec::new();
        for piece in cubin.bytes.chunks(CHUNK_BYTES as usize) {
            code.push(self.writer.chunk(piece)?);
        }
        self.writer
            .record(&CudaRecord::CudaModule(CudaModule { id, code }))?;
        self.modules.insert(key, id);
        Ok(id)
    }

    /// Returns the ids of the variables of a module.
    fn globals(
        &mut self,
        module: ModuleId,
        variables: &[(&str, Range)],
    ) -> io::Result<Vec<MemoryId>> {
        let mut ids = Vec::new();
        for (name, range) in variables {
            let (key, range) = ((module, (*name).to_owned()), *range);
            let id = match self.globals.get(&key) {
                Some(id) => *id,
                None => {
                    let name = (*name).to_owned();
                    let id = self.add_memory(range, MemoryPlace::Global { module, name })?;
                    self.globals.insert(key, id);
                    id
                }
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// Returns the variable, among these, in which an address lies.
    fn among(&self, globals: &[MemoryId], address: u64) -> Option<MemoryId> {
        let lies_in = |id: &&MemoryId| {
            let range = self.memories[id.0 as usize].range;
            (range.address..range.address + range.bytes).contains(&address)
        };
        globals.iter().find(lies_in).copied()
    }

    fn name_of_global(&self, id: MemoryId) -> String {
        let named = self.globals.iter().find(|(_, of)| **of == id);
        named.map_or_else(String::new, |((_, name), _)| name.clone())
    }

    /// Adds the allocation in which a word lies to what a launch reaches, and to the new ones, if there is such an
    /// allocation and it is not among them.
    fn reach(
        &mut self,
        driver: &DriverFunctions,
        word: u64,
        kernel: &str,
        reached: &mut Vec<MemoryId>,
        new: &mut Vec<MemoryId>,
    ) -> Result<(), Stop> {
        let is_reached = |window: &OpenWindow, id: &MemoryId| {
            let range = window.memories[id.0 as usize].range;
            (range.address..range.address + range.bytes).contains(&word)
        };
        if reached.iter().any(|id| is_reached(self, id)) {
            return Ok(());
        }
        let Some(Allocation { range, kind }) = allocation_at(driver, word, self.device, kernel)?
        else {
            return Ok(());
        };
        let id = self.allocation(range, kind)?;
        if reached.contains(&id) {
            return Ok(());
        }
        reached.push(id);
        new.push(id);
        let sizes = reached
            .iter()
            .map(|id| self.memories[id.0 as usize].range.bytes);
        let bytes: u64 = sizes.clone().sum();
        if bytes > self.most_bytes {
            return Err(Refusal::TooLarge {
                kernel: kernel.to_owned(),
                bytes,
                most: self.most_bytes,
                largest: sizes.max().unwrap_or(0),
            }
            .into());
        }
        Ok(())
    }

    /// Returns the id of an allocation, which is written at its first use.
    fn allocation(&mut self, range: Range, kind: AllocationKind) -> Result<MemoryId, Stop> {
        if let Some(id) = self.allocations.get(&range.address)
            && self.memories[id.0 as usize].range == range
        {
            return Ok(*id);
        }
        // The program has freed what was there.
        let end = range.address + range.bytes;
        while let Some((&start, id)) = self.allocations.range(..end).next_back() {
            let other = self.memories[id.0 as usize].range;
            if other.address + other.bytes <= range.address {
                break;
            }
            self.allocations.remove(&start);
        }
        let id = self.add_memory(
            range,
            match kind {
                AllocationKind::Device => MemoryPlace::Device,
                AllocationKind::Host => MemoryPlace::Host,
            },
        )?;
        self.allocations.insert(range.address, id);
        Ok(id)
    }

    fn add_memory(&mut self, range: Range, place: MemoryPlace) -> io::Result<MemoryId> {
        let id = MemoryId(self.memories.len() as u32);
        self.writer.record(&CudaRecord::CudaMemory(CudaMemory {
            id,
            address: range.address,
            bytes: range.bytes,
            place,
        }))?;
        self.memories.push(KnownMemory {
            id,
            range,
            hashes: vec![None; piece_count(0, range.bytes) as usize],
        });
        Ok(id)
    }

    fn stream(&mut self, stream: *mut c_void) -> u32 {
        let known = self.streams.iter().position(|other| *other == stream);
        let index = known.unwrap_or_else(|| {
            self.streams.push(stream);
            self.streams.len() - 1
        });
        index as u32
    }

    /// Copies memory and writes what differs from what the capture has: content, or the launch that has ended and its
    /// outcome. Returns the words that may be addresses in `space`, where one is given.
    fn read(
        &mut self,
        driver: &DriverFunctions,
        kernel: &str,
        ids: &[MemoryId],
        space: Option<&AddressSpace>,
        launch: Option<Launch>,
    ) -> Result<Vec<u64>, Stop> {
        let is_content = launch.is_none();
        let indices: Vec<usize> = ids.iter().map(|id| id.0 as usize).collect();
        let ranges: Vec<Range> = indices.iter().map(|at| self.memories[*at].range).collect();
        let keeps_bytes = is_content || self.keeps_outputs;
        let found = Mutex::new(FoundPieces::default());
        let written = Mutex::new(&mut self.writer);
        let lock = |found: &Mutex<FoundPieces>| {
            std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let mut all = FoundPieces::default();
        let memories = &self.memories;
        let work = |part: CopiedPart<'_>| {
            let index = indices[part.range];
            let mut own = FoundPieces::default();
            for (at, piece) in part.bytes.chunks(CHUNK_BYTES as usize).enumerate() {
                let number = (part.offset / CHUNK_BYTES) as usize + at;
                let hash = Hash::new(piece);
                if memories[index].hashes[number] == Some(hash) {
                    continue;
                }
                own.changed.push((index, number, hash));
                let is_kept = || {
                    let writer = written.lock().unwrap_or_else(PoisonError::into_inner);
                    writer.has(hash)
                };
                if keeps_bytes && !is_kept() {
                    match Frame::new(hash, piece) {
                        Ok(frame) => own.frames.push(frame),
                        Err(error) => own.failed = Some(error),
                    }
                }
            }
            if let Some(space) = space {
                space.scan(part.bytes, &mut own.words);
            }
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.changed.append(&mut own.changed);
            found.frames.append(&mut own.frames);
            found.words.extend(own.words.drain());
            found.failed = found.failed.take().or(own.failed);
        };
        let mut between = || {
            let mut part = lock(&found);
            let mut writer = written.lock().unwrap_or_else(PoisonError::into_inner);
            for frame in part.frames.drain(..) {
                if all.failed.is_none() {
                    all.failed = writer.frame(&frame).err();
                }
            }
            all.changed.append(&mut part.changed);
            all.words.extend(part.words.drain());
            all.failed = all.failed.take().or(part.failed);
        };
        let copied = self.copier.read(driver, &ranges, &work, &mut between);
        copied.map_err(|error| Refusal::Driver {
            kernel: kernel.to_owned(),
            function: error.function,
            code: error.code,
        })?;
        if let Some(error) = all.failed {
            return Err(error.into());
        }
        all.changed
            .sort_unstable_by_key(|(index, number, _)| (*index, *number));
        // A launch is written once its whole outcome is known.
        if let Some(launch) = launch {
            self.writer.record(&CudaRecord::Launch(launch))?;
        }
        self.write_changes(&all.changed, is_content)?;
        let mut words: Vec<u64> = all.words.into_iter().collect();
        words.sort_unstable();
        Ok(words)
    }

    /// Writes the new hashes of pieces, those that follow each other in one record.
    fn write_changes(
        &mut self,
        changed: &[(usize, usize, Hash)],
        is_content: bool,
    ) -> io::Result<()> {
        let follows =
            |a: &(usize, usize, Hash), b: &(usize, usize, Hash)| a.0 == b.0 && a.1 + 1 == b.1;
        for run in changed.chunk_by(follows) {
            let (index, first, _) = run[0];
            let memory = &mut self.memories[index];
            let is_first = run.iter().all(|(_, at, _)| memory.hashes[*at].is_none());
            for (_, at, hash) in run {
                memory.hashes[*at] = Some(*hash);
            }
            let hashes: Vec<Hash> = run.iter().map(|(.., hash)| *hash).collect();
            let offset = first as u64 * CHUNK_BYTES;
            let record = match is_content {
                true => CudaRecord::Content(Content {
                    memory: memory.id,
                    offset,
                    chunks: hashes,
                    cause: match is_first {
                        true => ContentCause::FirstUse,
                        false => ContentCause::HostWrite,
                    },
                }),
                false => CudaRecord::Outcome(Outcome {
                    memory: memory.id,
                    offset,
                    bytes: (run.len() as u64 * CHUNK_BYTES).min(memory.range.bytes - offset),
                    hashes,
                }),
            };
            self.writer.record(&record)?;
        }
        Ok(())
    }
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    duration.as_nanos() as u64
}
