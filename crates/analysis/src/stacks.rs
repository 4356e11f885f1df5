//! Reads the stacks of a trace from its tables: a stack's frames, the frame in the program's own code that represents
//! a stack, and groups of stacks that count together. A stack's frames are numbered from the innermost, which is
//! frame 0; "below" a frame are the functions that it calls.

pub mod thread_samples;

use gapscope_trace::ids::{FrameId, StackId};
use gapscope_trace::tables::{FrameKind, Table, Tables};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct CodeFrame {
    /// The function, with the classes and functions around it; absent where the library does not say.
    pub function: Option<Arc<str>>,
    /// The file of the source, as the program names it.
    pub file: Option<Arc<str>>,
    /// The line that ran.
    pub line: Option<u32>,
    /// Path of the library or executable of native code.
    pub library: Option<Arc<str>>,
    /// The text of the line, where the file could be read as it was when the trace was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `python` or `native`.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub kind: FrameKind,
}

fn as_text<S: serde::Serializer>(kind: &FrameKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.as_str())
}

/// Parts of the paths of code that is not the program's own: installed packages, and Python's own modules.
const FOREIGN_FOLDERS: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];
/// Beginnings of the paths of code that is not the program's own: code without a file (`<`), such as Python's own or
/// generated modules, the system's libraries, and PyTorch, whose profiler leaves out the folder of packages.
const FOREIGN_PREFIXES: [&str; 6] = ["<", "/usr/lib", "/lib/", "/lib64/", "torch/", "triton/"];

/// Beginnings of the names of interpreters, which run the program and are never its own code, wherever they lie.
const INTERPRETERS: [&str; 2] = ["python", "libpython"];
/// The beginning of the names of the recording's hooks, which lie between the program and the functions that it calls.
const HOOK_PREFIX: &str = "libgapscope_";
/// The name of the C library, in which threads wait. Its frames say little about the reason of a wait.
const LIBC: &str = "libc.so";
/// Beginnings of the names of the functions in which event loops wait: `epoll_wait`, `epoll_pwait2`, and glibc's `__epoll_wait_nocancel`
/// of Linux, and `kevent` of other systems. `poll` and `select` are left out: programs wait in them for single files, too.
const EVENT_WAITS: [&str; 3] = ["epoll_", "__epoll_", "kevent"];
/// The number of functions that a line of code names where its stacks differ.
const NAMED_FUNCTIONS: usize = 2;

impl CodeFrame {
    /// Returns true for the program's own code, as far as the path tells.
    pub fn is_own(&self) -> bool {
        let is_own = |path: &str| {
            !FOREIGN_PREFIXES
                .iter()
                .any(|folder| path.starts_with(folder))
                && !FOREIGN_FOLDERS.iter().any(|folder| path.contains(folder))
        };
        match self.kind {
            FrameKind::Python => self.file.as_deref().is_some_and(is_own),
            _ => self.library.as_deref().is_some_and(|path| {
                let name = file_name(path);
                let is_interpreter = INTERPRETERS.iter().any(|of| name.starts_with(of));
                is_own(path) && !is_interpreter && !self.is_in_hook()
            }),
        }
    }

    /// Returns true for the recording's own code.
    fn is_in_hook(&self) -> bool {
        let name = self.library.as_deref().map(file_name);
        self.kind == FrameKind::Native && name.is_some_and(|name| name.starts_with(HOOK_PREFIX))
    }

    /// Returns true for native code of the interpreter that makes Python's calls.
    fn is_in_interpreter(&self) -> bool {
        let begins = |function: &str| function.starts_with("Py") || function.starts_with("_Py");
        self.kind == FrameKind::Native && self.function.as_deref().is_some_and(begins)
    }

    /// Returns true for a function of the C library in which a thread waits for whatever comes next on many files, as
    /// event loops do.
    fn waits_for_events(&self) -> bool {
        let function = self.function.as_deref();
        self.kind == FrameKind::Native
            && function.is_some_and(|name| EVENT_WAITS.iter().any(|wait| name.starts_with(wait)))
    }

    /// Returns the last part of the function's name, or the library's name where the function is not known.
    pub fn short_name(&self) -> &str {
        match (&self.function, &self.library) {
            (Some(function), _) => function.rsplit("<locals>.").next().unwrap_or(function),
            (None, Some(library)) => file_name(library),
            (None, None) => "unknown function",
        }
    }

    /// Returns the frame's text, such as `train.py:41 load_batch` or `libz.so.1 inflate`.
    pub fn text(&self) -> String {
        let name = self.short_name();
        match (&self.file, self.line, &self.library) {
            (Some(file), Some(line), _) => format!("{}:{line} {name}", file_name(file)),
            (Some(file), None, _) => format!("{} {name}", file_name(file)),
            (None, _, Some(library)) if self.function.is_some() => {
                format!("{} {name}", file_name(library))
            }
            _ => name.to_owned(),
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The frames of a trace's stacks, found by the ids of the stacks.
#[derive(Debug)]
pub struct Stacks<'a> {
    tables: &'a Tables,
    /// The row of each frame in the table `frames`.
    frames: HashMap<FrameId, usize>,
    /// The row of each stack in the table `stacks`, a row of which is one frame and the stack of its callers
    /// (`parent`).
    stacks: HashMap<StackId, usize>,
    /// The group of each stack that has a sample.
    groups: HashMap<StackId, StackGroup>,
}

/// The number of a group of stacks that have the same own frame with the same callers, and call the same function
/// from it. `None` stands for an unknown stack.
pub type StackGroup = Option<u32>;

/// The maximum number of frames that are read of a stack. Further callers are left out.
pub const MAX_FRAMES: usize = 1024;

impl<'a> Stacks<'a> {
    /// Indexes the stacks and frames in the tables of a trace.
    pub fn new(tables: &'a Tables) -> Stacks<'a> {
        let frames = tables.frames.id.iter().enumerate();
        let stacks = tables.stacks.id.iter().enumerate();
        let mut stacks = Stacks {
            tables,
            frames: frames.map(|(row, id)| (*id, row)).collect(),
            stacks: stacks.map(|(row, id)| (*id, row)).collect(),
            groups: HashMap::new(),
        };
        let mut keys: HashMap<(StackId, Option<String>), u32> = HashMap::new();
        let sampled = tables
            .samples
            .stack
            .iter()
            .flatten()
            .collect::<HashSet<_>>();
        let groups = sampled.into_iter().map(|stack| {
            let frames = stacks.frames(stack);
            let program = stacks.program(stack);
            let own = own(&frames).and_then(|own| Some((own, stacks.above(program?, own)?)));
            let key = own.map(|(own, at)| {
                // Native frames below Python do not count, since they cannot always be read.
                let callee = own.checked_sub(1).map(|below| &frames[below]);
                let is_same = |callee: &&CodeFrame| callee.kind == frames[own].kind;
                let callee = callee.filter(is_same).map(|c| c.short_name().to_owned());
                let next = keys.len() as u32;
                *keys.entry((at, callee)).or_insert(next)
            });
            (stack, key)
        });
        stacks.groups = groups.collect();
        stacks
    }

    /// Returns the group of a sample's stack.
    pub fn group(&self, stack: Option<StackId>) -> StackGroup {
        *self.groups.get(&stack?)?
    }

    /// Returns the id of the stack that remains without the `frames` innermost frames.
    fn above(&self, stack: StackId, frames: usize) -> Option<StackId> {
        (0..frames).try_fold(stack, |stack, _| {
            self.tables.stacks.parent.at(*self.stacks.get(&stack)?)
        })
    }

    /// Returns the stack that remains without the recording's own frames at the innermost end: what the program called
    /// was its API, and not a hook. `None` where nothing remains.
    pub fn program(&self, stack: StackId) -> Option<StackId> {
        let mut walk = self.walk(stack);
        let outside = walk.find(|(_, row)| row.is_none_or(|row| !self.frame(row).is_in_hook()));
        outside.map(|(stack, _)| stack)
    }

    /// Returns the rows of a stack's frames in the table `frames`, the innermost first, without the recording's own
    /// frames at the innermost end.
    pub fn frame_rows(&self, stack: StackId) -> impl Iterator<Item = usize> + '_ {
        let program = self.program(stack).into_iter();
        let walk = program.flat_map(|stack| self.walk(stack));
        walk.filter_map(|(_, row)| row)
    }

    /// Walks from a stack to its callers: each stack, and the row of its innermost frame in the table `frames`.
    fn walk(&self, stack: StackId) -> impl Iterator<Item = (StackId, Option<usize>)> + '_ {
        let mut next = Some(stack);
        let mut left = MAX_FRAMES;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let id = next?;
            let row = *self.stacks.get(&id)?;
            // Callers are written before the functions that they call. Other parents may form a circle.
            next = self
                .tables
                .stacks
                .parent
                .at(row)
                .filter(|parent| *parent < id);
            Some((id, self.frames.get(&self.tables.stacks.frame[row]).copied()))
        })
    }

    /// Returns the frame in a row of the table `frames`.
    pub fn frame(&self, row: usize) -> CodeFrame {
        let frame = self.tables.frames.row(row);
        CodeFrame {
            function: frame.function,
            file: frame.file,
            line: frame.line,
            library: frame.library,
            source: None,
            kind: frame.kind,
        }
    }

    /// Returns the frames of a stack, the innermost first.
    pub fn frames(&self, stack: StackId) -> Vec<CodeFrame> {
        self.frame_rows(stack).map(|row| self.frame(row)).collect()
    }
}

/// Returns the index of the frame that represents a stack: the innermost of the program's own code; without such, the
/// innermost of code given to Python as text, then the innermost with a known function outside of the C library, then
/// the innermost. `None` for a stack without frames.
pub fn own(frames: &[CodeFrame]) -> Option<usize> {
    let python = |frame: &&CodeFrame| frame.kind == FrameKind::Python;
    // In a Python program native code is not the program's own.
    let has_python = frames.iter().any(|frame| python(&frame));
    let candidate = |frame: &CodeFrame| frame.is_own() && (!has_python || python(&frame));
    // Code that was given to Python as text (`python -c`) has no file.
    let is_given = |frame: &CodeFrame| {
        let file = frame.file.as_deref();
        file.is_some_and(|file| ["<string>", "<stdin>"].contains(&file))
    };
    let tells = |frame: &CodeFrame| {
        let library = frame.library.as_deref().map(file_name);
        frame.function.is_some() && !library.is_some_and(|name| name.starts_with(LIBC))
    };
    let innermost = if frames.is_empty() { None } else { Some(0) };
    (frames.iter().position(candidate))
        .or_else(|| frames.iter().position(is_given))
        .or_else(|| frames.iter().position(tells))
        .or(innermost)
}

/// Returns a stack in one line, such as `train.py:41 load_batch > resize`: the own frame, the function that it calls
/// and the innermost function; `…` stands for those between.
pub fn text(frames: &[CodeFrame]) -> String {
    text_of_line(&[frames])
}

/// Returns the text of the line of code that represents a stack: the own frame without what it calls. Stacks with the same text are one
/// line in lists.
pub fn line_text(frames: &[CodeFrame]) -> String {
    match own(frames) {
        Some(own) if is_idle_event_loop(frames) => {
            format!("{} (event loop idle)", frames[own].text())
        }
        Some(own) => frames[own].text(),
        None => "unknown code".to_owned(),
    }
}

/// Returns stacks that have one line of code ([`line_text`]), the most frequent first, in one text: the line, the functions that it
/// calls and, where that is one, the innermost functions below.
pub fn text_of_line(stacks: &[&[CodeFrame]]) -> String {
    let Some(first) = stacks.first() else {
        return String::new();
    };
    let mut text = line_text(first);
    if is_idle_event_loop(first) {
        return text;
    }
    let below: Vec<Vec<&CodeFrame>> = stacks.iter().map(|frames| named_below(frames)).collect();
    let callees = distinct(below.iter().filter_map(|below| below.last()));
    if callees.is_empty() {
        return text;
    }
    text += " > ";
    text += &listed(&callees);
    let innermost = below.iter().filter(|below| below.len() > 1);
    let innermost = distinct(innermost.map(|below| &below[0]));
    if callees.len() == 1 && !innermost.is_empty() {
        let is_direct = below.iter().all(|below| below.len() <= 2);
        text += if is_direct { " > " } else { " > … > " };
        text += &listed(&innermost);
    }
    text
}

/// Returns the frames below the own frame that a text may name, the innermost first: neither the interpreter's nor the recording's.
fn named_below(frames: &[CodeFrame]) -> Vec<&CodeFrame> {
    let below = &frames[..own(frames).unwrap_or(0)];
    let is_named = |frame: &&CodeFrame| !frame.is_in_interpreter() && !frame.is_in_hook();
    below.iter().filter(is_named).collect()
}

/// Returns the short names of frames, each once, in their order.
fn distinct<'a>(frames: impl Iterator<Item = &'a &'a CodeFrame>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    let mut listed = HashSet::new();
    for frame in frames {
        let name = frame.short_name();
        if listed.insert(name) {
            names.push(name);
        }
    }
    names
}

/// Lists names, such as `resize, crop and 3 more`.
fn listed(names: &[&str]) -> String {
    let (named, more) = names.split_at(names.len().min(NAMED_FUNCTIONS));
    let text = named.join(", ");
    match more.len() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Returns the line of the frame that represents a stack, such as `train.py:41`; `None` where no line is known.
pub fn line_of(frames: &[CodeFrame]) -> Option<String> {
    let own = frames.get(own(frames)?)?;
    Some(format!("{}:{}", file_name(own.file.as_deref()?), own.line?))
}

/// Returns true where an event loop waits for work: the innermost Python frame is in `selectors.py`, called by
/// `asyncio`; or the innermost frame is a function in which native loops (libuv, libevent, tokio) wait.
pub fn is_idle_event_loop(frames: &[CodeFrame]) -> bool {
    // PyTorch's profiler names the modules of Python from the folder of the library on.
    let in_file = |frame: &CodeFrame, module: &str| {
        let file = frame.file.as_deref().unwrap_or_default();
        let folder = file.strip_suffix(module);
        frame.kind == FrameKind::Python
            && folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    };
    let python = frames.iter().find(|frame| frame.kind == FrameKind::Python);
    // A program that selects among files by Python's own module may wait for its workers.
    if python.is_some_and(|frame| in_file(frame, "selectors.py")) {
        return (frames.iter()).any(|frame| in_file(frame, "asyncio/base_events.py"));
    }
    frames.first().is_some_and(CodeFrame::waits_for_events)
}

/// Returns true where Python waits for another thread or process to hand it something: the innermost Python frame
/// lies in one of the modules that hand over work, and no event loop is idle.
pub fn waits_for_others(frames: &[CodeFrame]) -> bool {
    const PLACES: [&str; 6] = [
        "/multiprocessing/",
        "/concurrent/futures/",
        "/torch/utils/data/",
        "/queue.py",
        "/threading.py",
        "/selectors.py",
    ];
    let python = frames.iter().find(|frame| frame.kind == FrameKind::Python);
    let file = python.and_then(|frame| frame.file.as_deref());
    file.is_some_and(|file| PLACES.iter().any(|place| file.contains(place)))
        && !is_idle_event_loop(frames)
}
