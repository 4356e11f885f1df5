//! Builds the SPIR-V of kernels that copy words from one buffer to another, to measure the cost of loads and stores.

use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Error, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel,
    FunctionControl, MemoryModel, SelectionControl, StorageClass, Word,
};

use crate::merge::ENTRY;

/// Returns the SPIR-V of a kernel that copies `words` words from binding 0 to binding 1, one an invocation, as
/// elementwise kernels do.
pub fn kernel(local_size: [u32; 3], words: u32) -> Vec<Word> {
    // The builder fails only outside functions and blocks.
    build(local_size, words).unwrap_or_default()
}

/// Builds the module: an invocation's number among all is computed from its place on the axes, and only those below
/// `words` copy.
fn build(local_size: [u32; 3], words: u32) -> Result<Vec<Word>, Error> {
    let mut b = Builder::new();
    b.set_version(1, 3);
    b.capability(Capability::Shader);
    b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let (void, truth, int) = (b.type_void(), b.type_bool(), b.type_int(32, 0));
    let signature = b.type_function(void, []);
    let vector = b.type_vector(int, 3);
    let array = b.type_runtime_array(int);
    let block = b.type_struct([array]);
    let number = Operand::LiteralBit32;
    b.decorate(array, Decoration::ArrayStride, [number(4)]);
    b.decorate(block, Decoration::Block, []);
    b.member_decorate(block, 0, Decoration::Offset, [number(0)]);
    let input = b.type_pointer(None, StorageClass::Input, vector);
    let buffer = b.type_pointer(None, StorageClass::StorageBuffer, block);
    let place = b.type_pointer(None, StorageClass::StorageBuffer, int);
    let built_in = |b: &mut Builder, of: BuiltIn| {
        let id = b.variable(input, None, StorageClass::Input, None);
        b.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(of)]);
        id
    };
    let global = built_in(&mut b, BuiltIn::GlobalInvocationId);
    let groups = built_in(&mut b, BuiltIn::NumWorkgroups);
    let bound = |b: &mut Builder, binding: u32| {
        let id = b.variable(buffer, None, StorageClass::StorageBuffer, None);
        b.decorate(id, Decoration::DescriptorSet, [number(0)]);
        b.decorate(id, Decoration::Binding, [number(binding)]);
        id
    };
    let (from, to) = (bound(&mut b, 0), bound(&mut b, 1));
    let [zero, end, x, y] =
        [0, words, local_size[0], local_size[1]].map(|of| b.constant_bit32(int, of));
    let main = b.begin_function(void, None, FunctionControl::NONE, signature)?;
    b.begin_block(None)?;
    let id = b.load(vector, None, global, None, [])?;
    let groups_of = b.load(vector, None, groups, None, [])?;
    let part = |b: &mut Builder, of: Word, axis: u32| b.composite_extract(int, None, of, [axis]);
    let [gx, gy, gz] = [
        part(&mut b, id, 0)?,
        part(&mut b, id, 1)?,
        part(&mut b, id, 2)?,
    ];
    let [nx, ny] = [part(&mut b, groups_of, 0)?, part(&mut b, groups_of, 1)?];
    let (width, height) = (b.i_mul(int, None, nx, x)?, b.i_mul(int, None, ny, y)?);
    let row = b.i_mul(int, None, gz, height)?;
    let row = b.i_add(int, None, row, gy)?;
    let at = b.i_mul(int, None, row, width)?;
    let at = b.i_add(int, None, at, gx)?;
    let inside = b.u_less_than(truth, None, at, end)?;
    let (copy, done) = (b.id(), b.id());
    b.selection_merge(done, SelectionControl::NONE)?;
    b.branch_conditional(inside, copy, done, [])?;
    b.begin_block(Some(copy))?;
    let source = b.access_chain(place, None, from, [zero, at])?;
    let value = b.load(int, None, source, None, [])?;
    let target = b.access_chain(place, None, to, [zero, at])?;
    b.store(target, value, None, [])?;
    b.branch(done)?;
    b.begin_block(Some(done))?;
    b.ret()?;
    b.end_function()?;
    b.entry_point(ExecutionModel::GLCompute, main, ENTRY, [global, groups]);
    b.execution_mode(main, ExecutionMode::LocalSize, local_size);
    Ok(b.module().assemble())
}
