//! Lowers a kernel: its SPIR-V [`Module`] and the known facts of a dispatch go in, one flat [`Program`] comes out, in
//! which functions are inlined and known values are constants.
//!
//! Order: constants are evaluated, variables are given values or registers, and the functions are followed from the
//! entry point, one module here for each kind of instruction. A register holds one scalar of an invocation, and a
//! value (`values.rs`) is a list of scalars or a pointer.

mod arithmetic;
mod composites;
mod control;
mod instructions;
mod matrices;
mod memory;
mod values;
mod variables;

use std::collections::HashMap;
use std::sync::Arc;

use super::code::{Code, Single, mask, operate};
use super::program::{Block, BlockId, End, Op, Operand, Program, Register};
use super::reason::{Cause, Reason};
use gapscope_spirv::numbers::op;
use gapscope_spirv::{LocalSize, Module};
use values::Value;

/// The most operations of a program with its functions inlined; beyond them lowering fails.
const MAX_OPS: usize = 1_000_000;
/// The most blocks of a program, then the most registers and the greatest depth of calls; beyond them lowering fails.
const MAX_BLOCKS: usize = 20_000;
const MAX_REGISTERS: u32 = 1 << 20;
const MAX_CALL_DEPTH: usize = 24;
/// The most scalars of a value or variable; larger ones are unknown.
const MAX_SCALARS: u32 = 1024;

/// The known facts of a dispatch that lowering fills in.
#[derive(Debug)]
pub(crate) struct Environment<'a> {
    pub entry: &'a str,
    /// Specialisation constants (values that the pipeline sets) as pairs of number and bits.
    pub constants: &'a [(u32, u64)],
    /// The bytes that the program gives with the dispatch.
    pub push_constants: &'a [u8],
    /// Workgroups by axis.
    pub groups: [u32; 3],
    pub buffers: &'a [BoundBuffer],
    /// The number of invocations of a subgroup, if the device has only one such size.
    pub subgroup_size: Option<u32>,
}

/// The buffer range behind a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BoundBuffer {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub bytes: u64,
    /// The contents of the whole range, if they are known and used.
    pub content: Option<Arc<[u8]>>,
}

/// A kernel as a flat program, with its workgroup size.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub program: Program,
    /// Invocations of a workgroup by axis.
    pub local_size: [u32; 3],
}

/// The error of a kernel that exceeds a limit.
#[derive(Debug)]
struct TooLarge;

/// Lowers a kernel for a dispatch.
///
/// # Errors
/// The kernel cannot be followed at all.
pub(crate) fn lower(module: &Module, environment: &Environment) -> Result<Lowered, Reason> {
    let entry = module
        .entry_point(environment.entry)
        .map_err(|_| Reason::Kernel("the kernel has no such entry point"))?;
    let mut lowering = Lowering {
        module,
        environment,
        program: Program::default(),
        globals: HashMap::new(),
        frame: Frame::default(),
        current: None,
        ops: 0,
        depth: 0,
    };
    lowering.constants();
    let local_size = lowering
        .local_size(entry.local_size())
        .filter(|size| size.iter().all(|n| (1..=1 << 16).contains(n)))
        .ok_or(Reason::Kernel("the size of its workgroups is not known"))?;
    let too_large = |TooLarge| Reason::Limit("1,000,000 instructions");
    let first = lowering.new_block().map_err(too_large)?;
    lowering.begin(first);
    lowering.variables(local_size);
    let body = lowering.new_block().map_err(too_large)?;
    lowering.end(End::Jump(body));
    lowering
        .function(entry.function, &[], body)
        .map_err(too_large)?;
    if lowering.program.registers > MAX_REGISTERS {
        return Err(Reason::Limit("1,000,000 registers"));
    }
    Ok(Lowered {
        program: lowering.program,
        local_size,
    })
}

/// The state of lowering one kernel.
struct Lowering<'a> {
    module: &'a Module,
    environment: &'a Environment<'a>,
    program: Program,
    /// The constants and variables outside of functions, by id.
    globals: HashMap<u32, Typed>,
    /// The function that is being inlined at the moment.
    frame: Frame,
    /// The block that instructions are added to; `None` where the code is never reached.
    current: Option<BlockId>,
    /// The number of operations emitted so far.
    ops: usize,
    /// The number of calls around the current function.
    depth: usize,
}

#[derive(Debug, Clone)]
struct Typed {
    type_id: u32,
    value: Value,
}

/// A function that is being inlined.
#[derive(Debug, Default)]
struct Frame {
    /// The values of the function by id.
    values: HashMap<u32, Typed>,
    /// By the id of a label, the block that begins there; in `leaves`, the block whose branch ends the label's code.
    begins: HashMap<u32, BlockId>,
    leaves: HashMap<u32, BlockId>,
    /// The id of the label whose code is being lowered.
    label: u32,
    /// The phi instructions whose sources are still to be looked up.
    phis: Vec<PendingPhi>,
    /// The blocks that return, each with the id of the returned value if there is one.
    returns: Vec<(BlockId, Option<u32>)>,
}

/// A phi instruction (a value that depends on the block run before), whose sources are looked up at the end of the
/// function.
#[derive(Debug)]
struct PendingPhi {
    block: BlockId,
    /// The index of the first of its phis in the block, of which there are `count`: one for each scalar.
    first: usize,
    count: usize,
    /// Pairs of ids as in SPIR-V: a value, and the label of the block that it comes from.
    sources: Vec<(u32, u32)>,
}

impl<'a> Lowering<'a> {
    /// Adds an empty block that stops, and returns its number.
    fn new_block(&mut self) -> Result<BlockId, TooLarge> {
        if self.program.blocks.len() == MAX_BLOCKS {
            return Err(TooLarge);
        }
        self.program.blocks.push(Block {
            phis: Vec::new(),
            ops: Vec::new(),
            end: End::Stop,
        });
        Ok(self.program.blocks.len() as BlockId - 1)
    }

    /// Reserves registers, and returns the first.
    fn new_registers(&mut self, count: u32) -> Register {
        let first = self.program.registers;
        self.program.registers = first.saturating_add(count);
        first
    }

    /// Adds an operation to the current block, if there is one.
    fn emit(&mut self, op: Op) {
        if let Some(block) = self.current {
            self.ops += 1;
            self.program.blocks[block as usize].ops.push(op);
        }
    }

    /// Ends the current block, after which no code is reached until another block begins.
    fn end(&mut self, end: End) {
        if let Some(block) = self.current.take() {
            self.program.blocks[block as usize].end = end;
            self.frame.leaves.insert(self.frame.label, block);
        }
    }

    /// Computes an operation now if its operands tell the result, else emits it, and returns the result. It is
    /// unknown if an operand that counts is.
    fn compute(&mut self, code: Code, bits: u8, operands: [Operand; 3]) -> Operand {
        use Operand::{Known, Unknown};
        let [a, b, c] = operands;
        match (code, a, b) {
            (Code::Select, Known(0), _) => return c,
            (Code::Select, Known(_), _) => return b,
            (Code::Select, ..) if b == c => return b,
            (Code::And | Code::Mul, Known(0), _) | (Code::And | Code::Mul, _, Known(0)) => {
                return Known(0);
            }
            (Code::Or, Known(1), _) | (Code::Or, _, Known(1)) if bits == 1 => return Known(1),
            (Code::Add | Code::Or | Code::Xor, Known(0), x)
            | (Code::Add | Code::Sub | Code::Or | Code::Xor | Code::Shl | Code::Shr, x, Known(0))
            | (Code::UIndex | Code::SIndex, x, Known(0))
            | (Code::Mul, Known(1), x)
            | (Code::Mul | Code::UDiv, x, Known(1)) => return x,
            (Code::And, x, Known(all)) | (Code::And, Known(all), x) if all == mask(bits) => {
                return x;
            }
            _ => {}
        }
        if let Some(Unknown(cause)) = operands.iter().find(|o| matches!(o, Unknown(_))) {
            return Unknown(*cause);
        }
        if let [Known(a), Known(b), Known(c)] = operands {
            return Known(operate(code, bits, Single(a, b, c)));
        }
        if self.current.is_none() {
            return Unknown(Cause::Undefined);
        }
        let result = self.new_registers(1);
        self.emit(Op::Compute {
            code,
            bits,
            result,
            operands,
        });
        Operand::Register(result)
    }

    /// Evaluates constants in their order, with the values of the pipeline instead of the defaults.
    fn constants(&mut self) {
        let module = self.module;
        for instruction in &module.constants {
            let operands = module.operands(instruction);
            let [type_id, id, rest @ ..] = operands else {
                continue;
            };
            let bits = module.bits(*type_id).unwrap_or(64);
            let given = (module.decorations.get(id).and_then(|d| d.spec_id))
                .and_then(|spec| {
                    self.environment
                        .constants
                        .iter()
                        .find(|(id, _)| *id == spec)
                })
                .map(|(_, value)| *value);
            let value = match (instruction.op, rest) {
                (op::CONSTANT_TRUE, _) => Value::known(1),
                (op::CONSTANT_FALSE, _) => Value::known(0),
                (op::SPEC_CONSTANT_TRUE | op::SPEC_CONSTANT_FALSE, _) => {
                    let default = u64::from(instruction.op == op::SPEC_CONSTANT_TRUE);
                    Value::known(u64::from(given.unwrap_or(default) != 0))
                }
                (op::CONSTANT | op::SPEC_CONSTANT, [low, high @ ..]) => {
                    let high = high.first().copied().unwrap_or(0);
                    let literal = u64::from(*low) | u64::from(high) << 32;
                    let given = given.filter(|_| instruction.op == op::SPEC_CONSTANT);
                    Value::known(given.unwrap_or(literal) & mask(bits))
                }
                (op::CONSTANT_COMPOSITE | op::SPEC_CONSTANT_COMPOSITE, parts) => {
                    self.construct(*type_id, parts)
                }
                (op::CONSTANT_NULL, _) => self.zero(*type_id),
                (op::SPEC_CONSTANT_OP, [op, operands @ ..]) => (self
                    .evaluate(*op as u16, *type_id, operands))
                .unwrap_or(Value::Unknown(Cause::Instruction(*op as u16))),
                _ => Value::Unknown(Cause::Undefined),
            };
            let typed = Typed {
                type_id: *type_id,
                value,
            };
            self.globals.insert(*id, typed);
        }
    }

    /// Returns the workgroup size: that of the built-in constant, otherwise that of the entry point. `None` if it is
    /// not known.
    fn local_size(&self, size: Option<LocalSize>) -> Option<[u32; 3]> {
        let known = |operand: &Operand| match operand {
            Operand::Known(value) => u32::try_from(*value).ok(),
            _ => None,
        };
        if let Some(id) = self.module.workgroup_size
            && let Some(typed) = self.globals.get(&id)
            && let [x, y, z] = typed.value.scalars(3).as_slice()
        {
            return Some([known(x)?, known(y)?, known(z)?]);
        }
        match size? {
            LocalSize::Literal(size) => Some(size),
            LocalSize::Ids(ids) => {
                let [x, y, z] = ids.map(|id| known(&self.typed(id).value.scalars(1)[0]));
                Some([x?, y?, z?])
            }
        }
    }
}
