//! The stacks of a trace: their frames, and which of them are the program's own.

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
    /// The text of the line, where whoever shows it could read the file as it was when the trace was recorded.
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

/// In the paths of code that is not the program's own: what was installed, and what comes with Python.
const OTHERS: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];
/// How such paths begin: code without a file, such as Python's own modules or what a library makes, and the system's libraries.
const OTHERS_BEGIN: [&str; 4] = ["<", "/usr/lib", "/lib/", "/lib64/"];

/// How libraries and programs are called that are means of the program wherever they lie.
const MEANS: [&str; 2] = ["python", "libpython"];
/// How the hooks of the recording are called, which lie between the program and what it calls.
const HOOKS: &str = "libgapscope_";
/// Where threads are when they wait: these say least of why.
const LIBC: &str = "libc.so";

impl CodeFrame {
    /// True of code that is the program's own, as far as its path tells.
    pub fn is_own(&self) -> bool {
        let is_own = |path: &str| {
            !OTHERS_BEGIN.iter().any(|folder| path.starts_with(folder))
                && !OTHERS.iter().any(|folder| path.contains(folder))
        };
        match self.kind {
            FrameKind::Python => self.file.as_deref().is_some_and(is_own),
            _ => self.library.as_deref().is_some_and(|path| {
                let name = file_name(path);
                let is_means = MEANS.iter().any(|means| name.starts_with(means));
                is_own(path) && !is_means && !self.is_of_hook()
            }),
        }
    }

    /// True of the recording's own code.
    fn is_of_hook(&self) -> bool {
        let name = self.library.as_deref().map(file_name);
        self.kind == FrameKind::Native && name.is_some_and(|name| name.starts_with(HOOKS))
    }

    /// True of native code that makes Python's calls.
    fn is_of_interpreter(&self) -> bool {
        let begins = |function: &str| function.starts_with("Py") || function.starts_with("_Py");
        self.kind == FrameKind::Native && self.function.as_deref().is_some_and(begins)
    }

    /// The last part of the function's name, or where it is not known the library's name.
    pub fn short_name(&self) -> &str {
        if self.is_of_hook() {
            return "recorded call";
        }
        match (&self.function, &self.library) {
            (Some(function), _) => function.rsplit("<locals>.").next().unwrap_or(function),
            (None, Some(library)) => file_name(library),
            (None, None) => "unknown function",
        }
    }

    /// `train.py:41 load_batch`, `libz.so.1 inflate`.
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

/// The frames of stacks, by the ids of the trace.
#[derive(Debug)]
pub struct Stacks<'a> {
    tables: &'a Tables,
    frames: HashMap<FrameId, usize>,
    stacks: HashMap<StackId, usize>,
    told_by: HashMap<StackId, ToldBy>,
}

/// Stacks that are told by the same frame of the same callers, and call the same function from it, have the same. `None`: the stack is not known.
pub type ToldBy = Option<u32>;

/// Of deeper stacks the outermost frames are left out.
const MOST_FRAMES: usize = 1024;

impl<'a> Stacks<'a> {
    /// Of these tables.
    pub fn of(tables: &'a Tables) -> Stacks<'a> {
        let frames = tables.frames.id.iter().enumerate();
        let stacks = tables.stacks.id.iter().enumerate();
        let mut stacks = Stacks {
            tables,
            frames: frames.map(|(row, id)| (*id, row)).collect(),
            stacks: stacks.map(|(row, id)| (*id, row)).collect(),
            told_by: HashMap::new(),
        };
        let mut keys: HashMap<(StackId, Option<String>), u32> = HashMap::new();
        let told_by = tables
            .samples
            .stack
            .iter()
            .flatten()
            .collect::<HashSet<_>>();
        let told_by = told_by.into_iter().map(|stack| {
            let frames = stacks.frames(stack);
            let own = own(&frames).and_then(|own| Some((own, stacks.above(stack, own)?)));
            let key = own.map(|(own, at)| {
                // Native frames below Python are there or not, as the stack could be read.
                let callee = own.checked_sub(1).map(|below| &frames[below]);
                let is_same = |callee: &&CodeFrame| callee.kind == frames[own].kind;
                let callee = callee.filter(is_same).map(|c| c.short_name().to_owned());
                let next = keys.len() as u32;
                *keys.entry((at, callee)).or_insert(next)
            });
            (stack, key)
        });
        stacks.told_by = told_by.collect();
        stacks
    }

    /// By what a stack of the samples is told.
    pub fn told_by(&self, stack: Option<StackId>) -> ToldBy {
        *self.told_by.get(&stack?)?
    }

    /// The stack without so many of its innermost frames.
    fn above(&self, stack: StackId, frames: usize) -> Option<StackId> {
        (0..frames).try_fold(stack, |stack, _| {
            self.tables.stacks.parent.at(*self.stacks.get(&stack)?)
        })
    }

    /// Rows of the table `frames`, the innermost first.
    pub fn frame_rows(&self, stack: StackId) -> impl Iterator<Item = usize> + '_ {
        let mut next = Some(stack);
        let mut left = MOST_FRAMES;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let id = next?;
            let row = *self.stacks.get(&id)?;
            // Callers are written before what they call: whatever else is there may be a circle.
            next = self
                .tables
                .stacks
                .parent
                .at(row)
                .filter(|parent| *parent < id);
            Some(self.frames.get(&self.tables.stacks.frame[row]).copied())
        })
        .flatten()
    }

    /// A row of the table `frames`.
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

    /// The frames of a stack, the innermost first.
    pub fn frames(&self, stack: StackId) -> Vec<CodeFrame> {
        self.frame_rows(stack).map(|row| self.frame(row)).collect()
    }
}

/// Which frame a stack is told by: the innermost of the program's own code, or the innermost.
pub fn own(frames: &[CodeFrame]) -> Option<usize> {
    let python = |frame: &&CodeFrame| frame.kind == FrameKind::Python;
    // In a Python program native code is a means.
    let has_python = frames.iter().any(|frame| python(&frame));
    let candidate = |frame: &CodeFrame| frame.is_own() && (!has_python || python(&frame));
    // What was given to Python as a text (`python -c`) has no file.
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

/// A stack in a line: `train.py:41 load_batch > resize`.
pub fn text(frames: &[CodeFrame]) -> String {
    let Some(own) = own(frames) else {
        return "unknown code".to_owned();
    };
    if is_idle_event_loop(frames) {
        return format!("{} (event loop idle)", frames[own].text());
    }
    let mut text = frames[own].text();
    let below = frames[..own].iter().enumerate();
    // Where a hook is the innermost, the driver below it may be, whose frames could not be read.
    let is_told = |(depth, frame): &(usize, &CodeFrame)| {
        !frame.is_of_interpreter() && (*depth == 0 || !frame.is_of_hook())
    };
    let below: Vec<&CodeFrame> = below.filter(is_told).map(|(_, frame)| frame).collect();
    if let Some(callee) = below.last() {
        text += " > ";
        text += callee.short_name();
    }
    if below.len() > 1 {
        text += if below.len() > 2 { " > … > " } else { " > " };
        text += below[0].short_name();
    }
    text
}

/// The same with the function that calls it: `train.py:41 load_batch > resize ← main`.
pub fn text_with_caller(frames: &[CodeFrame]) -> String {
    let caller = own(frames).and_then(|own| frames.get(own + 1));
    match caller {
        Some(caller) => format!("{} ← {}", text(frames), caller.short_name()),
        None => text(frames),
    }
}

/// True where an event loop waits for something to do.
pub fn is_idle_event_loop(frames: &[CodeFrame]) -> bool {
    let in_file = |frame: &CodeFrame, end: &str| {
        frame.kind == FrameKind::Python && frame.file.as_deref().is_some_and(|f| f.ends_with(end))
    };
    let innermost = frames.iter().find(|frame| frame.kind == FrameKind::Python);
    innermost.is_some_and(|frame| in_file(frame, "/selectors.py"))
        && frames
            .iter()
            .any(|frame| in_file(frame, "/asyncio/base_events.py"))
}

/// True where Python waits for another thread or process to hand it something.
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
