//! Unwinds native stacks (finds the callers of a function in machine code): registers and a copy of the stack go in,
//! addresses and frames come out, by the unwind tables of the files that the process has mapped. [`Native::unwind`],
//! or for a blocked thread [`Native::copy`] and [`Native::unwind_copy`], gives addresses; [`Native::frame`] names
//! each.

mod libraries;
mod names;

pub use libraries::Libraries;

use crate::elf::Module;
use crate::memory::Memory;
use crate::messages::Frame;
use crate::perf_ring::Registers;
use crate::procfs::{mapped_files, open_mapped};
use framehop::{CacheNative, ExplicitModuleSectionInfo, FrameAddress, Unwinder, UnwinderNative};
use framehop::{MayAllocateDuringUnwind, UnwindRegsNative};
use gapscope_model::FrameKind;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of a stack is copied, from its pointer upwards.
const STACK_BYTES: usize = 64 << 10;
/// The most frames of a stack; the outermost frames of deeper ones are left out.
const MAX_FRAMES: usize = 256;
/// The pause between two reads of the mappings: code of a just-in-time compiler is in no file.
const REFRESH_NS: i64 = 1_000_000_000;
/// All named frames are forgotten beyond this number.
const MAX_NAMED_FRAMES: usize = 1 << 16;
/// The prefix of the functions that run Python; compilers split the function into several parts.
const INTERPRETER: &str = "_PyEval_EvalFrameDefault";

type Bytes = Arc<[u8]>;

/// A file that a process has mapped.
#[derive(Debug)]
struct LoadedFile {
    /// The addresses in the process: of the file's first byte, and behind its last mapping.
    base: u64,
    end: u64,
    path: Arc<str>,
    /// The file's content; the outer `None` means that it has not been read.
    module: Option<Option<Arc<Module>>>,
}

impl LoadedFile {
    /// Returns the difference between an address in the process and the one at link time.
    fn bias(&self) -> u64 {
        let first = self
            .module
            .iter()
            .flatten()
            .next()
            .map_or(0, |module| module.first_address);
        self.base.wrapping_sub(first)
    }
}

/// A frame that was named before, and whether its function runs Python.
#[derive(Debug, Clone)]
struct NamedFrame {
    frame: Frame,
    is_interpreter: bool,
}

/// An unwinder of the stacks of one process.
pub struct Native {
    memory: Memory,
    /// The folder of the process in `proc`.
    folder: PathBuf,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// The mapped files, sorted by their base.
    mapped: Vec<LoadedFile>,
    /// The time at which the mappings were read last; `None` before the first time.
    refreshed_ns: Option<i64>,
    /// The frames that were named, by their addresses in the process.
    named: FxHashMap<u64, NamedFrame>,
    /// The stack that [`Native::copy`] copied.
    stack: Vec<u8>,
}

impl Native {
    /// Creates an unwinder of the process whose folder in `proc` is `folder`.
    pub fn new(folder: &Path, pid: u32) -> Native {
        Native {
            memory: Memory::new(pid),
            folder: folder.to_owned(),
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            mapped: Vec::new(),
            refreshed_ns: None,
            named: FxHashMap::default(),
            stack: Vec::new(),
        }
    }

    /// Copies the stack of a blocked thread, from its pointer upwards.
    pub fn copy(&mut self, stack_pointer: u64) {
        self.stack.resize(STACK_BYTES, 0);
        // The main thread's stack, or a small one, ends earlier.
        let read = self.memory.read_some(stack_pointer, &mut self.stack);
        self.stack.truncate(read.unwrap_or(0));
    }

    /// Unwinds the stack that was copied, as [`Self::unwind`] does.
    pub fn unwind_copy(
        &mut self,
        registers: Registers,
        libraries: &mut Libraries,
        now_ns: i64,
        into: &mut Vec<u64>,
    ) {
        let stack = std::mem::take(&mut self.stack);
        self.unwind(registers, &stack, libraries, now_ns, into);
        self.stack = stack;
    }

    /// Unwinds a stack into addresses inside its functions, innermost first, as far as possible. `stack` starts at
    /// the stack pointer; `into` is emptied first. `libraries` reads files that are not known yet.
    pub fn unwind(
        &mut self,
        registers: Registers,
        stack: &[u8],
        libraries: &mut Libraries,
        now_ns: i64,
        into: &mut Vec<u64>,
    ) {
        into.clear();
        let Registers {
            instruction,
            stack_pointer,
            frame_pointer,
            link: _link,
        } = registers;
        let mut word = |address: u64| {
            let at = address.checked_sub(stack_pointer).ok_or(())?;
            let at = usize::try_from(at).map_err(|_| ())?;
            let bytes = stack.get(at..).ok_or(())?;
            Ok(u64::from_le_bytes(*bytes.first_chunk().ok_or(())?))
        };
        #[cfg(target_arch = "x86_64")]
        let mut registers = UnwindRegsNative::new(instruction, stack_pointer, frame_pointer);
        #[cfg(target_arch = "aarch64")]
        let mut registers = UnwindRegsNative::new(_link, stack_pointer, frame_pointer);
        let mut address = FrameAddress::from_instruction_pointer(instruction);
        while into.len() < MAX_FRAMES {
            let looked_up = address.address_for_lookup();
            into.push(looked_up);
            if !self.load(looked_up, libraries, now_ns) {
                break;
            }
            let next =
                self.unwinder
                    .unwind_frame(address, &mut registers, &mut self.cache, &mut word);
            let Ok(Some(caller)) = next else { break };
            let Some(caller) = FrameAddress::from_return_address(caller) else {
                break;
            };
            address = caller;
        }
    }

    /// Returns how many of the addresses, innermost first, are inside of what Python called: those before the first
    /// in a function that runs Python, otherwise before the first in `file`, the interpreter's file, otherwise all.
    pub fn below_python(&mut self, stack: &[u64], file: &str) -> usize {
        let interpreter = stack
            .iter()
            .position(|address| self.named(*address).is_interpreter);
        let in_file = |address: &u64| {
            let at = self.at(*address);
            at.is_some_and(|at| *self.mapped[at].path == *file)
        };
        interpreter
            .or_else(|| stack.iter().position(in_file))
            .unwrap_or(stack.len())
    }

    /// Returns the frame at an address.
    pub fn frame(&mut self, address: u64) -> Frame {
        self.named(address).frame
    }

    /// Returns the frame at an address, which is named when it is not known.
    fn named(&mut self, address: u64) -> NamedFrame {
        if let Some(named) = self.named.get(&address) {
            return named.clone();
        }
        let mapped = self.at(address).map(|at| &self.mapped[at]);
        let linked = mapped.map(|mapped| address.wrapping_sub(mapped.bias()));
        let module = mapped.and_then(|mapped| mapped.module.clone().flatten());
        let name = module
            .zip(linked)
            .and_then(|(module, linked)| module.name(linked));
        let named = NamedFrame {
            is_interpreter: name
                .as_deref()
                .is_some_and(|name| name.starts_with(INTERPRETER)),
            frame: Frame {
                kind: FrameKind::Native,
                address: match name {
                    Some(_) => None,
                    None => linked.or(Some(address)),
                },
                function: name.map(|name| names::demangled(&name).into()),
                file: None,
                line: None,
                library: mapped.map(|mapped| mapped.path.clone()),
            },
        };
        if self.named.len() >= MAX_NAMED_FRAMES {
            self.named.clear();
        }
        self.named.insert(address, named.clone());
        named
    }

    /// Returns the index of the mapped file at an address.
    fn at(&self, address: u64) -> Option<usize> {
        let after = self.mapped.partition_point(|mapped| mapped.base <= address);
        let at = after.checked_sub(1)?;
        (address < self.mapped[at].end).then_some(at)
    }

    /// Gives the unwinder the file at an address; false where there is none.
    fn load(&mut self, address: u64, libraries: &mut Libraries, now_ns: i64) -> bool {
        let at = self.at(address).or_else(|| {
            self.refresh(now_ns);
            self.at(address)
        });
        let Some(at) = at else { return false };
        let mapped = &mut self.mapped[at];
        if mapped.module.is_none() {
            let file = open_mapped(&self.folder, &mapped.path);
            let module = file.and_then(|file| libraries.get(file));
            mapped.module = Some(module.clone());
            let bias = mapped.bias();
            if let Some(module) = module {
                let section = |section: &Option<crate::elf::Section>| {
                    let section = section.as_ref();
                    (
                        section.map(|section| section.addresses.clone()),
                        section.map(|section| section.bytes.clone()),
                    )
                };
                let (eh_frame_svma, eh_frame) = section(&module.eh_frame);
                let (eh_frame_hdr_svma, eh_frame_hdr) = section(&module.eh_frame_hdr);
                let sections = ExplicitModuleSectionInfo {
                    base_svma: 0,
                    text_svma: module.text.clone(),
                    got_svma: module.got.clone(),
                    eh_frame_svma,
                    eh_frame,
                    eh_frame_hdr_svma,
                    eh_frame_hdr,
                    ..Default::default()
                };
                let name = mapped.path.to_string();
                let module = framehop::Module::new(name, mapped.base..mapped.end, bias, sections);
                self.unwinder.add_module(module);
            }
        }
        true
    }

    /// Reads the mappings again, unless that was a short time ago, and forgets the files that are gone.
    fn refresh(&mut self, now_ns: i64) {
        if self.refreshed_ns.is_some_and(|at| now_ns - at < REFRESH_NS) {
            return;
        }
        self.refreshed_ns = Some(now_ns);
        let Ok(maps) = std::fs::read(self.folder.join("maps")) else {
            return;
        };
        let mut now = mapped_files(&maps);
        now.sort_by_key(|file| file.base);
        let is_same = |old: &LoadedFile| {
            now.iter()
                .any(|new| new.base == old.base && new.end == old.end && *new.path == *old.path)
        };
        let (kept, gone): (Vec<_>, Vec<_>) = self.mapped.drain(..).partition(is_same);
        for gone in gone {
            self.unwinder.remove_module(gone.base);
            self.named
                .retain(|address, _| !(gone.base..gone.end).contains(address));
        }
        self.named.retain(|_, named| named.frame.library.is_some());
        self.mapped = kept;
        for file in now {
            if !self.mapped.iter().any(|known| known.base == file.base) {
                self.mapped.push(LoadedFile {
                    base: file.base,
                    end: file.end,
                    path: file.path.into(),
                    module: None,
                });
            }
        }
        self.mapped.sort_by_key(|mapped| mapped.base);
    }
}
