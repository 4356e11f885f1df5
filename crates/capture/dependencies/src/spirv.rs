//! A tolerant reader of SPIR-V: what it does not know it skips, and what is wrong ends the reading there.

mod layout;

use std::collections::HashMap;
use std::ops::Range;

pub(crate) use layout::{MatrixLayout, Piece};

const MAGIC: u32 = 0x0723_0203;
const HEADER_WORDS: usize = 5;
/// No kernel has more: the greatest of llama.cpp has some 50,000.
const INSTRUCTIONS_AT_MOST: usize = 2_000_000;

/// Storage classes (SPIR-V specification 1.6).
pub(crate) mod class {
    pub const UNIFORM: u32 = 2;
    pub const INPUT: u32 = 1;
    pub const WORKGROUP: u32 = 4;
    pub const PRIVATE: u32 = 6;
    pub const PUSH_CONSTANT: u32 = 9;
    pub const STORAGE_BUFFER: u32 = 12;
}

/// A type, as far as addresses depend on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Bool,
    Int {
        bits: u32,
        signed: bool,
    },
    Float {
        bits: u32,
    },
    Vector {
        component: u32,
        count: u32,
    },
    Matrix {
        column: u32,
        count: u32,
    },
    Array {
        element: u32,
        length: u32,
    },
    RuntimeArray {
        element: u32,
    },
    Struct(Vec<u32>),
    Pointer {
        class: u32,
        pointee: u32,
    },
    CooperativeMatrix {
        component: u32,
        rows: u32,
        columns: u32,
    },
}

/// An instruction: its number and where its operands are.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub op: u16,
    operands: Range<usize>,
}

/// A variable outside of functions.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub type_id: u32,
    pub class: u32,
    pub initializer: Option<u32>,
}

/// What decorations say of an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decorations {
    pub set: Option<u32>,
    pub binding: Option<u32>,
    pub built_in: Option<u32>,
    pub spec_id: Option<u32>,
    pub array_stride: Option<u32>,
}

/// What decorations say of a member of a struct.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemberDecorations {
    pub offset: Option<u32>,
    pub matrix_stride: Option<u32>,
    pub row_major: bool,
    pub built_in: Option<u32>,
}

/// A function: its parameters with their types, and the instructions of its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Function {
    pub parameters: Vec<(u32, u32)>,
    pub body: Vec<Instruction>,
}

/// The size of workgroups, as an entry point says it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LocalSize {
    Literal([u32; 3]),
    Ids([u32; 3]),
}

/// A module, in parts.
#[derive(Debug, Default)]
pub(crate) struct Module {
    words: Vec<u32>,
    pub types: HashMap<u32, Type>,
    /// Constants, specialised or not, in their order.
    pub constants: Vec<Instruction>,
    pub decorations: HashMap<u32, Decorations>,
    pub members: HashMap<(u32, u32), MemberDecorations>,
    pub variables: HashMap<u32, Variable>,
    pub functions: HashMap<u32, Function>,
    /// Entry points of compute shaders: name and function.
    entries: Vec<(String, u32)>,
    sizes: HashMap<u32, LocalSize>,
    /// The import of `GLSL.std.450`.
    pub glsl: Option<u32>,
}

impl Module {
    /// Reads bytes as a capture has them. None: they are not a module.
    pub fn read(bytes: &[u8]) -> Option<Module> {
        let (words, []) = bytes.as_chunks::<4>() else {
            return None;
        };
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        if words.len() < HEADER_WORDS || words[0] != MAGIC {
            return None;
        }
        let mut module = Module {
            words,
            ..Module::default()
        };
        let mut function: Option<(u32, Function)> = None;
        let mut at = HEADER_WORDS;
        for _ in 0..INSTRUCTIONS_AT_MOST {
            let Some(&head) = module.words.get(at) else {
                return Some(module);
            };
            let length = (head >> 16) as usize;
            let end = at.checked_add(length)?;
            if length == 0 || end > module.words.len() {
                return None;
            }
            let instruction = Instruction {
                op: head as u16,
                operands: at + 1..end,
            };
            module.take(instruction, &mut function);
            at = end;
        }
        None
    }

    /// The version, as a module's header has it: 0x10600 for 1.6.
    pub fn version(&self) -> u32 {
        self.words[1]
    }

    /// The operands of an instruction, its result and type among them.
    pub fn operands(&self, instruction: &Instruction) -> &[u32] {
        &self.words[instruction.operands.clone()]
    }

    /// The function of an entry point, and the size of its workgroups.
    pub fn entry(&self, name: &str) -> Option<(u32, Option<LocalSize>)> {
        let (_, function) = self.entries.iter().find(|(entry, _)| entry == name)?;
        Some((*function, self.sizes.get(function).copied()))
    }

    /// The constant that is decorated as the size of workgroups.
    pub fn size_constant(&self) -> Option<u32> {
        const WORKGROUP_SIZE: u32 = 25;
        let mut found = self.decorations.iter();
        found.find_map(|(id, d)| (d.built_in == Some(WORKGROUP_SIZE)).then_some(*id))
    }

    fn take(&mut self, instruction: Instruction, function: &mut Option<(u32, Function)>) {
        let op = instruction.op;
        let operands: Vec<u32> = match op {
            // Names, lines and debug text.
            2..=8 | 317 | 330 => return,
            _ if function.is_some() && !matches!(op, 55 | 56) => Vec::new(),
            _ => self.operands(&instruction).to_vec(),
        };
        if let Some((id, body)) = function {
            match (op, operands.as_slice()) {
                (55, [type_id, id]) => body.parameters.push((*id, *type_id)),
                (56, _) => {
                    let (id, body) = (*id, std::mem::take(body));
                    self.functions.insert(id, body);
                    *function = None;
                }
                _ => body.body.push(instruction),
            }
            return;
        }
        match (op, operands.as_slice()) {
            // OpExtInstImport
            (11, [id, name @ ..]) if literal(name) == "GLSL.std.450" => self.glsl = Some(*id),
            // OpEntryPoint GLCompute
            (15, [5, function, name @ ..]) => self.entries.push((literal(name), *function)),
            // OpExecutionMode LocalSize, OpExecutionModeId LocalSizeId
            (16, [function, 17, x, y, z]) => {
                let size = LocalSize::Literal([*x, *y, *z]);
                self.sizes.insert(*function, size);
            }
            (331, [function, 38, x, y, z]) => {
                self.sizes.insert(*function, LocalSize::Ids([*x, *y, *z]));
            }
            (71, [id, decoration, rest @ ..]) => self.decorate(*id, *decoration, rest.first()),
            (72, [id, member, decoration, rest @ ..]) => {
                self.decorate_member((*id, *member), *decoration, rest.first());
            }
            (54, [_, id, ..]) => *function = Some((*id, Function::default())),
            (59, [type_id, id, class, rest @ ..]) => {
                let variable = Variable {
                    type_id: *type_id,
                    class: *class,
                    initializer: rest.first().copied(),
                };
                self.variables.insert(*id, variable);
            }
            (20..=39 | 4456, [id, rest @ ..]) => self.take_type(op, *id, rest),
            (1 | 41..=46 | 48..=52, _) => self.constants.push(instruction),
            _ => {}
        }
    }

    fn take_type(&mut self, op: u16, id: u32, operands: &[u32]) {
        let known = |id: &u32| self.types.contains_key(id);
        let found = match (op, operands) {
            (20, _) => Type::Bool,
            (21, [bits @ (8 | 16 | 32 | 64), signed]) => Type::Int {
                bits: *bits,
                signed: *signed == 1,
            },
            (22, [bits @ (8 | 16 | 32 | 64), ..]) => Type::Float { bits: *bits },
            (23, [component, count @ 2..=16]) if known(component) => Type::Vector {
                component: *component,
                count: *count,
            },
            (24, [column, count @ 2..=4]) if known(column) => Type::Matrix {
                column: *column,
                count: *count,
            },
            (28, [element, length]) if known(element) => Type::Array {
                element: *element,
                length: *length,
            },
            (29, [element]) if known(element) => Type::RuntimeArray { element: *element },
            // A member that is not known yet is a pointer forward, and has no place in a buffer.
            (30, members) => Type::Struct(members.to_vec()),
            (32, [class, pointee]) => Type::Pointer {
                class: *class,
                pointee: *pointee,
            },
            // OpTypeCooperativeMatrixKHR
            (4456, [component, _, rows, columns, _]) if known(component) => {
                Type::CooperativeMatrix {
                    component: *component,
                    rows: *rows,
                    columns: *columns,
                }
            }
            _ => return,
        };
        // The first definition counts: types that are defined twice cannot contain themselves.
        self.types.entry(id).or_insert(found);
    }

    fn decorate(&mut self, id: u32, decoration: u32, value: Option<&u32>) {
        let of = self.decorations.entry(id).or_default();
        let value = value.copied();
        match decoration {
            1 => of.spec_id = value,
            6 => of.array_stride = value,
            11 => of.built_in = value,
            33 => of.binding = value,
            34 => of.set = value,
            _ => {}
        }
    }

    fn decorate_member(&mut self, member: (u32, u32), decoration: u32, value: Option<&u32>) {
        let of = self.members.entry(member).or_default();
        let value = value.copied();
        match decoration {
            4 => of.row_major = true,
            7 => of.matrix_stride = value,
            11 => of.built_in = value,
            35 => of.offset = value,
            _ => {}
        }
    }
}

/// A literal string.
fn literal(words: &[u32]) -> String {
    let bytes: Vec<u8> = (words.iter().flat_map(|word| word.to_le_bytes()))
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_none() {
        assert!(Module::read(&[]).is_none());
        assert!(Module::read(&[1, 2, 3]).is_none());
        let mut bytes: Vec<u8> = [MAGIC, 0x10300, 0, 9, 0].map(u32::to_le_bytes).concat();
        assert!(Module::read(&bytes).is_some());
        // An instruction that is longer than the module.
        bytes.extend(0xffff_0011_u32.to_le_bytes());
        assert!(Module::read(&bytes).is_none());
    }

    #[test]
    fn unknown_instructions_are_skipped() {
        let words = [
            MAGIC,
            0x10300,
            0,
            9,
            0,
            0x0002_1fff,
            77,
            0x0004_0015,
            3,
            32,
            1,
        ];
        let bytes = words.map(u32::to_le_bytes).concat();
        let module = Module::read(&bytes).unwrap();
        let int = Type::Int {
            bits: 32,
            signed: true,
        };
        assert_eq!(module.types[&3], int);
    }
}
