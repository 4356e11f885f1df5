//! Lowers reads and writes of cooperative matrices, which the invocations of a subgroup (a group that the device runs
//! in step) make together.

use super::Lowering;
use super::values::{Base, Pointer};
use crate::kernel::program::{Access, Direction, Op, Operand};
use crate::kernel::reason::Cause;
use gapscope_spirv::Type;

/// Stands for an offset of 0.
const NONE: Operand = Operand::Known(0);

impl Lowering<'_> {
    /// Lowers `OpCooperativeMatrixLoadKHR` or `OpCooperativeMatrixStoreKHR`, whose operands are given by their ids:
    /// one access with a run of bytes for each row, or for each column by the layout. Where the shape is not known,
    /// all of the buffer may be reached.
    pub(super) fn matrix(
        &mut self,
        pointer: u32,
        matrix: u32,
        layout: u32,
        stride: Option<u32>,
        direction: Direction,
    ) {
        let pointer = self.pointer(pointer);
        let buffer = match &pointer.base {
            Base::Buffer(buffer) => *buffer,
            Base::Lost(cause) => {
                return self.escape(None, direction.reads(), direction.writes(), *cause);
            }
            _ => return,
        };
        let shape = (|| {
            let Type::CooperativeMatrix {
                component,
                rows,
                columns,
                ..
            } = self.module.types.get(&matrix)?
            else {
                return None;
            };
            let (rows, columns) = (self.length(*rows)?, self.length(*columns)?);
            let (lines, scalars) = match self.length(layout)? {
                0 => (rows, columns),
                1 => (columns, rows),
                _ => return None,
            };
            let sizes = 1..=1 << 12;
            if !sizes.contains(&lines) || !sizes.contains(&scalars) {
                return None;
            }
            let pieces = self.pieces(&Pointer {
                matrix: None,
                ..pointer.clone()
            })?;
            let [element] = pieces.as_slice() else {
                return None;
            };
            let element = element.scalar_bytes * element.scalars;
            Some((
                lines,
                scalars,
                self.module.scalar_bytes(*component)?,
                element,
            ))
        })();
        let Some((lines, scalars, scalar_bytes, element)) = shape else {
            let (reads, writes) = (direction.reads(), direction.writes());
            return self.escape(Some(buffer), reads, writes, Cause::Layout);
        };
        let stride = match stride {
            Some(id) => self.indexed(NONE, id, self.scalar(id), element),
            None => Operand::Known(u64::from(scalars * scalar_bytes)),
        };
        self.emit(Op::Access(Access {
            buffer,
            offset: pointer.offset,
            scalar_bytes,
            scalars,
            direction,
            rows: Some((lines, stride)),
        }));
    }
}
