//! Lowers pointers, and reads and writes through them: SPIR-V's access chains go in, offsets in buffers and accesses
//! come out.
//!
//! A pointer has a base, which is a buffer, known bytes, a variable in registers or memory that is not followed, and
//! an offset in it (`values.rs`). An escape is an access at a place that is not known.

use super::values::{Base, Pointer, Value};
use super::{Lowering, Typed};
use crate::kernel::code::{Code, word};
use crate::kernel::program::{Access, Direction, Escape, Op, Operand};
use crate::kernel::reason::Cause;
use gapscope_spirv::{MatrixLayout, Piece, Type};

/// Fills the places of operands that an operation does not take.
const NONE: Operand = Operand::Known(0);
/// The most pieces of a value that one instruction reads or writes; beyond them the access is not followed.
const MAX_PIECES: usize = 256;

impl Lowering<'_> {
    /// Allocates a variable of the invocation in registers, with its initial value if it has one.
    pub(super) fn local(&mut self, type_id: u32, initializer: Option<u32>) -> Base {
        let Some(count) = self.scalars(type_id) else {
            return Base::Opaque(Cause::LargeVariable);
        };
        let first = self.new_registers(count);
        self.program.variables.push((first, count));
        if let Some(id) = initializer {
            let scalars = self.typed(id).value.scalars(count);
            self.put(first, &scalars);
        }
        Base::Local { first, count }
    }

    /// Copies scalars into consecutive registers.
    fn put(&mut self, first: u32, scalars: &[Operand]) {
        for (result, scalar) in (first..).zip(scalars) {
            self.emit(Op::copy(result, *scalar));
        }
    }

    /// Returns the value with an id as a pointer, which is lost where it is none.
    pub(super) fn pointer(&self, id: u32) -> Pointer {
        match self.typed(id).value {
            Value::Pointer(pointer) => pointer,
            Value::Unknown(cause) => Pointer::lost(cause),
            Value::Scalars(_) => Pointer::lost(Cause::Pointer),
        }
    }

    /// Resolves a pointer to a descriptor that is not in an array to its buffer.
    pub(super) fn settled(&self, pointer: Pointer) -> Pointer {
        let is_array = matches!(
            self.module.types.get(&pointer.type_id),
            Some(Type::Array { .. } | Type::RuntimeArray { .. })
        );
        match pointer.base {
            Base::Descriptors { set, binding } if !is_array => {
                self.chosen(pointer, set, binding, 0)
            }
            _ => pointer,
        }
    }

    /// Returns a pointer with the buffer of an element of a descriptor array as its base, or lost where none is
    /// bound.
    fn chosen(&self, pointer: Pointer, set: u32, binding: u32, element: u64) -> Pointer {
        let buffers = self.environment.buffers.iter();
        let found = buffers.enumerate().find(|(_, buffer)| {
            (buffer.set, buffer.binding) == (set, binding) && u64::from(buffer.element) == element
        });
        let base = match found {
            Some((index, _)) => Base::Buffer(index),
            None => Base::Lost(Cause::NoDescriptor),
        };
        Pointer { base, ..pointer }
    }

    /// Returns the pointer that an access chain (`OpAccessChain` and its variants) makes from a pointer and the ids
    /// of indices.
    pub(super) fn chain(&mut self, pointer: Pointer, indices: &[u32]) -> Pointer {
        let mut pointer = pointer;
        for id in indices {
            pointer = self.step(pointer, *id);
        }
        pointer
    }

    /// Returns the pointer to a part of what a pointer points to, which the value with an id chooses: a member, an
    /// element or a descriptor.
    fn step(&mut self, pointer: Pointer, id: u32) -> Pointer {
        let index = self.scalar(id);
        let module = self.module;
        let in_bytes = matches!(pointer.base, Base::Buffer(_) | Base::Content(_));
        let unknown = |pointer: Pointer| Pointer {
            offset: Operand::Unknown(Cause::Layout),
            type_id: 0,
            ..pointer
        };
        let of = pointer.type_id;
        match (&pointer.base, module.types.get(&of)) {
            (Base::Opaque(_) | Base::Lost(_), _) => pointer,
            (Base::Descriptors { set, binding }, Some(Type::Array { element, .. }))
            | (Base::Descriptors { set, binding }, Some(Type::RuntimeArray { element })) => {
                let (set, binding) = (*set, *binding);
                let pointer = Pointer {
                    type_id: *element,
                    ..pointer
                };
                match index {
                    Operand::Known(index) => self.chosen(pointer, set, binding, index),
                    _ => Pointer::lost(Cause::Pointer),
                }
            }
            (_, Some(Type::Struct(members))) => {
                let Operand::Known(member) = index else {
                    return unknown(pointer);
                };
                let Some(type_id) = members.get(member as usize).copied() else {
                    return unknown(pointer);
                };
                let decorations = module.members.get(&(of, member as u32));
                let before = match in_bytes {
                    true => decorations.and_then(|d| d.offset).map(u64::from),
                    false => (members[..member as usize].iter())
                        .map(|id| self.scalars(*id).map(u64::from))
                        .sum(),
                };
                let Some(before) = before else {
                    return unknown(pointer);
                };
                let matrix = decorations.and_then(|d| {
                    Some(MatrixLayout {
                        stride: d.matrix_stride?,
                        row_major: d.row_major,
                    })
                });
                Pointer {
                    offset: self.plus(pointer.offset, before),
                    type_id,
                    matrix,
                    ..pointer
                }
            }
            (_, Some(found)) => {
                let part = match found {
                    Type::Array { element, .. } | Type::RuntimeArray { element } => *element,
                    Type::Vector { component, .. } => *component,
                    Type::Matrix { column, .. } => *column,
                    _ => return unknown(pointer),
                };
                let stride = match in_bytes {
                    true => self.stride(&pointer, found),
                    false => self.scalars(part),
                };
                let Some(stride) = stride else {
                    return unknown(pointer);
                };
                // Only the columns of a row-major matrix keep its layout.
                let matrix = match found {
                    Type::Vector { .. } => None,
                    _ => pointer.matrix,
                };
                Pointer {
                    offset: self.indexed(pointer.offset, id, index, stride),
                    type_id: part,
                    matrix,
                    ..pointer
                }
            }
            (_, None) => unknown(pointer),
        }
    }

    /// Returns the number of bytes from one element of the pointee to the next.
    fn stride(&self, pointer: &Pointer, of: &Type) -> Option<u32> {
        let module = self.module;
        match of {
            Type::Array { .. } | Type::RuntimeArray { .. } => {
                module.decorations.get(&pointer.type_id)?.array_stride
            }
            Type::Vector { component, .. } => match pointer.matrix {
                Some(layout) if layout.row_major => Some(layout.stride),
                _ => module.scalar_bytes(*component),
            },
            Type::Matrix { column, .. } => match pointer.matrix? {
                layout if layout.row_major => match module.types.get(column)? {
                    Type::Vector { component, .. } => module.scalar_bytes(*component),
                    _ => None,
                },
                layout => Some(layout.stride),
            },
            _ => None,
        }
    }

    /// Adds a known number to an offset.
    fn plus(&mut self, offset: Operand, bytes: u64) -> Operand {
        self.compute(Code::Add, 64, [offset, Operand::Known(bytes), NONE])
    }

    /// Adds `index` times `stride` to an offset. The type of the value with the id tells the index's bits and sign.
    pub(super) fn indexed(
        &mut self,
        offset: Operand,
        id: u32,
        index: Operand,
        stride: u32,
    ) -> Operand {
        let type_id = self.typed(id).type_id;
        let bits = self.module.bits(type_id).unwrap_or(64);
        let code = match self.module.is_signed(type_id) {
            true => Code::SIndex,
            false => Code::UIndex,
        };
        self.compute(code, bits, [offset, index, Operand::Known(stride.into())])
    }

    /// Returns the pointer to another element of the array into which a pointer points, for the first index of
    /// `OpPtrAccessChain`.
    pub(super) fn element(&mut self, id: u32, element: u32) -> Pointer {
        let typed = self.typed(id);
        let pointer = self.pointer(id);
        let index = self.scalar(element);
        if index == Operand::Known(0) || matches!(pointer.base, Base::Opaque(_) | Base::Lost(_)) {
            return pointer;
        }
        let stride = self.module.decorations.get(&typed.type_id);
        let stride = stride.and_then(|d| d.array_stride);
        let offset = match (&pointer.base, stride) {
            (Base::Buffer(_) | Base::Content(_), Some(stride)) => {
                self.indexed(pointer.offset, element, index, stride)
            }
            _ => Operand::Unknown(Cause::Pointer),
        };
        Pointer { offset, ..pointer }
    }

    /// Lowers a read of a value of the type `type_id`, and returns the value.
    pub(super) fn load(&mut self, pointer: &Pointer, type_id: u32) -> Value {
        match &pointer.base {
            Base::Local { first, count } => self.load_local(*first, *count, pointer, type_id),
            Base::Fixed(scalars) => {
                let Operand::Known(at) = pointer.offset else {
                    return Value::Unknown(Cause::Pointer);
                };
                let count = self.scalars(type_id).unwrap_or(0) as usize;
                let found = scalars.get(at as usize..(at as usize).saturating_add(count));
                found.map_or(Value::Unknown(Cause::Undefined), |found| {
                    Value::Scalars(found.into())
                })
            }
            Base::Content(content) => {
                let pieces = self.pieces(pointer);
                let Some(pieces) = pieces else {
                    return Value::Unknown(Cause::Layout);
                };
                self.look(*content, pointer.offset, &pieces)
            }
            Base::Buffer(buffer) => {
                let pieces = self.access(*buffer, pointer, Direction::Read);
                let known = self.environment.buffers[*buffer].content.clone();
                match (pieces, known) {
                    (Some(pieces), Some(known)) => {
                        let contents = &mut self.program.contents;
                        let same =
                            |other: &std::sync::Arc<[u8]>| std::sync::Arc::ptr_eq(other, &known);
                        let index = contents.iter().position(same).unwrap_or_else(|| {
                            contents.push(known.clone());
                            contents.len() - 1
                        });
                        self.look(index, pointer.offset, &pieces)
                    }
                    _ => Value::Unknown(Cause::LoadedData),
                }
            }
            Base::Opaque(cause) => Value::Unknown(*cause),
            Base::Lost(cause) => {
                self.escape(None, true, false, *cause);
                Value::Unknown(Cause::LoadedData)
            }
            Base::Descriptors { .. } => Value::Unknown(Cause::NoDescriptor),
        }
    }

    /// Lowers a read of a variable of `of` registers from `first` on, and returns the value in new registers.
    fn load_local(&mut self, first: u32, of: u32, pointer: &Pointer, type_id: u32) -> Value {
        let Some(count) = self.scalars(type_id) else {
            return Value::Unknown(Cause::LargeVariable);
        };
        if self.current.is_none() {
            return Value::Unknown(Cause::Undefined);
        }
        let results = self.new_registers(count);
        for index in 0..count {
            let result = results + index;
            let op = match pointer.offset {
                Operand::Known(at) => {
                    let at = at.saturating_add(index.into());
                    let from = match at < u64::from(of) {
                        true => Operand::Register(first + at as u32),
                        false => Operand::Unknown(Cause::Undefined),
                    };
                    Op::copy(result, from)
                }
                offset => Op::Pick {
                    result,
                    first,
                    count: of,
                    index: self.plus(offset, index.into()),
                },
            };
            self.emit(op);
        }
        Value::registers(results, count)
    }

    /// Lowers a read of known bytes, and returns the value.
    fn look(&mut self, content: usize, offset: Operand, pieces: &[Piece]) -> Value {
        let mut scalars = Vec::new();
        for piece in pieces {
            for index in 0..piece.scalars {
                let at = piece.offset + u64::from(index * piece.scalar_bytes);
                let at = self.plus(offset, at);
                let scalar = match at {
                    Operand::Unknown(cause) => Operand::Unknown(cause),
                    Operand::Known(at) => {
                        let bytes = &self.program.contents[content];
                        Operand::Known(word(bytes, at, piece.scalar_bytes as u8))
                    }
                    Operand::Register(_) if self.current.is_none() => {
                        Operand::Unknown(Cause::Undefined)
                    }
                    Operand::Register(_) => {
                        let result = self.new_registers(1);
                        self.emit(Op::Look {
                            result,
                            content,
                            offset: at,
                            bytes: piece.scalar_bytes as u8,
                        });
                        Operand::Register(result)
                    }
                };
                scalars.push(scalar);
            }
        }
        Value::Scalars(scalars.into())
    }

    /// Returns the runs of scalars without gaps that make up the pointee, by their offsets from the pointer. `None`
    /// where the layout is not known or there are too many.
    pub(super) fn pieces(&self, pointer: &Pointer) -> Option<Vec<Piece>> {
        let module = self.module;
        if let (Some(layout), Some(Type::Vector { component, count })) =
            (pointer.matrix, module.types.get(&pointer.type_id))
            && layout.row_major
        {
            // The vector is a column of a row-major matrix.
            let scalar_bytes = module.scalar_bytes(*component)?;
            let piece = |index: u32| Piece {
                offset: u64::from(index) * u64::from(layout.stride),
                scalar_bytes,
                scalars: 1,
            };
            return Some((0..*count).map(piece).collect());
        }
        let length = |id| self.length(id);
        module.pieces(pointer.type_id, pointer.matrix, MAX_PIECES, &length)
    }

    /// Emits a read or write of the pointee, and returns its pieces. `None` where these are not known, so that the
    /// access escapes.
    pub(super) fn access(
        &mut self,
        buffer: usize,
        pointer: &Pointer,
        direction: Direction,
    ) -> Option<Vec<Piece>> {
        let Some(pieces) = self.pieces(pointer) else {
            let (reads, writes) = (direction.reads(), direction.writes());
            self.escape(Some(buffer), reads, writes, Cause::Layout);
            return None;
        };
        for piece in &pieces {
            let offset = self.plus(pointer.offset, piece.offset);
            self.emit(Op::Access(Access {
                buffer,
                offset,
                scalar_bytes: piece.scalar_bytes,
                scalars: piece.scalars,
                direction,
                rows: None,
            }));
        }
        Some(pieces)
    }

    /// Lowers a write of a value.
    pub(super) fn store(&mut self, pointer: &Pointer, value: &Typed) {
        match &pointer.base {
            Base::Local { first, count } => {
                let scalars = match self.scalars(pointer.type_id) {
                    Some(scalars) => value.value.scalars(scalars),
                    None => return self.clobber(*first, *count, Cause::LargeVariable),
                };
                match pointer.offset {
                    Operand::Known(at) => {
                        let room = u64::from(*count).saturating_sub(at) as usize;
                        let scalars = &scalars[..scalars.len().min(room)];
                        self.put(first + at.min((*count).into()) as u32, scalars);
                    }
                    offset => {
                        let (first, count) = (*first, *count);
                        for (index, value) in scalars.into_iter().enumerate() {
                            let index = self.plus(offset, index as u64);
                            self.emit(Op::Put {
                                first,
                                count,
                                index,
                                value,
                            });
                        }
                    }
                }
            }
            Base::Buffer(buffer) => {
                self.access(*buffer, pointer, Direction::Write);
            }
            Base::Lost(cause) => self.escape(None, false, true, *cause),
            Base::Descriptors { .. } | Base::Content(_) | Base::Fixed(_) | Base::Opaque(_) => {}
        }
    }

    /// Makes registers unknown for the given cause.
    pub(super) fn clobber(&mut self, first: u32, count: u32, cause: Cause) {
        let unknown = vec![Operand::Unknown(cause); count as usize];
        self.put(first, &unknown);
    }

    /// Emits an access to unknown places of a buffer, or of any memory for `None`.
    pub(super) fn escape(
        &mut self,
        buffer: Option<usize>,
        reads: bool,
        writes: bool,
        cause: Cause,
    ) {
        self.emit(Op::Escape(Escape {
            buffer,
            reads,
            writes,
            cause,
        }));
    }

    /// Returns the length of a buffer's run-time array (`OpArrayLength`).
    pub(super) fn array_length(&self, pointer: &Pointer, member: u32) -> Operand {
        let found = || {
            let (Base::Buffer(buffer), Operand::Known(offset)) = (&pointer.base, pointer.offset)
            else {
                return None;
            };
            let Type::Struct(members) = self.module.types.get(&pointer.type_id)? else {
                return None;
            };
            let array = members.get(member as usize)?;
            let begin = self
                .module
                .members
                .get(&(pointer.type_id, member))?
                .offset?;
            let stride = self.module.decorations.get(array)?.array_stride?;
            let bytes = self.environment.buffers[*buffer].bytes;
            let room = bytes.saturating_sub(offset.saturating_add(begin.into()));
            room.checked_div(stride.into())
        };
        found().map_or(Operand::Unknown(Cause::Layout), |length| {
            Operand::Known(length & u64::from(u32::MAX))
        })
    }
}
