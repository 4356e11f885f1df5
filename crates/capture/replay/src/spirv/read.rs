//! The walk over a module's instructions.

use std::collections::{BTreeSet, HashSet};

use super::{Map, class};

const MAGIC: u32 = 0x0723_0203;
/// SPIR-V's universal limits.
const MOST_IDS: u32 = 0x3f_ffff;

/// What the instructions say.
#[derive(Debug, Default)]
pub struct Module {
    pub version: u32,
    pub capabilities: BTreeSet<u32>,
    pub extensions: BTreeSet<String>,
    entries: Vec<Entry>,
    pub variables: Map<Variable>,
    /// Set and binding of a variable.
    pub places: Map<(Option<u32>, Option<u32>)>,
    /// Types, by opcode and operands after the result.
    pub types: Map<(u32, Vec<u32>)>,
    /// Constants: opcode, type and operands.
    pub constants: Map<(u32, u32, Vec<u32>)>,
    /// `SpecId`
    pub spec_ids: Map<u32>,
    pub array_strides: Map<u32>,
    /// Byte offsets of a structure's members.
    pub member_offsets: Map<Map<u32>>,
    pub blocks: HashSet<u32>,
    pub built_in_size: Option<u32>,
    functions: Map<Function>,
    pub follows_addresses: bool,
    pub knows_subgroups: bool,
}

/// An entry point for compute.
#[derive(Debug, Default)]
pub struct Entry {
    name: String,
    function: u32,
    interface: Vec<u32>,
    pub size: Option<[u32; 3]>,
    pub size_ids: Option<[u32; 3]>,
    pub float_controls: BTreeSet<(u32, u32)>,
    pub modes: BTreeSet<u32>,
}

/// `OpVariable` outside of functions.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    pub id: u32,
    pub pointer: u32,
    pub class: u32,
    pub is_initialised: bool,
}

#[derive(Debug, Default)]
struct Function {
    calls: Vec<u32>,
    names: HashSet<u32>,
}

impl Module {
    /// Reads all instructions.
    ///
    /// # Errors
    /// They are not SPIR-V.
    pub fn read(words: &[u32]) -> Result<Module, String> {
        let [magic, version, _, bound, schema, rest @ ..] = words else {
            return Err("it is shorter than a header".to_owned());
        };
        if *magic != MAGIC {
            return Err("it does not begin as SPIR-V does".to_owned());
        }
        let (major, minor) = (version >> 16, version >> 8 & 0xff);
        if major != 1 || minor > 6 {
            return Err(format!("it is SPIR-V {major}.{minor}, and not 1.0 to 1.6"));
        }
        if *bound == 0 || *bound > MOST_IDS || *schema != 0 {
            return Err("its header is not right".to_owned());
        }
        let mut module = Module {
            version: minor,
            ..Module::default()
        };
        let mut function = None;
        let mut at = 5;
        let mut rest = rest;
        while let Some(head) = rest.first() {
            let (length, op) = ((head >> 16) as usize, head & 0xffff);
            let operands = rest
                .get(1..length)
                .filter(|_| length > 0)
                .ok_or_else(|| format!("the instruction at word {at} is cut off"))?;
            module
                .instruction(op, operands, *bound, &mut function)
                .ok_or_else(|| format!("the instruction at word {at} ({op}) is not right"))?;
            at += length;
            rest = &rest[length..];
        }
        match function {
            None => Ok(module),
            Some(_) => Err("its last function has no end".to_owned()),
        }
    }

    /// The entry point of this name.
    ///
    /// # Errors
    /// There is none for compute.
    pub fn entry(&self, name: &str) -> Result<&Entry, String> {
        let found = self.entries.iter().find(|entry| entry.name == name);
        let found = found.ok_or_else(|| format!("it has no entry point `{name}` for compute"))?;
        match self.functions.contains_key(&found.function) {
            true => Ok(found),
            false => Err(format!("the function of entry point `{name}` is missing")),
        }
    }

    /// The variables that an entry point, or what it calls, names.
    pub fn used_by(&self, entry: &Entry) -> BTreeSet<u32> {
        let mut used = BTreeSet::new();
        let mut seen = HashSet::from([entry.function]);
        let mut open = vec![entry.function];
        while let Some(id) = open.pop() {
            let Some(function) = self.functions.get(&id) else {
                continue;
            };
            used.extend(
                function
                    .names
                    .iter()
                    .filter(|id| self.variables.contains_key(id)),
            );
            open.extend(function.calls.iter().filter(|id| seen.insert(**id)));
        }
        // Since 1.4 the interface lists all that is used.
        if self.version >= 4 {
            used.retain(|id| entry.interface.contains(id));
        }
        used
    }

    /// Takes one instruction in; none: its operands are not right.
    fn instruction(
        &mut self,
        op: u32,
        operands: &[u32],
        bound: u32,
        function: &mut Option<u32>,
    ) -> Option<()> {
        let known = |id: &u32| (1..bound).contains(id).then_some(*id);
        match (op, operands) {
            // OpCapability
            (17, [capability]) => {
                self.capabilities.insert(*capability);
            }
            // OpExtension
            (10, text) => {
                self.extensions.insert(literal(text)?.0);
            }
            // OpEntryPoint GLCompute function name interface
            (15, [5, id, text @ ..]) => {
                let (name, interface) = literal(text)?;
                self.entries.push(Entry {
                    name,
                    function: known(id)?,
                    interface: interface.to_vec(),
                    ..Entry::default()
                });
            }
            // OpExecutionMode function mode, OpExecutionModeId
            (16 | 331, [id, mode, values @ ..]) => {
                for entry in self
                    .entries
                    .iter_mut()
                    .filter(|entry| entry.function == *id)
                {
                    entry.mode(*mode, values);
                }
            }
            // OpDecorate
            (71, [id, decoration, values @ ..]) => self.decorate(known(id)?, *decoration, values),
            // OpMemberDecorate id member BuiltIn, Offset
            (72, [id, member, 35, offset]) => {
                let offsets = self.member_offsets.entry(known(id)?).or_default();
                offsets.insert(*member, *offset);
            }
            (72, [_, _, 11, built_in]) => self.knows_subgroups |= is_of_subgroups(*built_in),
            // OpType…
            (19..=39 | 4456 | 5288 | 5358, [id, parts @ ..]) => {
                self.types.insert(known(id)?, (op, parts.to_vec()));
            }
            // OpConstant…, OpSpecConstant…, OpUndef
            (1 | 41..=46 | 48..=52, [result_type, id, values @ ..]) => {
                let constant = (op, known(result_type)?, values.to_vec());
                if function.is_none() {
                    self.constants.insert(known(id)?, constant);
                }
            }
            // OpVariable: inside of functions they are of no matter.
            (59, [_, _, _, ..]) if function.is_some() => {}
            (59, [pointer, id, class, rest @ ..]) => {
                let variable = Variable {
                    id: known(id)?,
                    pointer: known(pointer)?,
                    class: *class,
                    is_initialised: !rest.is_empty(),
                };
                self.variables.insert(variable.id, variable);
            }
            // OpFunction
            (54, [_, id, _, _]) => {
                if function.is_some() {
                    return None;
                }
                *function = Some(known(id)?);
                self.functions.insert(*id, Function::default());
            }
            // OpFunctionEnd
            (56, []) => {
                function.take()?;
            }
            // These, with other operands, are not right.
            (17 | 54 | 56 | 59 | 71, _) => return None,
            _ => {}
        }
        if let Some(function) = *function {
            self.inside(op, operands, function);
        }
        Some(())
    }

    /// An instruction of a function.
    fn inside(&mut self, op: u32, operands: &[u32], function: u32) {
        // ConvertUToPtr, and access through a pointer that is one.
        let through = |this: &Module, pointer_type: &u32| {
            let of = this.types.get(pointer_type);
            matches!(of, Some((32, parts)) if parts.first() == Some(&class::PHYSICAL_STORAGE_BUFFER))
        };
        if op == 120
            || (matches!(op, 65 | 66 | 67 | 70 | 124)
                && operands.first().is_some_and(|t| through(self, t)))
        {
            self.follows_addresses = true;
        }
        let Some(function) = self.functions.get_mut(&function) else {
            return;
        };
        let named: &[u32] = match (op, operands) {
            // OpFunctionCall
            (57, [_, _, callee, arguments @ ..]) => {
                function.calls.push(*callee);
                arguments
            }
            // OpLoad, OpAccessChain and its kin, OpArrayLength, OpCopyObject, OpImageTexelPointer, atomics
            (60 | 61 | 65..=68 | 70 | 83 | 227 | 229..=242, [_, _, pointer, ..]) => {
                std::slice::from_ref(pointer)
            }
            // OpStore, OpAtomicStore
            (62 | 228, [pointer, ..]) => std::slice::from_ref(pointer),
            // OpCopyMemory, OpCopyMemorySized
            (63 | 64, [to, from, ..]) => {
                function.names.insert(*to);
                std::slice::from_ref(from)
            }
            // OpSelect, OpPhi
            (169 | 245, [_, _, sources @ ..]) => sources,
            // Extensions: any operand may be a variable.
            (400.., operands) => operands,
            _ => &[],
        };
        function.names.extend(named);
    }

    fn decorate(&mut self, id: u32, decoration: u32, values: &[u32]) {
        match (decoration, values) {
            (1, [spec_id]) => {
                self.spec_ids.insert(id, *spec_id);
            }
            (2 | 3, []) => {
                self.blocks.insert(id);
            }
            (6, [stride]) => {
                self.array_strides.insert(id, *stride);
            }
            // BuiltIn WorkgroupSize
            (11, [25]) => self.built_in_size = Some(id),
            (11, [built_in]) => self.knows_subgroups |= is_of_subgroups(*built_in),
            (33, [binding]) => self.places.entry(id).or_default().1 = Some(*binding),
            (34, [set]) => self.places.entry(id).or_default().0 = Some(*set),
            _ => {}
        }
    }
}

impl Entry {
    fn mode(&mut self, mode: u32, values: &[u32]) {
        self.modes.insert(mode);
        match (mode, values) {
            (17, [x, y, z]) => self.size = Some([*x, *y, *z]),
            (38, [x, y, z]) => self.size_ids = Some([*x, *y, *z]),
            // DenormPreserve and the others; their capabilities are numbered alike.
            (4459..=4463, [width]) => {
                self.float_controls.insert((mode + 5, *width));
            }
            _ => {}
        }
    }
}

/// SubgroupSize, NumSubgroups, SubgroupId, SubgroupLocalInvocationId and the masks.
fn is_of_subgroups(built_in: u32) -> bool {
    matches!(built_in, 36 | 38 | 40 | 41 | 4416..=4420)
}

/// A literal string, and the words behind it.
fn literal(words: &[u32]) -> Option<(String, &[u32])> {
    let mut bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let length = bytes.position(|byte| byte == 0)?;
    let text: Vec<u8> = words
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .take(length)
        .collect();
    let text = String::from_utf8(text).ok()?;
    Some((text, words.get(length / 4 + 1..)?))
}
