//! What a SPIR-V module says of itself: entry points, workgroup sizes, source names, and which storage bindings its
//! code reads and writes (SPIR-V specification 1.6, section 2.3 for the layout and 3.52 for the instructions).

use gapscope_spool::event::BindingAccess;
use std::collections::HashMap;

const MAGIC: u32 = 0x0723_0203;

/// A module's own description. What it does not say is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Description {
    /// Entry points of compute shaders, each with its workgroup size (zeros: by specialisation, or not said).
    pub entry_points: Vec<(String, [u32; 3])>,
    /// The source file that debug information names.
    pub source_name: String,
    /// Access to buffer bindings by any code of the module.
    pub accesses: Vec<BindingAccess>,
}

#[derive(Default)]
struct Ids {
    strings: HashMap<u32, String>,
    constants: HashMap<u32, u32>,
    entry_ids: Vec<(u32, String)>,
    sizes: HashMap<u32, [u32; 3]>,
    size_ids: HashMap<u32, [u32; 3]>,
    built_in_size: Option<u32>,
    composites: HashMap<u32, Vec<u32>>,
    sets: HashMap<u32, u32>,
    bindings: HashMap<u32, u32>,
    /// Buffer variables, and pointers derived from them.
    roots: HashMap<u32, u32>,
    uses: HashMap<u32, (bool, bool)>,
    source_file: Option<u32>,
}

/// Describes a module. Words that are not SPIR-V give an empty description.
pub fn describe(words: &[u32]) -> Description {
    if words.first() != Some(&MAGIC) || words.len() < 5 {
        return Description::default();
    }
    let mut ids = Ids::default();
    let mut rest = &words[5..];
    while let Some(&head) = rest.first() {
        let length = (head >> 16) as usize;
        if length == 0 || length > rest.len() {
            break;
        }
        ids.read(head & 0xffff, &rest[1..length]);
        rest = &rest[length..];
    }
    ids.finish()
}

impl Ids {
    fn read(&mut self, op: u32, operands: &[u32]) {
        const STORAGE_CLASSES: [u32; 2] = [12, 2]; // StorageBuffer, Uniform
        match (op, operands) {
            // OpString
            (7, [id, text @ ..]) => {
                self.strings.insert(*id, literal(text).0);
            }
            // OpSource language version file
            (3, [_, _, file, ..]) => self.source_file = Some(*file),
            // OpEntryPoint GLCompute function name
            (15, [5, function, name @ ..]) => self.entry_ids.push((*function, literal(name).0)),
            // OpExecutionMode function LocalSize x y z
            (16, [function, 17, x, y, z]) => {
                self.sizes.insert(*function, [*x, *y, *z]);
            }
            // OpExecutionModeId function LocalSizeId x y z
            (331, [function, 38, x, y, z]) => {
                self.size_ids.insert(*function, [*x, *y, *z]);
            }
            // OpConstant, OpSpecConstant (its default)
            (43 | 50, [_, id, value, ..]) => {
                self.constants.insert(*id, *value);
            }
            // OpConstantComposite, OpSpecConstantComposite
            (44 | 51, [_, id, parts @ ..]) => {
                self.composites.insert(*id, parts.to_vec());
            }
            // OpDecorate id BuiltIn WorkgroupSize
            (71, [id, 11, 25]) => self.built_in_size = Some(*id),
            // OpDecorate id Binding n, DescriptorSet n
            (71, [id, 33, binding]) => {
                self.bindings.insert(*id, *binding);
            }
            (71, [id, 34, set]) => {
                self.sets.insert(*id, *set);
            }
            // OpVariable
            (59, [_, id, class, ..]) if STORAGE_CLASSES.contains(class) => {
                self.roots.insert(*id, *id);
            }
            // OpAccessChain, OpInBoundsAccessChain, OpPtrAccessChain, OpInBoundsPtrAccessChain, OpCopyObject
            (65 | 66 | 67 | 70 | 83, [_, id, base, ..]) => self.derive(*id, *base),
            // OpLoad, OpArrayLength
            (61 | 68, [_, _, pointer, ..]) if op == 61 => {
                self.use_of(*pointer, true, false);
            }
            // OpStore
            (62, [pointer, ..]) => self.use_of(*pointer, false, true),
            // OpCopyMemory, OpCopyMemorySized
            (63 | 64, [to, from, ..]) => {
                self.use_of(*to, false, true);
                self.use_of(*from, true, false);
            }
            // OpAtomicLoad; OpAtomicStore
            (227, [_, _, pointer, ..]) => self.use_of(*pointer, true, false),
            (228, [pointer, ..]) => self.use_of(*pointer, false, true),
            // The other atomics
            (229..=242 | 5614 | 5615 | 6035, [_, _, pointer, ..]) => {
                self.use_of(*pointer, true, true)
            }
            // OpCooperativeMatrixLoadKHR / LoadNV; StoreKHR / StoreNV
            (4457 | 5359, [_, _, pointer, ..]) => self.use_of(*pointer, true, false),
            (4458 | 5360, [pointer, ..]) => self.use_of(*pointer, false, true),
            // OpFunctionCall: a pointer handed on may be used in any way
            (57, [_, _, _, arguments @ ..]) => {
                arguments.iter().for_each(|a| self.use_of(*a, true, true))
            }
            // OpSelect, OpPhi on pointers: of each source
            (169, [_, id, _, a, b]) => {
                self.derive(*id, *a);
                self.use_of(*b, true, true);
            }
            _ => {}
        }
    }

    fn derive(&mut self, id: u32, base: u32) {
        if let Some(root) = self.roots.get(&base).copied() {
            self.roots.insert(id, root);
        }
    }

    fn use_of(&mut self, pointer: u32, reads: bool, writes: bool) {
        if let Some(root) = self.roots.get(&pointer) {
            let use_ = self.uses.entry(*root).or_default();
            use_.0 |= reads;
            use_.1 |= writes;
        }
    }

    fn constants_of(&self, ids: &[u32]) -> [u32; 3] {
        let value = |i: usize| {
            ids.get(i)
                .and_then(|id| self.constants.get(id))
                .copied()
                .unwrap_or(0)
        };
        [value(0), value(1), value(2)]
    }

    fn finish(self) -> Description {
        let entry_points = self
            .entry_ids
            .iter()
            .map(|(function, name)| {
                // The built-in constant overrides the execution mode.
                let built_in = self.built_in_size.and_then(|id| self.composites.get(&id));
                let size = match (
                    built_in,
                    self.size_ids.get(function),
                    self.sizes.get(function),
                ) {
                    (Some(parts), _, _) => self.constants_of(parts),
                    (None, Some(ids), _) => self.constants_of(ids),
                    (None, None, Some(size)) => *size,
                    (None, None, None) => [0; 3],
                };
                (name.clone(), size)
            })
            .collect();
        let mut accesses: Vec<BindingAccess> = self
            .bindings
            .iter()
            .filter(|(id, _)| self.roots.get(*id) == Some(*id))
            .map(|(id, binding)| {
                let (reads, writes) = self.uses.get(id).copied().unwrap_or_default();
                BindingAccess {
                    set: self.sets.get(id).copied().unwrap_or(0),
                    binding: *binding,
                    reads,
                    writes,
                }
            })
            .collect();
        accesses.sort_by_key(|a| (a.set, a.binding));
        let source_name = self
            .source_file
            .and_then(|id| self.strings.get(&id))
            .cloned()
            .unwrap_or_default();
        Description {
            entry_points,
            source_name,
            accesses,
        }
    }
}

/// A literal string, and the words behind it.
fn literal(words: &[u32]) -> (String, &[u32]) {
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .take_while(|b| *b != 0)
        .collect();
    let used = bytes.len() / 4 + 1;
    (
        String::from_utf8_lossy(&bytes).into_owned(),
        words.get(used..).unwrap_or(&[]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(op: u32, operands: &[u32]) -> Vec<u32> {
        let mut words = vec![(operands.len() as u32 + 1) << 16 | op];
        words.extend(operands);
        words
    }

    fn text(value: &str) -> Vec<u32> {
        let mut bytes = value.as_bytes().to_vec();
        bytes.resize(bytes.len() / 4 * 4 + 4, 0);
        bytes
            .chunks(4)
            .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect()
    }

    #[test]
    fn reads_entry_point_size_and_what_is_read_and_written() {
        let mut words = vec![MAGIC, 0x10500, 0, 100, 0];
        let entry: Vec<u32> = [vec![5, 1], text("sin")].concat();
        words.extend(instruction(15, &entry));
        words.extend(instruction(16, &[1, 17, 64, 2, 1]));
        for (variable, binding) in [(10, 0), (11, 1), (12, 2)] {
            words.extend(instruction(71, &[variable, 34, 3]));
            words.extend(instruction(71, &[variable, 33, binding]));
            words.extend(instruction(59, &[9, variable, 12]));
        }
        words.extend(instruction(65, &[9, 20, 10, 7]));
        words.extend(instruction(61, &[9, 21, 20]));
        words.extend(instruction(65, &[9, 22, 11, 7]));
        words.extend(instruction(62, &[22, 21]));
        let described = describe(&words);
        assert_eq!(described.entry_points, [("sin".to_owned(), [64, 2, 1])]);
        let access = |binding, reads, writes| BindingAccess {
            set: 3,
            binding,
            reads,
            writes,
        };
        assert_eq!(
            described.accesses,
            [
                access(0, true, false),
                access(1, false, true),
                access(2, false, false)
            ]
        );
    }

    #[test]
    fn garbage_and_torn_modules_give_what_they_have() {
        assert_eq!(describe(&[]), Description::default());
        assert_eq!(describe(&[1, 2, 3, 4, 5, 6]), Description::default());
        assert_eq!(
            describe(&[MAGIC, 0, 0, 0, 0, 0xffff_000f]),
            Description::default()
        );
    }
}
