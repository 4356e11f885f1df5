//! Finds the bytes that a dispatch reads and writes, its footprint: a dispatch and the module of its kernel go in, a
//! set of bytes for each bound buffer comes out.
//!
//! A descriptor is a place to which a dispatch's buffer is bound, given by set, binding and element; an invocation is
//! one thread of a kernel. The kernel is lowered (made one flat program), folded (known values are computed) and
//! sliced (reduced to what addresses depend on), and what remains is run for all invocations, each of which marks the
//! bytes that it reaches. Where that fails or takes too long, all bound bytes are taken.

use std::collections::HashMap;
use std::sync::Arc;

use gapscope_capture::Capture;
use gapscope_capture::model::{Binding, Dispatch, ModuleId, Pipeline, PipelineId};

use crate::bytes::ByteSet;
use crate::contents::Contents;
use crate::kernel::fold::fold;
use crate::kernel::lower::{BoundBuffer, Environment, Lowered, lower};
pub use crate::kernel::machine::Grid;
use crate::kernel::machine::{self, Marks, ReachedScalars, RunLimits};
use crate::kernel::program::Direction;
pub use crate::kernel::reason::Reason;
use crate::kernel::slice::{Reach, Slice, slice};
use crate::trail::{BindingTrail, Trail};
use gapscope_spirv::Module;
use gapscope_spirv::numbers::version;

/// Limits of the time and memory that finding footprints may take. Bytes that would exceed one are only bounded.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most operations of single invocations for one dispatch.
    pub steps: u64,
    /// The most operations of single invocations for all dispatches of a capture together.
    pub steps_of_all: u64,
    /// The most ranges of one set of bytes.
    pub ranges: usize,
    /// Number of threads to use.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 2_000_000_000,
            steps_of_all: 100_000_000_000,
            ranges: 1 << 16,
            threads: std::thread::available_parallelism().map_or(1, Into::into),
        }
    }
}

/// The bytes of a buffer that a dispatch reads, or those that it writes: exactly, or an upper bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The bytes, counted from the first byte that is bound.
    pub set: Arc<ByteSet>,
    /// Why `set` is only an upper bound; `None` if it is exact.
    pub bound: Option<Reason>,
    /// A hash of the pairs of invocation and bytes. Equal hashes mean that the same invocations reach the same bytes.
    /// `None` if unknown.
    pub map: Option<u128>,
}

impl Extent {
    /// Returns the extent of a buffer that is not reached.
    fn none() -> Extent {
        Extent {
            set: Arc::default(),
            bound: None,
            map: None,
        }
    }

    /// Returns whether no byte is reached.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

/// The bytes that a dispatch reaches through one descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingFootprint {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Index of the descriptor in the array of the binding.
    pub element: u32,
    /// The bytes that are read.
    pub reads: Extent,
    /// The bytes that are written.
    pub writes: Extent,
    /// Whether only atomic operations reach the bytes.
    pub atomic: bool,
}

/// The bytes that a dispatch reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// The bytes behind each descriptor that has a buffer, in order.
    pub bindings: Vec<BindingFootprint>,
    /// Access to memory outside of the bindings: whether it may be read, whether it may be written, and why; `None`
    /// if there is no such access.
    pub beyond: Option<(bool, bool, Reason)>,
    /// The workgroups and invocations, if they are known.
    pub grid: Option<Grid>,
}

impl Footprint {
    /// Returns whether the bytes of all bindings are exact and no other memory is reached.
    pub fn is_exact(&self) -> bool {
        let exact = |extent: &Extent| extent.bound.is_none();
        self.beyond.is_none()
            && (self.bindings.iter()).all(|of| exact(&of.reads) && exact(&of.writes))
    }
}

/// Finds the footprints of a capture's dispatches. Equal dispatches are evaluated once.
pub(crate) struct Evaluator<'c> {
    capture: &'c Capture,
    limits: Limits,
    /// The modules that were read; `None` for one that could not be.
    modules: HashMap<ModuleId, Option<Arc<Module>>>,
    found: HashMap<Key, Arc<Footprint>>,
    /// The trails (the bytes that each invocation reaches) that [`Self::trail`] has found.
    followed: HashMap<Key, Result<Arc<Trail>, Reason>>,
    /// The operations that all further dispatches together may take.
    steps_left: u64,
}

/// The facts of a dispatch that its footprint depends on: dispatches with equal keys are evaluated once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    pipeline: PipelineId,
    base: [u32; 3],
    groups: [u32; 3],
    push_constants: Vec<u8>,
    buffers: Vec<BoundBuffer>,
}

impl<'c> Evaluator<'c> {
    pub fn new(capture: &'c Capture, limits: Limits) -> Evaluator<'c> {
        Evaluator {
            capture,
            limits,
            modules: HashMap::new(),
            found: HashMap::new(),
            followed: HashMap::new(),
            steps_left: limits.steps_of_all,
        }
    }

    /// Returns the footprint of a dispatch: all bound bytes where the dispatch cannot be evaluated. `groups` is its
    /// number of workgroups, if known, and `contents` the bytes in memory before the dispatch.
    pub fn footprint(
        &mut self,
        dispatch: &Dispatch,
        groups: Option<[u32; 3]>,
        contents: &mut Contents,
    ) -> Arc<Footprint> {
        let bindings = bound(dispatch);
        let Some(groups) = groups else {
            let reason = Reason::Kernel("how many workgroups it has is not known");
            return Arc::new(all(&bindings, &reason));
        };
        let key = self.key(dispatch, groups, &bindings, contents);
        if let Some(found) = self.found.get(&key) {
            return found.clone();
        }
        let found = self.evaluate(&key, &bindings);
        let found = Arc::new(found.unwrap_or_else(|reason| all(&bindings, &reason)));
        self.found.insert(key, found.clone());
        found
    }

    /// Returns the bytes that each invocation of a dispatch reaches, or why they cannot be found.
    pub fn trail(
        &mut self,
        dispatch: &Dispatch,
        groups: Option<[u32; 3]>,
        contents: &mut Contents,
    ) -> Result<Arc<Trail>, Reason> {
        let unknown = Reason::Kernel("how many workgroups it has is not known");
        let groups = groups.ok_or(unknown)?;
        let bindings = bound(dispatch);
        let key = self.key(dispatch, groups, &bindings, contents);
        if let Some(found) = self.followed.get(&key) {
            return found.clone();
        }
        let found = self.follow(&key, &bindings).map(Arc::new);
        self.followed.insert(key, found.clone());
        found
    }

    /// Runs the sliced kernel on one thread, and notes the runs of bytes of each of its accesses by invocation.
    fn follow(&mut self, key: &Key, bindings: &[Binding]) -> Result<Trail, Reason> {
        let (sliced, grid) = self.sliced(key)?;
        let sizes = sizes(&sliced, &key.buffers);
        let allowance = RunLimits {
            steps: self.limits.steps,
            mark_bytes: 256 << 20,
            threads: 1,
        };
        let (marks, sites) = machine::follow(&sliced.executable, grid, &sizes, allowance)?;
        let each = bindings.iter().enumerate().map(|(index, binding)| {
            let reach = &sliced.buffers[index];
            let outside = marks[index].read.outside || marks[index].written.outside;
            let bound = reach.read_bound.clone().filter(|_| reach.reads);
            let unknown = bound.or(reach.write_bound.clone().filter(|_| reach.writes));
            let runs = |of: fn(Direction) -> bool| {
                let sites = sites.found.values();
                let sites =
                    sites.filter(|site| site.buffer as usize == index && of(site.direction));
                sites.flat_map(|site| site.runs.iter().copied()).collect()
            };
            BindingTrail {
                set: binding.set,
                binding: binding.binding,
                element: binding.element,
                reads: runs(Direction::reads),
                writes: runs(Direction::writes),
                atomic: (sites.found.values()).any(|site| {
                    site.buffer as usize == index && site.direction == Direction::Atomic
                }),
                unknown: unknown.or(outside.then_some(Reason::Outside)),
            }
        });
        let sizes = grid.groups.into_iter().chain(grid.local);
        Ok(Trail {
            local_size: grid.local,
            invocations: sizes.map(u64::from).product(),
            bindings: each.collect(),
            beyond: sliced.beyond.as_ref().map(|(_, _, reason)| reason.clone()),
        })
    }

    /// Returns the facts that decide over the footprint. The contents of a buffer are among them if they are known,
    /// small, and not changed by the dispatch.
    fn key(
        &self,
        dispatch: &Dispatch,
        groups: [u32; 3],
        bindings: &[Binding],
        contents: &mut Contents,
    ) -> Key {
        let capture = self.capture;
        let buffers = bindings.iter().map(|binding| {
            let content = (binding.range)
                .filter(|_| binding.is_uniform() || is_unchanged(capture, binding, bindings))
                .filter(|range| range.bytes <= CONTENT_BYTES)
                .and_then(|range| {
                    let (memory, at) = capture.place(range);
                    contents.get(capture, memory, at..at + range.bytes)
                });
            BoundBuffer {
                set: binding.set,
                binding: binding.binding,
                element: binding.element,
                bytes: binding.range.map_or(0, |range| range.bytes),
                content: content.map(Arc::from),
            }
        });
        Key {
            pipeline: dispatch.pipeline,
            base: dispatch.base,
            groups,
            push_constants: dispatch.push_constants.clone(),
            buffers: buffers.collect(),
        }
    }

    /// Runs the sliced kernel for all invocations, and makes a footprint of the marks. If that fails, all bound bytes
    /// are taken.
    fn evaluate(&mut self, key: &Key, bindings: &[Binding]) -> Result<Footprint, Reason> {
        let (mut sliced, grid) = self.sliced(key)?;
        let marks = self.run(&sliced, grid, &key.buffers);
        let marks = match marks {
            // The value beyond the buffer may be any, and addresses may depend on it.
            Ok(marks) if sliced.executable.looks() && is_beyond_content(&key.buffers, &marks) => {
                for reach in &mut sliced.buffers {
                    reach.bound(true, true, &Reason::Outside);
                }
                None
            }
            Ok(marks) => Some(marks),
            Err(reason) => {
                for reach in &mut sliced.buffers {
                    reach.bound(true, true, &reason);
                }
                None
            }
        };
        let footprints = bindings.iter().enumerate().map(|(index, binding)| {
            let marks = marks.as_ref().map(|marks| &marks[index]);
            footprint(binding, &sliced.buffers[index], marks, self.limits.ranges)
        });
        Ok(Footprint {
            bindings: footprints.collect(),
            beyond: sliced.beyond,
            grid: Some(grid),
        })
    }

    /// Returns the part of a kernel that addresses depend on, and the dispatch's workgroups and their size.
    fn sliced(&mut self, key: &Key) -> Result<(Slice, Grid), Reason> {
        let capture = self.capture;
        let pipeline = &capture.pipelines[&key.pipeline];
        let module = self.module(pipeline.module);
        let module = module.ok_or(Reason::Kernel("the kernel's SPIR-V cannot be read"))?;
        let constants = pipeline.constants.iter();
        let constants: Vec<(u32, u64)> = constants.map(|of| (of.id, of.bits())).collect();
        let environment = Environment {
            entry: &pipeline.entry,
            constants: &constants,
            push_constants: &key.push_constants,
            groups: key.groups,
            buffers: &key.buffers,
            subgroup_size: subgroup_size(capture, pipeline, &module),
        };
        let Lowered {
            mut program,
            local_size,
        } = lower(&module, &environment)?;
        fold(&mut program);
        let sliced = slice(&program, key.buffers.len())?;
        let grid = Grid {
            base: key.base,
            groups: key.groups,
            local: local_size,
        };
        Ok((sliced, grid))
    }

    /// Runs a slice for all invocations, with the operations that are left, and returns the marks of each buffer.
    fn run(
        &mut self,
        sliced: &Slice,
        grid: Grid,
        buffers: &[BoundBuffer],
    ) -> Result<Vec<Marks>, Reason> {
        let sizes = sizes(sliced, buffers);
        let allowance = RunLimits {
            steps: self.limits.steps.min(self.steps_left),
            mark_bytes: 256 << 20,
            threads: self.limits.threads,
        };
        let (marks, steps) = machine::run(&sliced.executable, grid, &sizes, allowance);
        self.steps_left = self.steps_left.saturating_sub(steps);
        marks
    }

    /// Reads a module once.
    fn module(&mut self, id: ModuleId) -> Option<Arc<Module>> {
        let capture = self.capture;
        let read = || {
            let code = capture.chunk(capture.modules[&id].code).ok()?;
            Module::read(&code).ok().map(Arc::new)
        };
        self.modules.entry(id).or_insert_with(read).clone()
    }
}

/// Returns whether an invocation read beyond a buffer whose contents are known.
fn is_beyond_content(buffers: &[BoundBuffer], marks: &[Marks]) -> bool {
    let mut both = buffers.iter().zip(marks);
    both.any(|(buffer, marks)| buffer.content.is_some() && marks.read.outside)
}

/// The largest buffer whose contents are used to follow addresses: larger ones hold data rather than indices.
const CONTENT_BYTES: u64 = 256 << 10;

/// Returns whether a binding is a storage buffer that is only read, and that no other binding of the dispatch writes.
fn is_unchanged(capture: &Capture, binding: &Binding, all: &[Binding]) -> bool {
    let place = |binding: &Binding| {
        let range = binding.range?;
        let (memory, at) = capture.place(range);
        Some((memory, at..at + range.bytes))
    };
    let Some((memory, range)) = place(binding) else {
        return false;
    };
    let is_written = |other: &Binding| {
        other.is_writable()
            && place(other).is_some_and(|(other_memory, other)| {
                other_memory == memory && other.start < range.end && range.start < other.end
            })
    };
    binding.read_only && !all.iter().any(is_written)
}

/// Returns for each buffer its size, and the number of bytes that one mark stands for.
fn sizes(sliced: &Slice, buffers: &[BoundBuffer]) -> Vec<(u64, u32)> {
    let each = buffers.iter().zip(&sliced.buffers);
    each.map(|(buffer, reach)| (buffer.bytes, reach.scalar_bytes))
        .collect()
}

/// Returns the descriptors of a dispatch that have a buffer.
pub(crate) fn bound(dispatch: &Dispatch) -> Vec<Binding> {
    let bindings = dispatch.bindings.iter();
    bindings
        .filter(|binding| binding.range.is_some())
        .copied()
        .collect()
}

/// Returns the subgroup size as a kernel sees it, if all subgroups have the same.
fn subgroup_size(capture: &Capture, pipeline: &Pipeline, module: &Module) -> Option<u32> {
    const ALLOW_VARYING: u32 = 1;
    match pipeline.required_subgroup_size {
        Some(size) => Some(size),
        // Since SPIR-V 1.6 a device may choose the size without being allowed to.
        None if pipeline.stage_flags & ALLOW_VARYING != 0 => None,
        None if module.version() >= version::V1_6 => None,
        None => Some(capture.header.device.subgroup_size).filter(|size| *size > 0),
    }
}

/// Returns the footprint of a dispatch that may read and write all bound bytes, for the given reason.
fn all(bindings: &[Binding], reason: &Reason) -> Footprint {
    let reach = |binding: &Binding| Reach {
        reads: true,
        writes: binding.is_writable(),
        plain: true,
        read_bound: Some(reason.clone()),
        write_bound: Some(reason.clone()),
        scalar_bytes: 4,
    };
    let footprints = bindings
        .iter()
        .map(|binding| footprint(binding, &reach(binding), None, 0));
    Footprint {
        bindings: footprints.collect(),
        beyond: None,
        grid: None,
    }
}

/// Makes the footprint of one descriptor from its marks: exact if nothing in `reach` or the marks speaks against it,
/// otherwise all bound bytes. `ranges` is the most ranges that may be kept. Without marks the bytes are bounded.
fn footprint(
    binding: &Binding,
    reach: &Reach,
    marks: Option<&Marks>,
    ranges: usize,
) -> BindingFootprint {
    let bytes = binding.range.map_or(0, |range| range.bytes);
    type Side = fn(&Marks) -> &ReachedScalars;
    let extent = |reached: bool, bound: &Option<Reason>, side: Side| {
        let marked = marks.map(|marks| (marks, side(marks)));
        let set = marked.and_then(|(marks, side)| marks.set_of(side, ranges));
        let outside = marked.is_some_and(|(_, side)| side.outside);
        let map = marked.map(|(_, side)| side.map);
        let bound = match (bound, &set) {
            _ if !reached => return Extent::none(),
            (Some(reason), _) => Some(reason.clone()),
            _ if outside => Some(Reason::Outside),
            (None, None) => Some(Reason::Limit("the ranges that are kept")),
            (None, Some(_)) if marks.is_some_and(|marks| marks.uneven) => Some(Reason::Uneven),
            (None, Some(_)) => None,
        };
        match (bound, set) {
            (None, Some(set)) => Extent {
                set: Arc::new(set),
                bound: None,
                map,
            },
            (bound, _) => Extent {
                set: Arc::new(ByteSet::from_range(0..bytes)),
                bound,
                map: None,
            },
        }
    };
    BindingFootprint {
        set: binding.set,
        binding: binding.binding,
        element: binding.element,
        reads: extent(reach.reads, &reach.read_bound, |marks| &marks.read),
        writes: extent(reach.writes, &reach.write_bound, |marks| &marks.written),
        atomic: !reach.plain,
    }
}
