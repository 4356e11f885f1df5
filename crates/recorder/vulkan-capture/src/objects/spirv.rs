//! What a SPIR-V module can reach: its descriptors, which of them it only reads, and memory by address (SPIR-V specification 1.6,
//! section 2.3 for the layout and 3.52 for the instructions).

use std::collections::{BTreeMap, HashMap, HashSet};

const MAGIC: u32 = 0x0723_0203;
const PHYSICAL_STORAGE_BUFFER: u32 = 5349;

/// The outside of a module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Set and binding of each descriptor that a variable names.
    pub bindings: BTreeMap<(u32, u32), Access>,
    /// It has pointers to memory that no descriptor names.
    pub uses_addresses: bool,
}

/// What a module may do to a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It cannot write through it.
    pub read_only: bool,
}

#[derive(Default)]
struct Reader {
    sets: HashMap<u32, u32>,
    bindings: HashMap<u32, u32>,
    /// Variables of descriptors, and pointers derived from them: the variable.
    roots: HashMap<u32, u32>,
    written: HashSet<u32>,
    uses_addresses: bool,
}

/// Reads a module. In words that are not SPIR-V, nothing is found.
pub fn interface(words: &[u32]) -> Interface {
    let mut reader = Reader::default();
    if words.first() != Some(&MAGIC) || words.len() < 5 {
        return Interface::default();
    }
    let mut rest = &words[5..];
    while let Some(&head) = rest.first() {
        let length = (head >> 16) as usize;
        if length == 0 || length > rest.len() {
            break;
        }
        reader.read(head & 0xffff, &rest[1..length]);
        rest = &rest[length..];
    }
    reader.finish()
}

impl Reader {
    fn read(&mut self, op: u32, operands: &[u32]) {
        match (op, operands) {
            // OpDecorate id Binding n, DescriptorSet n
            (71, [id, 33, binding]) => {
                self.bindings.insert(*id, *binding);
            }
            (71, [id, 34, set]) => {
                self.sets.insert(*id, *set);
            }
            // OpTypePointer, OpTypeForwardPointer
            (32, [_, class, ..]) | (39, [_, class]) if *class == PHYSICAL_STORAGE_BUFFER => {
                self.uses_addresses = true;
            }
            // OpGroupDecorate
            (74, [group, targets @ ..]) => {
                for target in targets {
                    self.bindings
                        .extend(self.bindings.get(group).map(|binding| (*target, *binding)));
                    self.sets
                        .extend(self.sets.get(group).map(|set| (*target, *set)));
                }
            }
            // OpVariable, OpUntypedVariableKHR: of a descriptor, if it has a binding
            (59 | 4418, [_, id, ..]) => {
                if self.bindings.contains_key(id) {
                    self.roots.insert(*id, *id);
                }
            }
            // OpAccessChain, OpInBoundsAccessChain, OpPtrAccessChain, OpInBoundsPtrAccessChain, OpCopyObject
            (65 | 66 | 67 | 70 | 83, [_, id, base, ..]) => {
                if let Some(root) = self.roots.get(base).copied() {
                    self.roots.insert(*id, root);
                }
            }
            // Debug information, decorations, OpEntryPoint; OpLoad, OpArrayLength, OpAtomicLoad, OpImageTexelPointer is none of
            // these; OpCooperativeMatrixLoadKHR and NV
            (0..=8 | 15 | 71..=73 | 75 | 330 | 332 | 5632 | 5633, _)
            | (61 | 68 | 227 | 4457 | 5359, _) => {}
            // OpCopyMemory, OpCopyMemorySized: only the target is written
            (63 | 64, [target, ..]) => self.write(*target),
            // Whatever else names a pointer may write through it; a number that only looks like one does no harm.
            (_, operands) => operands.iter().for_each(|id| self.write(*id)),
        }
    }

    fn write(&mut self, id: u32) {
        if let Some(root) = self.roots.get(&id) {
            self.written.insert(*root);
        }
    }

    fn finish(self) -> Interface {
        let mut bindings = BTreeMap::new();
        let variables = self.roots.iter().filter(|(id, root)| id == root);
        for (variable, _) in variables {
            let place = (
                self.sets.get(variable).copied().unwrap_or(0),
                self.bindings[variable],
            );
            let read_only = !self.written.contains(variable);
            // Several variables may share a descriptor.
            let access = bindings.entry(place).or_insert(Access { read_only });
            access.read_only &= read_only;
        }
        Interface {
            bindings,
            uses_addresses: self.uses_addresses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(op: u32, operands: &[u32]) -> Vec<u32> {
        [&[(operands.len() as u32 + 1) << 16 | op], operands].concat()
    }

    fn module(code: &[(u32, &[u32])]) -> Vec<u32> {
        let mut words = vec![MAGIC, 0x10500, 0, 100, 0];
        for (variable, binding) in [(10, 0), (11, 1), (12, 2)] {
            words.extend(instruction(71, &[variable, 34, 3]));
            words.extend(instruction(71, &[variable, 33, binding]));
            words.extend(instruction(59, &[9, variable, 12]));
        }
        for (op, operands) in code {
            words.extend(instruction(*op, operands));
        }
        words
    }

    fn read_only(code: &[(u32, &[u32])]) -> Vec<bool> {
        let bindings = interface(&module(code)).bindings;
        assert_eq!(
            bindings.keys().copied().collect::<Vec<_>>(),
            [(3, 0), (3, 1), (3, 2)]
        );
        bindings.values().map(|access| access.read_only).collect()
    }

    #[test]
    fn what_is_loaded_is_read_and_what_is_stored_to_is_written() {
        let code: [(u32, &[u32]); 4] = [
            (65, &[9, 20, 10, 7]),
            (61, &[9, 21, 20]),
            (65, &[9, 22, 11, 7]),
            (62, &[22, 21]),
        ];
        assert_eq!(read_only(&code), [true, false, true]);
    }

    #[test]
    fn a_pointer_in_an_instruction_that_is_not_known_may_be_written() {
        assert_eq!(read_only(&[(6000, &[9, 30, 12])]), [true, true, false]);
        assert_eq!(read_only(&[(57, &[9, 30, 40, 10])]), [false, true, true]);
    }

    #[test]
    fn pointers_to_any_memory_are_found() {
        assert!(interface(&module(&[(32, &[50, PHYSICAL_STORAGE_BUFFER, 6])])).uses_addresses);
        assert!(!interface(&module(&[(32, &[50, 12, 6])])).uses_addresses);
    }

    #[test]
    fn torn_modules_give_what_they_have() {
        assert_eq!(interface(&[]), Interface::default());
        assert_eq!(
            interface(&[MAGIC, 0, 0, 0, 0, 0xffff_000f]),
            Interface::default()
        );
    }
}
