//! Makes one flat program of a kernel: functions are inlined, and what is known of the dispatch is put in.

mod arithmetic;
mod composites;
mod instructions;
mod memory;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use super::code::{Code, Single, mask, operate};
use super::program::{Block, BlockId, End, Input, Op, Operand, Phi, Program, Register};
use super::reason::{Cause, Reason};
use crate::spirv::{Instruction, LocalSize, Module, Type, class};
use values::{Base, Pointer, Value};

/// Operations of a program, its functions inlined.
const OPS_AT_MOST: usize = 1_000_000;
const BLOCKS_AT_MOST: usize = 20_000;
const REGISTERS_AT_MOST: u32 = 1 << 20;
const CALL_DEPTH_AT_MOST: usize = 24;
/// Scalars of a value, and of a variable, that are followed one by one.
const SCALARS_AT_MOST: u32 = 1024;

/// What is known of a dispatch.
#[derive(Debug)]
pub(crate) struct Environment<'a> {
    /// The entry point.
    pub entry: &'a str,
    /// Specialisation constants: number and bits.
    pub constants: &'a [(u32, u64)],
    pub push_constants: &'a [u8],
    pub groups: [u32; 3],
    pub buffers: &'a [BoundBuffer],
    /// Where the device has one size for all.
    pub subgroup_size: Option<u32>,
}

/// A descriptor's buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BoundBuffer {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub bytes: u64,
    /// All of it, where it is known.
    pub content: Option<Arc<[u8]>>,
}

/// A kernel, made flat.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub program: Program,
    /// Invocations of a workgroup, by axis.
    pub local_size: [u32; 3],
}

/// The kernel needs more than is followed.
#[derive(Debug)]
struct TooLarge;

/// Makes a program of a kernel.
///
/// # Errors
/// Why it cannot be followed at all.
pub(crate) fn lower(module: &Module, environment: &Environment) -> Result<Lowered, Reason> {
    let (function, size) = module
        .entry(environment.entry)
        .ok_or(Reason::Kernel("the kernel has no such entry point"))?;
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
        .local_size(size)
        .filter(|size| size.iter().all(|n| (1..=1 << 16).contains(n)))
        .ok_or(Reason::Kernel("the size of its workgroups is not known"))?;
    let too_large = |TooLarge| Reason::Limit("1,000,000 instructions");
    let entry = lowering.new_block().map_err(too_large)?;
    lowering.begin(entry);
    lowering.variables(local_size);
    let body = lowering.new_block().map_err(too_large)?;
    lowering.end(End::Jump(body));
    lowering.function(function, &[], body).map_err(too_large)?;
    if lowering.program.registers > REGISTERS_AT_MOST {
        return Err(Reason::Limit("1,000,000 registers"));
    }
    Ok(Lowered {
        program: lowering.program,
        local_size,
    })
}

struct Lowering<'a> {
    module: &'a Module,
    environment: &'a Environment<'a>,
    program: Program,
    globals: HashMap<u32, Typed>,
    frame: Frame,
    /// The block that instructions go to; none where they are never reached.
    current: Option<BlockId>,
    ops: usize,
    depth: usize,
}

/// A value and the id of its type.
#[derive(Debug, Clone)]
struct Typed {
    type_id: u32,
    value: Value,
}

/// A function that is being inlined.
#[derive(Debug, Default)]
struct Frame {
    values: HashMap<u32, Typed>,
    /// Of each label: the block that it begins, and the one that its branch leaves.
    begins: HashMap<u32, BlockId>,
    leaves: HashMap<u32, BlockId>,
    label: u32,
    phis: Vec<PendingPhi>,
    returns: Vec<(BlockId, Option<u32>)>,
}

/// A phi whose sources are looked up when the function has been read.
#[derive(Debug)]
struct PendingPhi {
    block: BlockId,
    first: usize,
    count: usize,
    sources: Vec<(u32, u32)>,
}

impl<'a> Lowering<'a> {
    fn new_block(&mut self) -> Result<BlockId, TooLarge> {
        if self.program.blocks.len() == BLOCKS_AT_MOST {
            return Err(TooLarge);
        }
        self.program.blocks.push(Block {
            phis: Vec::new(),
            ops: Vec::new(),
            end: End::Stop,
        });
        Ok(self.program.blocks.len() as BlockId - 1)
    }

    fn new_registers(&mut self, count: u32) -> Register {
        let first = self.program.registers;
        self.program.registers = first.saturating_add(count);
        first
    }

    fn emit(&mut self, op: Op) {
        if let Some(block) = self.current {
            self.ops += 1;
            self.program.blocks[block as usize].ops.push(op);
        }
    }

    fn end(&mut self, end: End) {
        if let Some(block) = self.current.take() {
            self.program.blocks[block as usize].end = end;
            self.frame.leaves.insert(self.frame.label, block);
        }
    }

    /// Does an operation now, if all is known, or in the program.
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

    /// Inlines a function, from `entry` on. It leaves through the frame's returns.
    fn function(&mut self, id: u32, arguments: &[Typed], entry: BlockId) -> Result<(), TooLarge> {
        let module = self.module;
        let Some(function) = module.functions.get(&id) else {
            return Ok(());
        };
        for ((id, type_id), argument) in function.parameters.iter().zip(arguments) {
            let typed = Typed {
                type_id: *type_id,
                value: argument.value.clone(),
            };
            self.frame.values.insert(*id, typed);
        }
        let mut entry = Some(entry);
        for instruction in &function.body {
            if self.ops > OPS_AT_MOST || self.program.registers > REGISTERS_AT_MOST {
                return Err(TooLarge);
            }
            if instruction.op == 248 {
                self.label(instruction, entry.take())?;
            } else if self.current.is_some() {
                self.instruction(instruction)?;
            }
        }
        self.current = None;
        self.resolve_phis();
        Ok(())
    }

    /// Begins a block: the function's first is `entry`.
    fn label(&mut self, instruction: &Instruction, entry: Option<BlockId>) -> Result<(), TooLarge> {
        let Some(&label) = self.module.operands(instruction).first() else {
            return Ok(());
        };
        let block = match entry {
            Some(entry) => {
                self.frame.begins.entry(label).or_insert(entry);
                entry
            }
            None => self.target(label)?,
        };
        self.frame.label = label;
        self.begin(block);
        Ok(())
    }

    fn begin(&mut self, block: BlockId) {
        self.program.order.push(block);
        self.current = Some(block);
    }

    /// The block that a label begins.
    fn target(&mut self, label: u32) -> Result<BlockId, TooLarge> {
        if let Some(block) = self.frame.begins.get(&label) {
            return Ok(*block);
        }
        let block = self.new_block()?;
        self.frame.begins.insert(label, block);
        Ok(block)
    }

    fn branch(&mut self, op: u16, operands: &[u32]) -> Result<(), TooLarge> {
        let end = match (op, operands) {
            (249, [to, ..]) => End::Jump(self.target(*to)?),
            (250, [condition, then, otherwise, ..]) => {
                let (then, otherwise) = (self.target(*then)?, self.target(*otherwise)?);
                match self.scalar(*condition) {
                    Operand::Known(0) => End::Jump(otherwise),
                    Operand::Known(_) => End::Jump(then),
                    condition => End::Branch {
                        condition,
                        then,
                        otherwise,
                    },
                }
            }
            (251, [selector, default, rest @ ..]) => self.switch(*selector, *default, rest)?,
            (253, _) => {
                if let Some(block) = self.current {
                    self.frame.returns.push((block, None));
                }
                End::Stop
            }
            (254, [value, ..]) => {
                if let Some(block) = self.current {
                    self.frame.returns.push((block, Some(*value)));
                }
                End::Stop
            }
            _ => End::Stop,
        };
        self.end(end);
        Ok(())
    }

    fn switch(&mut self, selector: u32, default: u32, rest: &[u32]) -> Result<End, TooLarge> {
        let bits = self.bits_of(selector).unwrap_or(32);
        let default = self.target(default)?;
        let words = if bits > 32 { 3 } else { 2 };
        let mut cases = Vec::new();
        for case in rest.chunks_exact(words) {
            let value = match case {
                [low, high, _] => u64::from(*low) | u64::from(*high) << 32,
                _ => u64::from(case[0]) & mask(bits),
            };
            let to = self.target(case[words - 1])?;
            cases.push((value, to));
        }
        Ok(match self.scalar(selector) {
            Operand::Known(known) => {
                let taken = cases.iter().find(|(value, _)| *value == known);
                End::Jump(taken.map_or(default, |(_, to)| *to))
            }
            selector => End::Switch {
                selector,
                default,
                cases,
            },
        })
    }

    fn call(&mut self, operands: &[u32]) -> Result<(), TooLarge> {
        let [type_id, id, function, arguments @ ..] = operands else {
            return Ok(());
        };
        if self.depth == CALL_DEPTH_AT_MOST {
            return Err(TooLarge);
        }
        let arguments: Vec<Typed> = arguments.iter().map(|id| self.typed(*id)).collect();
        let entry = self.new_block()?;
        let Some(caller) = self.current.take() else {
            return Ok(());
        };
        self.program.blocks[caller as usize].end = End::Jump(entry);
        let outer = std::mem::take(&mut self.frame);
        self.depth += 1;
        self.function(*function, &arguments, entry)?;
        self.depth -= 1;
        let inner = std::mem::replace(&mut self.frame, outer);
        let after = self.new_block()?;
        for (block, _) in &inner.returns {
            self.program.blocks[*block as usize].end = End::Jump(after);
        }
        self.begin(after);
        let value = self.returned(*type_id, &inner, after);
        self.define(*id, *type_id, value);
        Ok(())
    }

    /// What a call gives, in the block after it.
    fn returned(&mut self, type_id: u32, inner: &Frame, after: BlockId) -> Value {
        let value_of = |id: &Option<u32>| {
            let typed = id.and_then(|id| inner.values.get(&id).or(self.globals.get(&id)));
            typed.map_or(Value::Unknown(Cause::Undefined), |t| t.value.clone())
        };
        if let [(_, id)] = inner.returns.as_slice() {
            return value_of(id);
        }
        let Some(count) = self.scalars(type_id) else {
            return Value::Unknown(Cause::Pointer);
        };
        let sources: Vec<(BlockId, Vec<Operand>)> = (inner.returns.iter())
            .map(|(block, id)| (*block, value_of(id).scalars(count)))
            .collect();
        let first = self.new_registers(count);
        for index in 0..count {
            let sources = (sources.iter())
                .map(|(block, scalars)| (*block, scalars[index as usize]))
                .collect();
            self.program.blocks[after as usize].phis.push(Phi {
                result: first + index,
                sources,
            });
        }
        Value::registers(first, count)
    }

    fn phi(&mut self, operands: &[u32]) {
        let ([type_id, id, sources @ ..], Some(block)) = (operands, self.current) else {
            return;
        };
        let Some(count) = self.scalars(*type_id) else {
            let value = match self.module.types.get(type_id) {
                Some(Type::Pointer { .. }) => Value::Pointer(Pointer::lost(Cause::Pointer)),
                _ => Value::Unknown(Cause::LargeVariable),
            };
            return self.define(*id, *type_id, value);
        };
        let first = self.new_registers(count);
        let phis = &mut self.program.blocks[block as usize].phis;
        let at = phis.len();
        phis.extend((0..count).map(|index| Phi {
            result: first + index,
            sources: Vec::new(),
        }));
        self.ops += count as usize;
        self.frame.phis.push(PendingPhi {
            block,
            first: at,
            count: count as usize,
            sources: (sources.as_chunks::<2>().0.iter())
                .map(|[value, label]| (*value, *label))
                .collect(),
        });
        self.define(*id, *type_id, Value::registers(first, count));
    }

    fn resolve_phis(&mut self) {
        for phi in std::mem::take(&mut self.frame.phis) {
            for (value, label) in &phi.sources {
                let Some(&from) = self.frame.leaves.get(label) else {
                    continue;
                };
                let scalars = self.typed(*value).value.scalars(phi.count as u32);
                let phis = &mut self.program.blocks[phi.block as usize].phis;
                for (phi, scalar) in phis[phi.first..].iter_mut().zip(scalars) {
                    phi.sources.push((from, scalar));
                }
            }
        }
    }

    /// Evaluates constants in their order, those of the pipeline in place of the defaults.
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
                (41, _) => Value::known(1),
                (42, _) => Value::known(0),
                (48 | 49, _) => {
                    let default = u64::from(instruction.op == 48);
                    Value::known(u64::from(given.unwrap_or(default) != 0))
                }
                (43 | 50, [low, high @ ..]) => {
                    let high = high.first().copied().unwrap_or(0);
                    let literal = u64::from(*low) | u64::from(high) << 32;
                    let given = given.filter(|_| instruction.op == 50);
                    Value::known(given.unwrap_or(literal) & mask(bits))
                }
                (44 | 51, parts) => self.construct(*type_id, parts),
                (46, _) => self.zero(*type_id),
                (52, [op, operands @ ..]) => (self.evaluate(*op as u16, *type_id, operands))
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

    fn local_size(&self, size: Option<LocalSize>) -> Option<[u32; 3]> {
        let known = |operand: &Operand| match operand {
            Operand::Known(value) => u32::try_from(*value).ok(),
            _ => None,
        };
        if let Some(id) = self.module.size_constant()
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

    /// Gives each variable outside of functions its place.
    fn variables(&mut self, local_size: [u32; 3]) {
        let module = self.module;
        let mut ids: Vec<u32> = module.variables.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let variable = &module.variables[&id];
            let Some(Type::Pointer { pointee, .. }) = module.types.get(&variable.type_id) else {
                continue;
            };
            let decorations = module.decorations.get(&id);
            let base = match variable.class {
                class::INPUT => {
                    let built_in = decorations.and_then(|d| d.built_in);
                    self.input(built_in, *pointee, local_size)
                }
                class::PRIVATE => self.local(*pointee, variable.initializer),
                class::WORKGROUP => Base::Opaque(Cause::SharedMemory),
                class::PUSH_CONSTANT => {
                    let content = self.environment.push_constants.into();
                    self.program.contents.push(content);
                    Base::Content(self.program.contents.len() - 1)
                }
                class::STORAGE_BUFFER | class::UNIFORM => {
                    let place = decorations.and_then(|d| Some((d.set.unwrap_or(0), d.binding?)));
                    place.map_or(Base::Lost(Cause::NoDescriptor), |(set, binding)| {
                        Base::Descriptors { set, binding }
                    })
                }
                0 => Base::Lost(Cause::Image),
                _ => Base::Lost(Cause::Pointer),
            };
            let pointer = Pointer {
                base,
                offset: Operand::Known(0),
                type_id: *pointee,
                matrix: None,
            };
            let typed = Typed {
                type_id: variable.type_id,
                value: Value::Pointer(self.settled(pointer)),
            };
            self.globals.insert(id, typed);
        }
    }

    fn input(&mut self, built_in: Option<u32>, pointee: u32, local_size: [u32; 3]) -> Base {
        let groups = self.environment.groups;
        let known = |values: [u32; 3]| -> Vec<Operand> {
            values.map(|value| Operand::Known(value.into())).to_vec()
        };
        let inputs: Vec<Operand> = match built_in {
            Some(24) => known(groups),
            Some(25) => known(local_size),
            Some(26) => self.inputs([0, 1, 2].map(Input::Group)),
            Some(27) => self.inputs([0, 1, 2].map(Input::Local)),
            Some(28) => self.inputs([0, 1, 2].map(Input::Global)),
            Some(29) => self.inputs([Input::LocalIndex]),
            Some(36) => match self.environment.subgroup_size {
                Some(size) => vec![Operand::Known(size.into())],
                None => return Base::Opaque(Cause::Subgroup),
            },
            _ => return Base::Opaque(Cause::Subgroup),
        };
        match self.scalars(pointee) {
            Some(count) if count as usize == inputs.len() => Base::Fixed(inputs.into()),
            _ => Base::Opaque(Cause::Undefined),
        }
    }

    fn inputs<const N: usize>(&mut self, inputs: [Input; N]) -> Vec<Operand> {
        let registers = inputs.map(|input| {
            let known = self
                .program
                .inputs
                .iter()
                .find(|(other, _)| *other == input);
            known.map(|(_, register)| *register).unwrap_or_else(|| {
                let register = self.new_registers(1);
                self.program.inputs.push((input, register));
                register
            })
        });
        registers.map(Operand::Register).to_vec()
    }
}
