//! Reads a capture, of whoever made it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::content::{CHUNK_BYTES, Hash, pieces};
use crate::model::*;
use crate::{CONTENT, FORMAT, RECORDS};

/// A line longer than this is of nobody's program: some 500,000 dispatches in one command buffer.
const LINE_BYTES: u64 = 256 << 20;
/// No shader and no piece of memory is larger.
const CHUNK_BYTES_AT_MOST: u32 = 64 << 20;
/// A frame of zstd holds at most 128 KiB in 4 bytes.
const ZSTD_RATIO: u64 = 32 << 10;

/// A capture. Whatever a record of it names is in it, and inside of its bounds.
#[derive(Debug)]
pub struct Capture {
    /// What was captured.
    pub header: Header,
    /// Allocations.
    pub memories: BTreeMap<MemoryId, Memory>,
    /// Buffers.
    pub buffers: BTreeMap<BufferId, Buffer>,
    /// Shaders.
    pub modules: BTreeMap<ModuleId, Module>,
    /// Layouts of descriptor sets.
    pub set_layouts: BTreeMap<SetLayoutId, SetLayout>,
    /// Pipeline layouts.
    pub pipeline_layouts: BTreeMap<PipelineLayoutId, PipelineLayout>,
    /// Compute pipelines.
    pub pipelines: BTreeMap<PipelineId, Pipeline>,
    /// Queues.
    pub queues: BTreeMap<QueueId, Queue>,
    /// The commands of command buffers.
    pub commands: BTreeMap<CommandsId, Vec<Command>>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// How the window ended; none: the capture was cut off.
    pub end: Option<End>,
    content: File,
    chunks: HashMap<Hash, Chunk>,
}

/// What happened in a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Memory has these bytes.
    Content(Content),
    /// Work was handed to a queue.
    Submission(Submission),
    /// Memory must hold this.
    Outcome(Outcome),
}

/// Why a capture cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing, or cannot be read.
    #[error("cannot read {path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It does not begin as a capture does.
    #[error("{path} is not a capture: {reason}", path = path.display())]
    NotACapture {
        /// The file of records.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A later version wrote it.
    #[error(
        "the capture has format {format}, and this gapscope reads up to {FORMAT}: read it with version {gapscope} or later"
    )]
    Later {
        /// Its format.
        format: u32,
        /// Who wrote it.
        gapscope: String,
    },
}

/// Where a capture stops being right. What came before it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of `capture.jsonl`, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { line, reason } = self;
        write!(
            f,
            "line {line} of {RECORDS}: {reason}: the capture is read as far as here"
        )
    }
}

impl Capture {
    /// Reads the records, up to the first that is not right, which is the problem that comes with the capture. Content is read when it is asked
    /// for.
    ///
    /// # Errors
    /// There is no capture, or one of a later version.
    pub fn open(folder: &Path) -> Result<(Capture, Option<Problem>), ReadError> {
        let open = |name| {
            let path = folder.join(name);
            regular(&path).map_err(|error| ReadError::File { path, error })
        };
        let mut lines = Lines {
            file: BufReader::new(open(RECORDS)?),
            line: 0,
        };
        let content = open(CONTENT)?;
        let not = |reason: String| ReadError::NotACapture {
            path: folder.join(RECORDS),
            reason,
        };
        let first = lines.next_line().map_err(|problem| not(problem.reason))?;
        let first = first.ok_or_else(|| not("it is empty".to_owned()))?;
        later(&first)?;
        let Ok(Record::Capture(header)) = serde_json::from_slice(&first) else {
            return Err(not("its first line does not describe one".to_owned()));
        };
        let mut capture = Capture {
            header,
            memories: BTreeMap::new(),
            buffers: BTreeMap::new(),
            modules: BTreeMap::new(),
            set_layouts: BTreeMap::new(),
            pipeline_layouts: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            queues: BTreeMap::new(),
            commands: BTreeMap::new(),
            steps: Vec::new(),
            end: None,
            content,
            chunks: HashMap::new(),
        };
        let problem = loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break None,
                Err(problem) => break Some(problem),
            };
            let added = serde_json::from_slice(&line)
                .map_err(|error| format!("{error}"))
                .and_then(|record| capture.add(record));
            if let Err(reason) = added {
                break Some(Problem {
                    line: lines.line,
                    reason,
                });
            }
        };
        Ok((capture, problem))
    }

    /// A piece of content.
    ///
    /// # Errors
    /// It is not in the file, or has another hash.
    pub fn chunk(&self, hash: Hash) -> io::Result<Vec<u8>> {
        let damaged = |what: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("content {hash} {what}"))
        };
        let chunk = self
            .chunks
            .get(&hash)
            .ok_or_else(|| damaged("is missing"))?;
        let mut frame = vec![0; chunk.stored as usize];
        self.content
            .read_exact_at(&mut frame, chunk.at)
            .map_err(|_| damaged("is cut off"))?;
        let bytes = zstd::bulk::decompress(&frame, chunk.bytes as usize)
            .map_err(|_| damaged("cannot be decompressed"))?;
        if Hash::of(&bytes) != hash {
            return Err(damaged("has been changed"));
        }
        Ok(bytes)
    }

    /// The size of a piece.
    pub fn chunk_bytes(&self, hash: Hash) -> Option<u32> {
        self.chunks.get(&hash).map(|chunk| chunk.bytes)
    }

    /// Where a range of a buffer lies: in this allocation, from this byte on.
    pub fn place(&self, range: BufferRange) -> (MemoryId, u64) {
        let buffer = &self.buffers[&range.buffer];
        (buffer.memory, buffer.offset + range.offset)
    }

    /// The submissions.
    pub fn submissions(&self) -> impl Iterator<Item = &Submission> {
        self.steps.iter().filter_map(|step| match step {
            Step::Submission(submission) => Some(submission),
            _ => None,
        })
    }

    /// All commands in the order of submission, those of a command buffer that was submitted twice twice.
    pub fn executed(&self) -> impl Iterator<Item = &Command> {
        self.submissions()
            .flat_map(|submission| &submission.batches)
            .flat_map(|batch| &batch.commands)
            .flat_map(|id| &self.commands[id])
    }

    /// Takes a record in, if all that it names is here.
    fn add(&mut self, record: Record) -> Result<(), String> {
        if self.end.is_some() {
            return Err("it follows the end".to_owned());
        }
        match record {
            Record::Capture(_) => return Err("the capture begins a second time".to_owned()),
            Record::Chunk(chunk) => {
                let fits =
                    u64::from(chunk.bytes) <= u64::from(chunk.stored).saturating_mul(ZSTD_RATIO);
                if chunk.bytes > CHUNK_BYTES_AT_MOST || chunk.stored > CHUNK_BYTES_AT_MOST || !fits
                {
                    return Err(format!(
                        "content {} claims {} bytes",
                        chunk.hash, chunk.bytes
                    ));
                }
                self.chunks.insert(chunk.hash, chunk);
            }
            Record::Memory(memory) => new(&mut self.memories, memory.id, memory)?,
            Record::Buffer(buffer) => {
                let memory = known(&self.memories, buffer.memory, "memory")?;
                inside(buffer.offset, buffer.bytes, memory.bytes)?;
                new(&mut self.buffers, buffer.id, buffer)?;
            }
            Record::Module(module) => {
                self.has(module.code)?;
                new(&mut self.modules, module.id, module)?;
            }
            Record::SetLayout(layout) => new(&mut self.set_layouts, layout.id, layout)?,
            Record::PipelineLayout(layout) => {
                for set in layout.sets.iter().flatten() {
                    known(&self.set_layouts, *set, "set layout")?;
                }
                for range in &layout.push_constants {
                    inside(range.offset.into(), range.bytes.into(), PUSH_CONSTANT_BYTES)?;
                }
                new(&mut self.pipeline_layouts, layout.id, layout)?;
            }
            Record::Pipeline(pipeline) => {
                known(&self.pipeline_layouts, pipeline.layout, "pipeline layout")?;
                known(&self.modules, pipeline.module, "module")?;
                if let Some(odd) = pipeline
                    .constants
                    .iter()
                    .find(|c| ![1, 2, 4, 8].contains(&c.value.len()))
                {
                    return Err(format!("constant {} has {} bytes", odd.id, odd.value.len()));
                }
                new(&mut self.pipelines, pipeline.id, pipeline)?;
            }
            Record::Queue(queue) => new(&mut self.queues, queue.id, queue)?,
            Record::Content(content) => {
                let memory = known(&self.memories, content.memory, "memory")?;
                let mut at = content.offset;
                for (index, hash) in content.chunks.iter().enumerate() {
                    let bytes = u64::from(self.has(*hash)?);
                    inside(at, bytes, memory.bytes)?;
                    let room = CHUNK_BYTES - at % CHUNK_BYTES;
                    let is_last = index + 1 == content.chunks.len();
                    if bytes == 0 || bytes > room || (bytes < room && !is_last) {
                        return Err(format!(
                            "piece {index} has {bytes} bytes, and {room} are to the next"
                        ));
                    }
                    at += bytes;
                }
                self.steps.push(Step::Content(content));
            }
            Record::Outcome(outcome) => {
                let memory = known(&self.memories, outcome.memory, "memory")?;
                inside(outcome.offset, outcome.bytes, memory.bytes)?;
                let expected = pieces(outcome.offset, outcome.bytes).count();
                if expected != outcome.hashes.len() {
                    return Err(format!(
                        "there are {} hashes for {expected} pieces",
                        outcome.hashes.len()
                    ));
                }
                self.steps.push(Step::Outcome(outcome));
            }
            Record::Commands(Commands { id, commands }) => {
                for (index, command) in commands.iter().enumerate() {
                    self.check(command)
                        .map_err(|reason| format!("command {index}: {reason}"))?;
                }
                new(&mut self.commands, id, commands)?;
            }
            Record::Submission(submission) => {
                known(&self.queues, submission.queue, "queue")?;
                for id in submission.batches.iter().flat_map(|batch| &batch.commands) {
                    known(&self.commands, *id, "commands")?;
                }
                self.steps.push(Step::Submission(submission));
            }
            Record::End(end) => self.end = Some(end),
        }
        Ok(())
    }

    fn check(&self, command: &Command) -> Result<(), String> {
        match command {
            Command::Dispatch(dispatch) => self.check_dispatch(dispatch)?,
            Command::Copy(copy) => {
                for region in &copy.regions {
                    self.range(BufferRange {
                        buffer: copy.from,
                        offset: region.from,
                        bytes: region.bytes,
                    })?;
                    self.range(BufferRange {
                        buffer: copy.to,
                        offset: region.to,
                        bytes: region.bytes,
                    })?;
                }
            }
            Command::Fill(fill) => {
                self.range(fill.range)?;
                words(fill.range.offset, fill.range.bytes)?;
            }
            Command::Update(update) => {
                let bytes = update.data.len() as u64;
                self.range(BufferRange {
                    buffer: update.buffer,
                    offset: update.offset,
                    bytes,
                })?;
                words(update.offset, bytes)?;
                if bytes > 65_536 {
                    return Err(format!("an update has {bytes} bytes, more than 65,536"));
                }
            }
            Command::Barrier(barrier) => {
                for (_, range) in &barrier.buffers {
                    self.range(*range)?;
                }
            }
            Command::Label(_) => {}
        }
        Ok(())
    }

    fn check_dispatch(&self, dispatch: &Dispatch) -> Result<(), String> {
        let pipeline = known(&self.pipelines, dispatch.pipeline, "pipeline")?;
        let layout = known(&self.pipeline_layouts, pipeline.layout, "pipeline layout")?;
        let bytes = (layout.push_constants.iter())
            .map(|range| range.offset + range.bytes)
            .max()
            .unwrap_or(0);
        if dispatch.push_constants.len() != bytes as usize {
            let found = dispatch.push_constants.len();
            return Err(format!(
                "{found} bytes of push constants, and the layout has {bytes}"
            ));
        }
        if let Groups::Indirect(range) = dispatch.groups {
            self.range(range)?;
            words(range.offset, range.bytes)?;
            if range.bytes != 12 {
                return Err(format!(
                    "an indirect dispatch reads {} bytes, and not 12",
                    range.bytes
                ));
            }
        }
        for binding in &dispatch.bindings {
            let set = layout.sets.get(binding.set as usize).copied().flatten();
            let slot = set.and_then(|set| {
                let bindings = &self.set_layouts[&set].bindings;
                bindings.iter().find(|slot| slot.binding == binding.binding)
            });
            let fits = slot.is_some_and(|slot| {
                binding.element < slot.count && binding.descriptor_type == slot.descriptor_type
            });
            if !fits {
                let Binding {
                    set,
                    binding,
                    element,
                    ..
                } = binding;
                return Err(format!(
                    "the layout has no such descriptor: set {set}, binding {binding}, element {element}"
                ));
            }
            if let Some(range) = binding.range {
                self.range(range)?;
            }
        }
        Ok(())
    }

    fn range(&self, range: BufferRange) -> Result<(), String> {
        let buffer = known(&self.buffers, range.buffer, "buffer")?;
        inside(range.offset, range.bytes, buffer.bytes)
    }

    /// The size of a piece that is here.
    fn has(&self, hash: Hash) -> Result<u32, String> {
        self.chunk_bytes(hash)
            .ok_or_else(|| format!("content {hash} is missing"))
    }
}

/// No device has more push constants.
const PUSH_CONSTANT_BYTES: u64 = 64 << 10;

fn known<'a, I: Ord + fmt::Display, T>(
    map: &'a BTreeMap<I, T>,
    id: I,
    what: &str,
) -> Result<&'a T, String> {
    map.get(&id)
        .ok_or_else(|| format!("there is no {what} {id}"))
}

fn new<I: Ord + fmt::Display, T>(map: &mut BTreeMap<I, T>, id: I, object: T) -> Result<(), String> {
    let text = id.to_string();
    match map.insert(id, object) {
        None => Ok(()),
        Some(_) => Err(format!("number {text} is taken")),
    }
}

fn inside(offset: u64, bytes: u64, of: u64) -> Result<(), String> {
    match offset.checked_add(bytes) {
        Some(end) if end <= of => Ok(()),
        _ => Err(format!(
            "{bytes} bytes from byte {offset} on are not inside of {of} bytes"
        )),
    }
}

fn words(offset: u64, bytes: u64) -> Result<(), String> {
    if offset % 4 == 0 && bytes % 4 == 0 {
        Ok(())
    } else {
        Err(format!(
            "{bytes} bytes from byte {offset} on are not whole words"
        ))
    }
}

/// A file, and no pipe or device, which could be without end.
fn regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    File::open(path)
}

/// A later version may have other fields: its number comes first.
fn later(line: &[u8]) -> Result<(), ReadError> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
        #[serde(default)]
        gapscope: String,
    }
    #[derive(serde::Deserialize)]
    struct First {
        capture: Version,
    }
    match serde_json::from_slice::<First>(line) {
        Ok(First {
            capture: Version { format, gapscope },
        }) if format > FORMAT => Err(ReadError::Later { format, gapscope }),
        _ => Ok(()),
    }
}

struct Lines {
    file: BufReader<File>,
    line: usize,
}

impl Lines {
    /// The next whole line; one without an end was being written.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let mut line = Vec::new();
        self.line += 1;
        let problem = |line, reason: String| Problem { line, reason };
        let read = (&mut self.file)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line);
        read.map_err(|error| problem(self.line, error.to_string()))?;
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) => Err(problem(self.line, "it has no end".to_owned())),
        }
    }
}
