//! Lowers (translates from SPIR-V) functions and branches: calls are inlined, and branches end the program's blocks.
//!
//! Each call gets a frame of its own, so that a function inlined twice has blocks and registers for each call. The
//! phis (values that depend on the block run before) of a function are resolved once all of its blocks are there.

use super::values::{Pointer, Value};
use super::{Frame, Lowering, MAX_CALL_DEPTH, MAX_OPS, MAX_REGISTERS, PendingPhi, TooLarge, Typed};
use crate::kernel::code::mask;
use crate::kernel::program::{BlockId, End, Operand, Phi};
use crate::kernel::reason::Cause;
use gapscope_spirv::numbers::op;
use gapscope_spirv::{StoredInstruction, Type};

impl Lowering<'_> {
    /// Inlines a function from the block `entry` on. Its returns are collected in the frame.
    pub(super) fn function(
        &mut self,
        id: u32,
        arguments: &[Typed],
        entry: BlockId,
    ) -> Result<(), TooLarge> {
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
            if self.ops > MAX_OPS || self.program.registers > MAX_REGISTERS {
                return Err(TooLarge);
            }
            if instruction.op == op::LABEL {
                self.label(instruction, entry.take())?;
            } else if self.current.is_some() {
                self.instruction(instruction)?;
            }
        }
        self.current = None;
        self.resolve_phis();
        Ok(())
    }

    /// Begins the block of a label. The first label of a function begins `entry`.
    fn label(
        &mut self,
        instruction: &StoredInstruction,
        entry: Option<BlockId>,
    ) -> Result<(), TooLarge> {
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

    /// Makes a block the current one, next in the order of blocks.
    pub(super) fn begin(&mut self, block: BlockId) {
        self.program.order.push(block);
        self.current = Some(block);
    }

    /// Returns the block that a label begins, and makes it where it is new.
    fn target(&mut self, label: u32) -> Result<BlockId, TooLarge> {
        if let Some(block) = self.frame.begins.get(&label) {
            return Ok(*block);
        }
        let block = self.new_block()?;
        self.frame.begins.insert(label, block);
        Ok(block)
    }

    /// Ends the current block by a branch, switch or return. A known condition leaves a jump; a return stops until
    /// the call replaces that by a jump.
    pub(super) fn branch(&mut self, op: u16, operands: &[u32]) -> Result<(), TooLarge> {
        let end = match (op, operands) {
            (op::BRANCH, [to, ..]) => End::Jump(self.target(*to)?),
            (op::BRANCH_CONDITIONAL, [condition, then, otherwise, ..]) => {
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
            (op::SWITCH, [selector, default, rest @ ..]) => {
                self.switch(*selector, *default, rest)?
            }
            (op::RETURN, _) => {
                if let Some(block) = self.current {
                    self.frame.returns.push((block, None));
                }
                End::Stop
            }
            (op::RETURN_VALUE, [value, ..]) => {
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

    /// Lowers a switch, whose cases are literals of one or two words, each followed by a label.
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

    /// Inlines a called function, and goes on in a new block, in which the returned value is known by the call's id.
    pub(super) fn call(&mut self, operands: &[u32]) -> Result<(), TooLarge> {
        let [type_id, id, function, arguments @ ..] = operands else {
            return Ok(());
        };
        if self.depth == MAX_CALL_DEPTH {
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

    /// Returns the value of a call, for the block `after` in which the code goes on. Where several returns give
    /// values, phis of that block choose the one that was taken.
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

    /// Adds a phi for each scalar to the current block, and leaves their sources for later.
    pub(super) fn phi(&mut self, operands: &[u32]) {
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

    /// Fills in the sources of the function's phis. Labels that are never reached are left out.
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
}
