//! Builds the kernel of the example: `if (i < n) to[i] = from[i] * factor`, with a workgroup size that is a
//! specialisation constant.

use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionModel, FunctionControl, MemoryModel,
    SelectionControl, StorageClass,
};

/// Returns the kernel's SPIR-V for Vulkan 1.0.
pub fn scale() -> Vec<u8> {
    let mut b = Builder::new();
    b.set_version(1, 0);
    b.capability(Capability::Shader);
    b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let void = b.type_void();
    let function = b.type_function(void, vec![]);
    let bool_ = b.type_bool();
    let uint = b.type_int(32, 0);
    let float = b.type_float(32, None);
    let uint3 = b.type_vector(uint, 3);

    let zero = b.constant_bit32(uint, 0);
    let one = b.constant_bit32(uint, 1);
    let size_x = b.spec_constant_bit32(uint, 32);
    b.decorate(size_x, Decoration::SpecId, [Operand::LiteralBit32(0)]);
    let size = b.spec_constant_composite(uint3, vec![size_x, one, one]);
    let built_in = |of| [Operand::BuiltIn(of)];
    b.decorate(size, Decoration::BuiltIn, built_in(BuiltIn::WorkgroupSize));

    let offset = |bytes| [Operand::LiteralBit32(bytes)];
    let floats = b.type_runtime_array(float);
    b.decorate(floats, Decoration::ArrayStride, offset(4));
    let buffer = b.type_struct(vec![floats]);
    b.decorate(buffer, Decoration::BufferBlock, []);
    b.member_decorate(buffer, 0, Decoration::Offset, offset(0));
    let push = b.type_struct(vec![uint, float]);
    b.decorate(push, Decoration::Block, []);
    b.member_decorate(push, 0, Decoration::Offset, offset(0));
    b.member_decorate(push, 1, Decoration::Offset, offset(4));

    let pointer = |b: &mut Builder, class, to| b.type_pointer(None, class, to);
    let buffer_at = pointer(&mut b, StorageClass::Uniform, buffer);
    let float_at = pointer(&mut b, StorageClass::Uniform, float);
    let push_at = pointer(&mut b, StorageClass::PushConstant, push);
    let pushed_uint = pointer(&mut b, StorageClass::PushConstant, uint);
    let pushed_float = pointer(&mut b, StorageClass::PushConstant, float);
    let input_at = pointer(&mut b, StorageClass::Input, uint3);
    let mut bound = |number: u32| {
        let variable = b.variable(buffer_at, None, StorageClass::Uniform, None);
        b.decorate(variable, Decoration::DescriptorSet, offset(0));
        b.decorate(variable, Decoration::Binding, offset(number));
        variable
    };
    let (from, to) = (bound(0), bound(1));
    b.decorate(from, Decoration::NonWritable, []);
    let constants = b.variable(push_at, None, StorageClass::PushConstant, None);
    let invocation = b.variable(input_at, None, StorageClass::Input, None);
    let id = built_in(BuiltIn::GlobalInvocationId);
    b.decorate(invocation, Decoration::BuiltIn, id);

    let body = |b: &mut Builder| {
        let main = b.begin_function(void, None, FunctionControl::NONE, function)?;
        b.begin_block(None)?;
        let id = b.load(uint3, None, invocation, None, [])?;
        let i = b.composite_extract(uint, None, id, [0])?;
        let at = b.access_chain(pushed_uint, None, constants, [zero])?;
        let n = b.load(uint, None, at, None, [])?;
        let inside = b.u_less_than(bool_, None, i, n)?;
        let (work, end) = (b.id(), b.id());
        b.selection_merge(end, SelectionControl::NONE)?;
        b.branch_conditional(inside, work, end, [])?;
        b.begin_block(Some(work))?;
        let at = b.access_chain(float_at, None, from, [zero, i])?;
        let value = b.load(float, None, at, None, [])?;
        let at = b.access_chain(pushed_float, None, constants, [one])?;
        let factor = b.load(float, None, at, None, [])?;
        let product = b.f_mul(float, None, value, factor)?;
        let at = b.access_chain(float_at, None, to, [zero, i])?;
        b.store(at, product, None, [])?;
        b.branch(end)?;
        b.begin_block(Some(end))?;
        b.ret()?;
        b.end_function()?;
        Ok::<_, rspirv::dr::Error>(main)
    };
    let main = body(&mut b).expect("the instructions follow each other");
    b.entry_point(ExecutionModel::GLCompute, main, "main", [invocation]);
    // The constant that is decorated as the workgroup's size overrides this.
    b.execution_mode(main, rspirv::spirv::ExecutionMode::LocalSize, [1, 1, 1]);
    let words = b.module().assemble();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
