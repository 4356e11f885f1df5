//! Gives places to variables outside of functions: finds the buffer, the push constants or the built-in input that
//! each variable stands for, as the [`Base`] of a pointer.

use super::Lowering;
use super::Typed;
use super::values::{Base, Pointer, Value};
use crate::kernel::program::{Input, Operand};
use crate::kernel::reason::Cause;
use gapscope_spirv::Type;
use gapscope_spirv::numbers::storage_class;

impl Lowering<'_> {
    /// Gives each variable outside of functions its place.
    pub(super) fn variables(&mut self, local_size: [u32; 3]) {
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
                storage_class::INPUT => {
                    let built_in = decorations.and_then(|d| d.built_in);
                    self.input(built_in, *pointee, local_size)
                }
                storage_class::PRIVATE => self.local(*pointee, variable.initializer),
                storage_class::WORKGROUP => Base::Opaque(Cause::SharedMemory),
                storage_class::PUSH_CONSTANT => {
                    let content = self.environment.push_constants.into();
                    self.program.contents.push(content);
                    Base::Content(self.program.contents.len() - 1)
                }
                storage_class::STORAGE_BUFFER | storage_class::UNIFORM => {
                    let place = decorations.and_then(|d| Some((d.set.unwrap_or(0), d.binding?)));
                    place.map_or(Base::Lost(Cause::NoDescriptor), |(set, binding)| {
                        Base::Descriptors { set, binding }
                    })
                }
                0 => Base::Lost(Cause::Image),
                _ => Base::Lost(Cause::Pointer),
            };
            let typed = Typed {
                type_id: variable.type_id,
                value: Value::Pointer(self.settled(Pointer::new(base, *pointee))),
            };
            self.globals.insert(id, typed);
        }
    }

    /// Returns the place with the values of a built-in input, by SPIR-V's number of it: 26 is the workgroup's number.
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

    /// Returns the registers of inputs, each of which is reserved once.
    fn inputs<const N: usize>(&mut self, inputs: [Input; N]) -> Vec<Operand> {
        let registers = inputs.map(|input| {
            let mut known = self.program.inputs.iter();
            let known = known.find(|(other, _)| *other == input);
            known.map(|(_, register)| *register).unwrap_or_else(|| {
                let register = self.new_registers(1);
                self.program.inputs.push((input, register));
                register
            })
        });
        registers.map(Operand::Register).to_vec()
    }
}
