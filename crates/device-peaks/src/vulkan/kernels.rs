//! Builds the SPIR-V of the kernels that Vulkan devices are measured with: each public function returns the words of
//! one kernel. Kernels for memory read and write vectors of sixteen bytes, several an invocation, of two storage
//! buffers, bindings 0 and 1.

use gapscope_replay::MatrixType;
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Error, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, CooperativeMatrixLayout, CooperativeMatrixOperands,
    CooperativeMatrixUse, Decoration, ExecutionMode, ExecutionModel, FunctionControl, LoopControl,
    MemoryModel, Scope, SelectionControl, StorageClass, Word,
};

/// Number of invocations of a workgroup, which every device can run.
pub const LOCAL_SIZE: u32 = 128;
// The low bits of an invocation's number say which one of its workgroup it is.
const _: () = assert!(LOCAL_SIZE.is_power_of_two());
/// Bytes of a vector, four integers of 32 bits.
pub const VECTOR_BYTES: u64 = 16;
/// Number of vectors that an invocation reads or writes.
pub const VECTORS_PER_INVOCATION: u64 = 4;
/// Number of multiply-adds of an invocation in a round, in eight independent chains.
pub const MULTIPLY_ADDS_PER_ROUND: u32 = 64;
const CHAINS: usize = 8;
/// `Fma` of GLSL.std.450
const FMA: Word = 50;

/// Number of multiplications in a round of [`multiply_matrices`]: of each left matrix by each right one.
pub const MULTIPLICATIONS_PER_ROUND: u32 = (LEFT_MATRICES * RIGHT_MATRICES) as u32;
/// Number of left matrices that a subgroup holds at once.
const LEFT_MATRICES: usize = 2;
/// Number of right matrices that a subgroup holds at once.
const RIGHT_MATRICES: usize = 4;

/// The size of a dispatch whose invocations together have the vectors of a whole buffer.
pub struct Grid {
    /// Number of invocations, each with [`VECTORS_PER_INVOCATION`] vectors.
    pub invocations: u32,
    /// Number of workgroups by axis.
    pub workgroups: [u32; 3],
}

impl Grid {
    /// Returns the grid for a buffer; `None` if the buffer is too small.
    pub fn new(buffer_bytes: u64) -> Option<Grid> {
        let invocations = buffer_bytes / (VECTOR_BYTES * VECTORS_PER_INVOCATION);
        let workgroups = invocations / u64::from(LOCAL_SIZE);
        let width = workgroups.min(1 << 15);
        (width > 0).then(|| Grid {
            invocations: invocations as u32,
            workgroups: [width as u32, (workgroups / width) as u32, 1],
        })
    }
}

/// Builds a kernel that reads all of binding 0 in a grid of `grid` invocations.
pub fn read(grid: u32) -> Vec<Word> {
    built(|kernel| {
        let mut sum = None;
        for number in 0..VECTORS_PER_INVOCATION as u32 {
            let at = kernel.place(0, grid, number)?;
            let value = kernel.b.load(kernel.vector, None, at, None, [])?;
            sum = Some(match sum {
                None => value,
                Some(sum) => kernel.b.bitwise_xor(kernel.vector, None, sum, value)?,
            });
        }
        // The condition hardly ever holds, which the compiler does not know.
        let b = &mut kernel.b;
        let sum = sum.unwrap_or(kernel.zero);
        let first = b.composite_extract(kernel.int, None, sum, [0])?;
        let [y, z, w] = [
            b.composite_extract(kernel.int, None, sum, [1])?,
            b.composite_extract(kernel.int, None, sum, [2])?,
            b.composite_extract(kernel.int, None, sum, [3])?,
        ];
        let one = b.bitwise_xor(kernel.int, None, first, y)?;
        let other = b.bitwise_xor(kernel.int, None, z, w)?;
        let all = b.bitwise_xor(kernel.int, None, one, other)?;
        let rare = b.constant_bit32(kernel.int, 0x9e37_79b9);
        let is_rare = b.i_equal(kernel.truth, None, all, rare)?;
        kernel.store_if(is_rare, sum)
    })
}

/// Builds a kernel that writes all of binding 1.
pub fn write() -> Vec<Word> {
    built(|kernel| {
        let of = kernel
            .b
            .composite_construct(kernel.vector, None, [kernel.invocation; 4])?;
        for number in 0..VECTORS_PER_INVOCATION as u32 {
            let at = kernel.near_place(1, number)?;
            kernel.b.store(at, of, None, [])?;
        }
        Ok(())
    })
}

/// Builds a kernel that copies all of binding 0 to binding 1 in a grid of `grid` invocations.
pub fn copy(grid: u32) -> Vec<Word> {
    built(|kernel| {
        let mut values = Vec::new();
        for number in 0..VECTORS_PER_INVOCATION as u32 {
            let at = kernel.place(0, grid, number)?;
            values.push(kernel.b.load(kernel.vector, None, at, None, [])?);
        }
        for (number, value) in (0..).zip(values) {
            let at = kernel.place(1, grid, number)?;
            kernel.b.store(at, value, None, [])?;
        }
        Ok(())
    })
}

/// Builds a kernel that does nothing.
pub fn nothing() -> Vec<Word> {
    built(|_| Ok(()))
}

/// Builds a kernel of multiply-adds in a loop of `rounds` rounds.
pub fn multiply_add(rounds: u32) -> Vec<Word> {
    built(|kernel| {
        let b = &mut kernel.b;
        let (int, truth) = (kernel.int, kernel.truth);
        let float = b.type_float(32, None);
        let extension = b.ext_inst_import("GLSL.std.450");
        let [small, half, quarter] =
            [1e-4_f32, 0.5, 0.25].map(|of| b.constant_bit32(float, of.to_bits()));
        let none = b.constant_bit32(float, 0);
        let [end, one, mask] = [rounds, 1, LOCAL_SIZE - 1].map(|of| b.constant_bit32(int, of));
        let local = b.bitwise_and(int, None, kernel.invocation, mask)?;
        let local = b.convert_u_to_f(float, None, local)?;
        let step = b.f_mul(float, None, local, small)?;
        let x = b.f_add(float, None, step, quarter)?;
        let y = b.f_add(float, None, step, half)?;
        let mut starts = vec![x];
        for _ in 1..CHAINS {
            let last = starts[starts.len() - 1];
            starts.push(b.f_add(float, None, last, y)?);
        }
        let sums = kernel.looped(float, &starts, [end, one], |b, chains, ends| {
            let mut chains = chains.to_vec();
            for number in 0..MULTIPLY_ADDS_PER_ROUND as usize {
                let chain = number % CHAINS;
                let is_last = number + CHAINS >= MULTIPLY_ADDS_PER_ROUND as usize;
                let id = is_last.then_some(ends[chain]);
                let operands = [chains[chain], x, y].map(Operand::IdRef);
                chains[chain] = b.ext_inst(float, id, extension, FMA, operands)?;
            }
            Ok(())
        })?;
        let b = &mut kernel.b;
        let mut sum = sums[0];
        for of in &sums[1..] {
            sum = b.f_add(float, None, sum, *of)?;
        }
        // The condition never holds, as the sums are positive, which the compiler does not know.
        let is_less = b.f_ord_less_than(truth, None, sum, none)?;
        let bits = b.bitcast(int, None, sum)?;
        let value = b.composite_construct(kernel.vector, None, [bits; 4])?;
        kernel.store_if(is_less, value)
    })
}

/// Builds a kernel that fills all of binding 0 with noise: in each word the bits of `mask` are random, and those of `ones` are set.
pub fn noise(mask: u32, ones: u32) -> Vec<Word> {
    built(|kernel| {
        let int = kernel.int;
        for number in 0..VECTORS_PER_INVOCATION as u32 {
            let at = kernel.near_place(0, number)?;
            let b = &mut kernel.b;
            let [mask, ones, two] = [mask, ones, 2].map(|of| b.constant_bit32(int, of));
            // The mixing of MurmurHash3's end, whose bits look independent of those of the number.
            let [first, second] = [0x85eb_ca6b, 0xc2b2_ae35].map(|of| b.constant_bit32(int, of));
            let [far, near] = [16, 13].map(|of| b.constant_bit32(int, of));
            let vectors = b.constant_bit32(int, VECTORS_PER_INVOCATION as u32);
            let number = b.constant_bit32(int, number);
            let vector = b.i_mul(int, None, kernel.invocation, vectors)?;
            let vector = b.i_add(int, None, vector, number)?;
            let word = b.shift_left_logical(int, None, vector, two)?;
            let mut words = [word; 4];
            for (lane, word) in (0..).zip(&mut words) {
                let lane = b.constant_bit32(int, lane);
                let mut hash = b.i_add(int, None, *word, lane)?;
                for (shift, by) in [(far, Some(first)), (near, Some(second)), (far, None)] {
                    let high = b.shift_right_logical(int, None, hash, shift)?;
                    hash = b.bitwise_xor(int, None, hash, high)?;
                    if let Some(by) = by {
                        hash = b.i_mul(int, None, hash, by)?;
                    }
                }
                let any = b.bitwise_and(int, None, hash, mask)?;
                *word = b.bitwise_or(int, None, any, ones)?;
            }
            let value = b.composite_construct(kernel.vector, None, words)?;
            b.store(at, value, None, [])?;
        }
        Ok(())
    })
}

/// Builds a kernel that multiplies matrices of binding 0 in a loop, and stores a sum of the products in binding 1. The bindings have
/// `vectors` vectors, a power of two. The subgroups of a workgroup share its rounds, so that the number of products does not depend on
/// the size of a subgroup. `shape` is `m`, `n` and `k`.
pub fn multiply_matrices(of: MatrixType, shape: [u32; 3], rounds: u32, vectors: u32) -> Vec<Word> {
    built(|kernel| {
        let [m, n, k] = shape;
        let [subgroup, subgroups] = [
            kernel.input(kernel.int, BuiltIn::SubgroupId)?,
            kernel.input(kernel.int, BuiltIn::NumSubgroups)?,
        ];
        let group = kernel.input(kernel.numbers, BuiltIn::WorkgroupId)?;
        let b = &mut kernel.b;
        b.memory_model(AddressingModel::Logical, MemoryModel::Vulkan);
        b.extension("SPV_KHR_vulkan_memory_model");
        b.capability(Capability::VulkanMemoryModel);
        b.extension("SPV_KHR_cooperative_matrix");
        b.capability(Capability::CooperativeMatrixKHR);
        b.capability(Capability::GroupNonUniform);
        let int = kernel.int;
        let (input, sum, input_bytes, signed) = match of {
            MatrixType::F16 => {
                b.capability(Capability::Float16);
                let input = b.type_float(16, None);
                (input, b.type_float(32, None), 2, None)
            }
            MatrixType::Int8 => {
                b.capability(Capability::Int8);
                let signed = CooperativeMatrixOperands::MATRIX_A_SIGNED_COMPONENTS_KHR
                    | CooperativeMatrixOperands::MATRIX_B_SIGNED_COMPONENTS_KHR
                    | CooperativeMatrixOperands::MATRIX_C_SIGNED_COMPONENTS_KHR
                    | CooperativeMatrixOperands::MATRIX_RESULT_SIGNED_COMPONENTS_KHR;
                let input = b.type_int(8, 1);
                (input, b.type_int(32, 1), 1, Some(signed))
            }
        };
        let number = |b: &mut Builder, of: u32| b.constant_bit32(int, of);
        let [rows, columns, inner] = [m, n, k].map(|of| number(b, of));
        let scope = number(b, Scope::Subgroup as u32);
        let [left, right, product] = [
            (input, rows, inner, CooperativeMatrixUse::MatrixAKHR),
            (input, inner, columns, CooperativeMatrixUse::MatrixBKHR),
            (
                sum,
                rows,
                columns,
                CooperativeMatrixUse::MatrixAccumulatorKHR,
            ),
        ]
        .map(|(of, rows, columns, usage)| {
            let usage = number(b, usage as u32);
            b.type_cooperative_matrix_khr(of, scope, rows, columns, usage)
        });
        let by_rows = number(b, CooperativeMatrixLayout::RowMajorKHR as u32);
        let vectors_of = |count: u32, bytes: u32| (count * bytes).div_ceil(VECTOR_BYTES as u32);
        let mut at = 0;
        let mut load = |kernel: &mut Kernel, of: Word, [rows, columns]: [u32; 2]| {
            let first = kernel.b.constant_bit32(int, at);
            at += rows * vectors_of(columns, input_bytes);
            let place = kernel.place_at(0, first)?;
            let stride = kernel
                .b
                .constant_bit32(int, vectors_of(columns, input_bytes));
            let b = &mut kernel.b;
            b.cooperative_matrix_load_khr(of, None, place, by_rows, Some(stride), None, [])
        };
        let mut lefts = Vec::new();
        for _ in 0..LEFT_MATRICES {
            lefts.push(load(kernel, left, [m, k])?);
        }
        let mut rights = Vec::new();
        for _ in 0..RIGHT_MATRICES {
            rights.push(load(kernel, right, [k, n])?);
        }
        let b = &mut kernel.b;
        let none = b.constant_bit32(sum, 0);
        let none = b.constant_composite(product, [none]);
        let [one, all_rounds] = [1, rounds].map(|of| number(b, of));
        let end = b.u_div(int, None, all_rounds, subgroups)?;
        let starts = [none; LEFT_MATRICES * RIGHT_MATRICES];
        let sums = kernel.looped(product, &starts, [end, one], |b, sums, ends| {
            for (place, (before, end)) in sums.iter().zip(ends).enumerate() {
                let (left, right) = (
                    lefts[place / RIGHT_MATRICES],
                    rights[place % RIGHT_MATRICES],
                );
                b.cooperative_matrix_mul_add_khr(
                    product,
                    Some(*end),
                    left,
                    right,
                    *before,
                    signed,
                )?;
            }
            Ok(())
        })?;
        let b = &mut kernel.b;
        let mut all = sums[0];
        for more in &sums[1..] {
            all = match of {
                MatrixType::F16 => b.f_add(product, None, all, *more)?,
                MatrixType::Int8 => b.i_add(product, None, all, *more)?,
            };
        }
        let [size, mask] = [vectors_of(m * n, 4), vectors - 1].map(|of| number(b, of));
        let group = b.composite_extract(int, None, group, [0])?;
        let place = b.i_mul(int, None, group, subgroups)?;
        let place = b.i_add(int, None, place, subgroup)?;
        let place = b.i_mul(int, None, place, size)?;
        let place = b.bitwise_and(int, None, place, mask)?;
        let stride = number(b, vectors_of(n, 4));
        let place = kernel.place_at(1, place)?;
        (kernel.b).cooperative_matrix_store_khr(place, all, by_rows, Some(stride), None, [])
    })
}

/// A kernel that is being built, inside its function.
struct Kernel {
    /// Builds the module.
    b: Builder,
    /// Ids of types: Boolean, integer of 32 bits, and vectors of three and four of these.
    truth: Word,
    int: Word,
    numbers: Word,
    vector: Word,
    /// Id of the type of pointers to a vector in a buffer.
    place: Word,
    /// Id of the integer 0.
    zero: Word,
    /// Variables of the interface.
    inputs: Vec<Word>,
    /// Ids of the variables of both bindings.
    buffers: [Word; 2],
    /// The invocation's number in the grid.
    invocation: Word,
}

impl Kernel {
    /// Emits a loop of `end` rounds over values of type `of`, and returns the values after it. `starts` are the values before the first
    /// round; `round` is given the values before a round and the ids of those after it. `one` is the number 1.
    fn looped(
        &mut self,
        of: Word,
        starts: &[Word],
        [end, one]: [Word; 2],
        round: impl FnOnce(&mut Builder, &[Word], &[Word]) -> Result<(), Error>,
    ) -> Result<Vec<Word>, Error> {
        let b = &mut self.b;
        let [before, header, body, next, after] = [(); 5].map(|()| b.id());
        b.branch(before)?;
        b.begin_block(Some(before))?;
        b.branch(header)?;
        b.begin_block(Some(header))?;
        let counted = b.id();
        let number = b.phi(self.int, None, [(self.zero, before), (counted, next)])?;
        let ends: Vec<Word> = starts.iter().map(|_| b.id()).collect();
        let mut values = Vec::new();
        for (start, end) in starts.iter().zip(&ends) {
            values.push(b.phi(of, None, [(*start, before), (*end, next)])?);
        }
        let goes_on = b.u_less_than(self.truth, None, number, end)?;
        b.loop_merge(after, next, LoopControl::NONE, [])?;
        b.branch_conditional(goes_on, body, after, [])?;
        b.begin_block(Some(body))?;
        round(b, &values, &ends)?;
        b.branch(next)?;
        b.begin_block(Some(next))?;
        b.i_add(self.int, Some(counted), number, one)?;
        b.branch(header)?;
        b.begin_block(Some(after))?;
        Ok(values)
    }

    /// Emits the load of a built-in input.
    fn input(&mut self, of_type: Word, of: BuiltIn) -> Result<Word, Error> {
        let block = self.b.selected_block();
        self.b.select_block(None)?;
        let input = variable(&mut self.b, of_type, of);
        self.b.select_block(block)?;
        self.inputs.push(input);
        self.b.load(of_type, None, input, None, [])
    }

    /// Emits the pointer to the invocation's vector of this number in a buffer. The vectors of an invocation are a grid apart.
    fn place(&mut self, buffer: usize, grid: u32, number: u32) -> Result<Word, Error> {
        let before = self.b.constant_bit32(self.int, grid * number);
        let at = self.b.i_add(self.int, None, self.invocation, before)?;
        self.place_at(buffer, at)
    }

    /// Emits the pointer to the invocation's vector of this number in a buffer. The vectors of an invocation are a workgroup apart.
    fn near_place(&mut self, buffer: usize, number: u32) -> Result<Word, Error> {
        let b = &mut self.b;
        let within = b.constant_bit32(self.int, LOCAL_SIZE - 1);
        let others = b.constant_bit32(self.int, !(LOCAL_SIZE - 1));
        let (each, before) = (
            b.constant_bit32(self.int, VECTORS_PER_INVOCATION as u32),
            b.constant_bit32(self.int, LOCAL_SIZE * number),
        );
        let local = b.bitwise_and(self.int, None, self.invocation, within)?;
        let group = b.bitwise_and(self.int, None, self.invocation, others)?;
        let first = b.i_mul(self.int, None, group, each)?;
        let first = b.i_add(self.int, None, first, local)?;
        let at = b.i_add(self.int, None, first, before)?;
        self.place_at(buffer, at)
    }

    /// Emits the pointer to the vector of this index in a buffer.
    fn place_at(&mut self, buffer: usize, at: Word) -> Result<Word, Error> {
        let indices = [self.zero, at];
        self.b
            .access_chain(self.place, None, self.buffers[buffer], indices)
    }

    /// Emits a store of a vector to the start of binding 1 under a condition.
    fn store_if(&mut self, truth: Word, value: Word) -> Result<(), Error> {
        let b = &mut self.b;
        let (store, done) = (b.id(), b.id());
        b.selection_merge(done, SelectionControl::NONE)?;
        b.branch_conditional(truth, store, done, [])?;
        b.begin_block(Some(store))?;
        let at = b.access_chain(self.place, None, self.buffers[1], [self.zero, self.zero])?;
        b.store(at, value, None, [])?;
        b.branch(done)?;
        b.begin_block(Some(done))?;
        Ok(())
    }
}

/// Declares a built-in input. No block may be selected.
fn variable(b: &mut Builder, of_type: Word, of: BuiltIn) -> Word {
    let pointer = b.type_pointer(None, StorageClass::Input, of_type);
    let id = b.variable(pointer, None, StorageClass::Input, None);
    b.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(of)]);
    id
}

/// Returns a kernel with this body; empty if the body is wrong.
fn built(body: impl FnOnce(&mut Kernel) -> Result<(), Error>) -> Vec<Word> {
    // The builder fails only outside functions and blocks.
    build(body).unwrap_or_default()
}

/// Declares types and buffers, computes the invocation's number, and has `body` emit the rest of the function `main`.
fn build(body: impl FnOnce(&mut Kernel) -> Result<(), Error>) -> Result<Vec<Word>, Error> {
    let mut b = Builder::new();
    b.set_version(1, 3);
    b.capability(Capability::Shader);
    b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let (void, truth, int) = (b.type_void(), b.type_bool(), b.type_int(32, 0));
    let signature = b.type_function(void, []);
    let (numbers, vector) = (b.type_vector(int, 3), b.type_vector(int, 4));
    let array = b.type_runtime_array(vector);
    let block = b.type_struct([array]);
    let number = Operand::LiteralBit32;
    b.decorate(
        array,
        Decoration::ArrayStride,
        [number(VECTOR_BYTES as u32)],
    );
    b.decorate(block, Decoration::Block, []);
    b.member_decorate(block, 0, Decoration::Offset, [number(0)]);
    let buffer = b.type_pointer(None, StorageClass::StorageBuffer, block);
    let place = b.type_pointer(None, StorageClass::StorageBuffer, vector);
    let [global, groups] = [BuiltIn::GlobalInvocationId, BuiltIn::NumWorkgroups]
        .map(|of| variable(&mut b, numbers, of));
    let buffers = [0, 1].map(|binding| {
        let id = b.variable(buffer, None, StorageClass::StorageBuffer, None);
        b.decorate(id, Decoration::DescriptorSet, [number(0)]);
        b.decorate(id, Decoration::Binding, [number(binding)]);
        id
    });
    let [zero, size] = [0, LOCAL_SIZE].map(|of| b.constant_bit32(int, of));
    let main = b.begin_function(void, None, FunctionControl::NONE, signature)?;
    b.begin_block(None)?;
    let id = b.load(numbers, None, global, None, [])?;
    let count = b.load(numbers, None, groups, None, [])?;
    let x = b.composite_extract(int, None, id, [0])?;
    let y = b.composite_extract(int, None, id, [1])?;
    let width = b.composite_extract(int, None, count, [0])?;
    let width = b.i_mul(int, None, width, size)?;
    let row = b.i_mul(int, None, y, width)?;
    let invocation = b.i_add(int, None, row, x)?;
    let mut kernel = Kernel {
        b,
        truth,
        int,
        numbers,
        vector,
        place,
        zero,
        inputs: vec![global, groups],
        buffers,
        invocation,
    };
    body(&mut kernel)?;
    let mut b = kernel.b;
    b.ret()?;
    b.end_function()?;
    b.entry_point(ExecutionModel::GLCompute, main, "main", kernel.inputs);
    b.execution_mode(main, ExecutionMode::LocalSize, [LOCAL_SIZE, 1, 1]);
    Ok(b.module().assemble())
}
