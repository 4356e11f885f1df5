//! Finds chains of dispatches that can be merged: a capture goes in; its chains come out, and neighbours that do not
//! form a chain, with the reason. The window is the stretch of the program's run that was captured.
//!
//! A chain is consecutive dispatches of one command buffer, of which each but the first loads what an earlier one
//! stored. Neighbours are first compared by their bindings and pipelines; those that may fit are followed invocation
//! by invocation, and joined where a proof succeeds. A trail has the bytes that each invocation reaches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use gapscope_capture::Capture;
use gapscope_capture::model::{
    Command, CommandsId, Dispatch, Groups, ModuleId, Pipeline, PipelineId,
};
use gapscope_dependencies::{Limits, Trail, trails};
use schemars::JsonSchema;
use serde::Serialize;

use crate::module::Kernel;
use crate::proof::{Region, prove};
use crate::refusal::Refusal;

/// A dispatch of a chain.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// Index of the dispatch among [`Capture::executed`].
    pub executed: usize,
    /// Number of the dispatch in the window, from 0.
    pub number: u64,
    /// The dispatch itself.
    pub dispatch: &'a Dispatch,
    /// The bytes that each invocation of the dispatch reaches.
    pub trail: Arc<Trail>,
}

/// Consecutive dispatches that can be merged into one.
#[derive(Debug, Clone)]
pub struct Chain<'a> {
    /// The dispatches, at least two.
    pub members: Vec<Member<'a>>,
    /// The memory through which the dispatches pass values.
    pub regions: Vec<Region>,
}

impl Chain<'_> {
    /// Returns the memory that a kernel of the chain stores and a later one loads.
    pub fn carried(&self) -> impl Iterator<Item = &Region> {
        (self.regions.iter()).filter(|region| !region.carried_into.is_empty())
    }
}

/// A dispatch that does not join the one before it, although it may reach what that one writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refused {
    /// Numbers of the dispatches in the window, from 0.
    pub dispatches: [u64; 2],
    /// Names of the dispatches' kernels.
    pub kernels: [String; 2],
    /// Why the second does not join.
    #[serde(flatten)]
    pub refusal: Refusal,
    /// The refusal as text.
    pub reason: String,
}

/// The chains of a capture, and the dispatches that do not join one.
#[derive(Debug, Default)]
pub struct Chains<'a> {
    /// Chains in the order of the window.
    pub chains: Vec<Chain<'a>>,
    /// Refusals in the order of the window.
    pub refused: Vec<Refused>,
    /// The kernels that were read, by the id of the pipeline, or why they cannot be merged.
    pub kernels: HashMap<PipelineId, Result<Kernel, Refusal>>,
}

/// A dispatch that may join the chain of the dispatch before it.
struct Candidate<'a> {
    /// As in [`Member`].
    executed: usize,
    number: u64,
    dispatch: &'a Dispatch,
    /// Number of the list of commands that has the dispatch: one for each submitted command buffer.
    list: usize,
    /// The kind of the command that stands between the dispatch and the dispatch before it.
    between: Option<&'static str>,
}

/// Examines all dispatches of a capture, and returns the chains.
pub fn find<'a>(capture: &'a Capture, limits: Limits) -> Chains<'a> {
    let dispatches = dispatches(capture);
    let mut found = Chains::default();
    let mut pairs: Vec<(usize, Option<Refusal>)> = Vec::new();
    let mut wanted = BTreeSet::new();
    for second in 1..dispatches.len() {
        let (a, b) = (&dispatches[second - 1], &dispatches[second]);
        if a.list != b.list || !may_carry(capture, a.dispatch, b.dispatch) {
            continue;
        }
        let refusal = fits(capture, a, b, &mut found.kernels).err();
        if refusal.is_none() {
            wanted.extend([a.executed, b.executed]);
        }
        pairs.push((second, refusal));
    }
    let mut followed = HashMap::new();
    if !wanted.is_empty() {
        trails(
            capture,
            limits,
            &|executed| wanted.contains(&executed),
            &mut |executed, _, trail| {
                followed.insert(executed, trail);
            },
        );
    }
    let member = |of: &Candidate<'a>| -> Result<Member<'a>, Refusal> {
        let trail = match followed.get(&of.executed) {
            Some(Ok(trail)) => Arc::clone(trail),
            Some(Err(reason)) => return Err(Refusal::Unknown(reason.to_string())),
            None => return Err(Refusal::Unknown("it is not reached".to_owned())),
        };
        Ok(Member {
            executed: of.executed,
            number: of.number,
            dispatch: of.dispatch,
            trail,
        })
    };
    let mut open: Option<Chain<'a>> = None;
    let mut proved = Vec::new();
    for (second, refusal) in pairs {
        let (a, b) = (&dispatches[second - 1], &dispatches[second]);
        let ended = open.take_if(|chain| !ends_with(chain, a));
        found.chains.extend(ended);
        let joined = match refusal {
            Some(refusal) => Err(refusal),
            None => join(capture, &mut open, &mut proved, a, b, &member),
        };
        if let Err(refusal) = joined {
            let name = |of: &Candidate<'_>| capture.pipelines[&of.dispatch.pipeline].name.clone();
            found.refused.push(Refused {
                dispatches: [a.number, b.number],
                kernels: [name(a), name(b)],
                reason: refusal.to_string(),
                refusal,
            });
        }
    }
    found.chains.extend(open);
    found
}

/// Results of proofs, so that equal dispatches are proved once.
struct ProofCache<'a> {
    members: Vec<Member<'a>>,
    result: Result<Vec<Region>, Refusal>,
}

fn ends_with(chain: &Chain<'_>, of: &Candidate<'_>) -> bool {
    chain
        .members
        .last()
        .is_some_and(|last| last.executed == of.executed)
}

/// Adds the dispatch `b` to the open chain if that ends with `a`, otherwise begins a chain of both, if all members
/// together can be proved to be mergeable. The chain stays as it was where nothing is carried into `b`. Proofs are
/// added to `proved`.
fn join<'a>(
    capture: &Capture,
    open: &mut Option<Chain<'a>>,
    proved: &mut Vec<ProofCache<'a>>,
    a: &Candidate<'a>,
    b: &Candidate<'a>,
    member: &dyn Fn(&Candidate<'a>) -> Result<Member<'a>, Refusal>,
) -> Result<(), Refusal> {
    let continued = open.as_ref().filter(|chain| ends_with(chain, a));
    let mut members = match continued {
        Some(chain) => chain.members.clone(),
        None => vec![member(a)?],
    };
    members.push(member(b)?);
    let (first, last) = (&members[0].trail, &members[members.len() - 1].trail);
    if first.local_size != last.local_size {
        let text = format!("{:?} and {:?}", first.local_size, last.local_size);
        return Err(Refusal::LocalSize(text));
    }
    let same = |of: &ProofCache<'a>| {
        of.members.len() == members.len()
            && (of.members.iter().zip(&members)).all(|(known, member)| {
                known.dispatch == member.dispatch && Arc::ptr_eq(&known.trail, &member.trail)
            })
    };
    let regions = match proved.iter().find(|of| same(of)) {
        Some(known) => known.result.clone(),
        None => {
            let reached: Vec<_> = members.iter().map(|of| (of.dispatch, &*of.trail)).collect();
            let result = prove(capture, &reached);
            proved.push(ProofCache {
                members: members.clone(),
                result: result.clone(),
            });
            result
        }
    }?;
    let last = members.len() - 1;
    let carries = regions
        .iter()
        .any(|region| region.carried_into.contains(&last));
    if carries {
        *open = Some(Chain { members, regions });
    }
    Ok(())
}

/// Returns all dispatches in the order of the window.
fn dispatches(capture: &Capture) -> Vec<Candidate<'_>> {
    let lists = capture
        .submissions()
        .flat_map(|of| &of.batches)
        .flat_map(|of| &of.commands);
    let mut found = Vec::new();
    let mut executed = 0;
    for (list, id) in lists.enumerate() {
        let mut between = None;
        let commands: &CommandsId = id;
        for command in &capture.commands[commands] {
            match command {
                Command::Dispatch(dispatch) => {
                    found.push(Candidate {
                        executed,
                        number: found.len() as u64,
                        dispatch,
                        list,
                        between: between.take(),
                    });
                }
                Command::Copy(_) => between = Some("copy"),
                Command::Fill(_) => between = Some("fill"),
                Command::Update(_) => between = Some("update"),
                Command::Barrier(_) | Command::Label(_) => {}
            }
            executed += 1;
        }
    }
    found
}

/// Returns whether the first dispatch may write what the second one reads, by their bindings.
fn may_carry(capture: &Capture, a: &Dispatch, b: &Dispatch) -> bool {
    let written = a.bindings.iter().filter(|of| of.is_writable());
    let mut written = written.filter_map(|of| of.range);
    written.any(|from| {
        let (memory, at) = capture.place(from);
        b.bindings.iter().filter_map(|of| of.range).any(|to| {
            let (other, place) = capture.place(to);
            memory == other && at < place + to.bytes && place < at + from.bytes
        })
    })
}

/// Checks, apart from what invocations reach, that two dispatches can be one: no other command between them, readable
/// kernels, no arrays of descriptors, and equal workgroups and pipelines. Kernels are read once, into `kernels`.
fn fits(
    capture: &Capture,
    a: &Candidate<'_>,
    b: &Candidate<'_>,
    kernels: &mut HashMap<PipelineId, Result<Kernel, Refusal>>,
) -> Result<(), Refusal> {
    if let Some(what) = b.between {
        return Err(Refusal::Between(what));
    }
    for of in [a, b] {
        let id = of.dispatch.pipeline;
        let read = || read(capture, &capture.pipelines[&id]);
        kernels
            .entry(id)
            .or_insert_with(read)
            .as_ref()
            .map_err(Refusal::clone)?;
        let mut bindings = of.dispatch.bindings.iter();
        if bindings.any(|binding| binding.element != 0) {
            return Err(Refusal::DescriptorArray);
        }
    }
    match (a.dispatch.groups, b.dispatch.groups) {
        (Groups::Direct(one), Groups::Direct(other)) if one == other => {}
        (Groups::Direct(one), Groups::Direct(other)) => {
            return Err(Refusal::Groups(format!("{one:?} and {other:?}")));
        }
        _ => return Err(Refusal::Indirect),
    }
    if a.dispatch.base != b.dispatch.base {
        return Err(Refusal::Groups("another first one".to_owned()));
    }
    let [a, b] = [a, b].map(|of| &capture.pipelines[&of.dispatch.pipeline]);
    if a.flags != b.flags || a.stage_flags != b.stage_flags {
        return Err(Refusal::Pipelines("flags"));
    }
    if a.required_subgroup_size != b.required_subgroup_size {
        return Err(Refusal::Pipelines("sizes of subgroups"));
    }
    if a.robustness != b.robustness {
        return Err(Refusal::Pipelines("robustness"));
    }
    Ok(())
}

fn read(capture: &Capture, pipeline: &Pipeline) -> Result<Kernel, Refusal> {
    let module: ModuleId = pipeline.module;
    let code = capture.chunk(capture.modules[&module].code);
    let code = code.map_err(|error| Refusal::Spirv(error.to_string()))?;
    let constants = pipeline.constants.iter();
    let constants: Vec<_> = constants.map(|of| (of.id, of.bits())).collect();
    Kernel::read(&code, &pipeline.entry, &constants)
}
