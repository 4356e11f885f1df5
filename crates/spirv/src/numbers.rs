//! Lists the numbers of SPIR-V's instructions, storage classes, decorations and modes that gapscope's readers tell
//! apart, under the specification's names.

/// Declares a module of constants of one type; each constant has its specification's name and number.
macro_rules! numbers {
    ($(#[$doc:meta])* pub mod $module:ident: $type:ty; $($name:ident = $value:literal,)*) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        pub mod $module {
            $(pub const $name: $type = $value;)*
        }
    };
}

numbers! {
    /// Versions, as the second word of a module has them.
    pub mod version: u32;
    V1_3 = 0x0001_0300, V1_4 = 0x0001_0400, V1_6 = 0x0001_0600,
}

numbers! {
    /// Opcodes.
    pub mod op: u16;
    NOP = 0, UNDEF = 1, SOURCE = 3, STRING = 7, LINE = 8, EXTENSION = 10, EXT_INST_IMPORT = 11, EXT_INST = 12,
    ENTRY_POINT = 15, EXECUTION_MODE = 16, CAPABILITY = 17, TYPE_VOID = 19, TYPE_BOOL = 20, TYPE_INT = 21,
    TYPE_FLOAT = 22, TYPE_VECTOR = 23, TYPE_MATRIX = 24, TYPE_ARRAY = 28, TYPE_RUNTIME_ARRAY = 29, TYPE_STRUCT = 30,
    TYPE_POINTER = 32, TYPE_FORWARD_POINTER = 39, CONSTANT_TRUE = 41, CONSTANT_FALSE = 42, CONSTANT = 43,
    CONSTANT_COMPOSITE = 44, CONSTANT_NULL = 46, SPEC_CONSTANT_TRUE = 48, SPEC_CONSTANT_FALSE = 49,
    SPEC_CONSTANT = 50, SPEC_CONSTANT_COMPOSITE = 51, SPEC_CONSTANT_OP = 52, FUNCTION = 54, FUNCTION_PARAMETER = 55,
    FUNCTION_END = 56, FUNCTION_CALL = 57, VARIABLE = 59, IMAGE_TEXEL_POINTER = 60, LOAD = 61, STORE = 62,
    COPY_MEMORY = 63, COPY_MEMORY_SIZED = 64, ACCESS_CHAIN = 65, IN_BOUNDS_ACCESS_CHAIN = 66, PTR_ACCESS_CHAIN = 67,
    ARRAY_LENGTH = 68, IN_BOUNDS_PTR_ACCESS_CHAIN = 70, DECORATE = 71, MEMBER_DECORATE = 72, DECORATION_GROUP = 73,
    GROUP_DECORATE = 74, GROUP_MEMBER_DECORATE = 75, VECTOR_EXTRACT_DYNAMIC = 77, VECTOR_INSERT_DYNAMIC = 78,
    VECTOR_SHUFFLE = 79, COMPOSITE_CONSTRUCT = 80, COMPOSITE_EXTRACT = 81, COMPOSITE_INSERT = 82, COPY_OBJECT = 83,
    U_CONVERT = 113, S_CONVERT = 114, CONVERT_U_TO_PTR = 120, BITCAST = 124, S_NEGATE = 126, I_ADD = 128,
    I_SUB = 130, I_MUL = 132, U_DIV = 134, S_DIV = 135, U_MOD = 137, S_REM = 138, S_MOD = 139, I_ADD_CARRY = 149,
    I_SUB_BORROW = 150, U_MUL_EXTENDED = 151, S_MUL_EXTENDED = 152, ANY = 154, ALL = 155, LOGICAL_EQUAL = 164,
    LOGICAL_NOT_EQUAL = 165, LOGICAL_OR = 166, LOGICAL_AND = 167, LOGICAL_NOT = 168, SELECT = 169, I_EQUAL = 170,
    I_NOT_EQUAL = 171, U_GREATER_THAN = 172, S_GREATER_THAN = 173, U_GREATER_THAN_EQUAL = 174,
    S_GREATER_THAN_EQUAL = 175, U_LESS_THAN = 176, S_LESS_THAN = 177, U_LESS_THAN_EQUAL = 178,
    S_LESS_THAN_EQUAL = 179, SHIFT_RIGHT_LOGICAL = 194, SHIFT_RIGHT_ARITHMETIC = 195, SHIFT_LEFT_LOGICAL = 196,
    BITWISE_OR = 197, BITWISE_XOR = 198, BITWISE_AND = 199, NOT = 200, BIT_FIELD_INSERT = 201,
    BIT_FIELD_S_EXTRACT = 202, BIT_FIELD_U_EXTRACT = 203, BIT_REVERSE = 204, BIT_COUNT = 205, CONTROL_BARRIER = 224,
    MEMORY_BARRIER = 225, ATOMIC_LOAD = 227, ATOMIC_STORE = 228, ATOMIC_EXCHANGE = 229, ATOMIC_XOR = 242, PHI = 245,
    LOOP_MERGE = 246, SELECTION_MERGE = 247, LABEL = 248, BRANCH = 249, BRANCH_CONDITIONAL = 250, SWITCH = 251,
    RETURN = 253, RETURN_VALUE = 254, UNREACHABLE = 255, NO_LINE = 317, MODULE_PROCESSED = 330,
    EXECUTION_MODE_ID = 331, DECORATE_ID = 332, COPY_LOGICAL = 400, TERMINATE_INVOCATION = 4416,
    UNTYPED_VARIABLE_KHR = 4418, TYPE_COOPERATIVE_MATRIX_KHR = 4456, COOPERATIVE_MATRIX_LOAD_KHR = 4457,
    COOPERATIVE_MATRIX_STORE_KHR = 4458, TYPE_VECTOR_ID_EXT = 5288, TYPE_COOPERATIVE_MATRIX_NV = 5358,
    COOPERATIVE_MATRIX_LOAD_NV = 5359, COOPERATIVE_MATRIX_STORE_NV = 5360, ATOMIC_F_MIN_EXT = 5614,
    ATOMIC_F_MAX_EXT = 5615, DECORATE_STRING = 5632, MEMBER_DECORATE_STRING = 5633, ATOMIC_F_ADD_EXT = 6035,
}

numbers! {
    /// Instructions of `GLSL.std.450`.
    pub mod glsl: u32;
    S_ABS = 5, S_SIGN = 7, U_MIN = 38, S_MIN = 39, U_MAX = 41, S_MAX = 42, U_CLAMP = 44, S_CLAMP = 45,
    FIND_I_LSB = 73, FIND_S_MSB = 74, FIND_U_MSB = 75,
}

numbers! {
    /// Storage classes.
    pub mod storage_class: u32;
    INPUT = 1, UNIFORM = 2, WORKGROUP = 4, PRIVATE = 6, PUSH_CONSTANT = 9, STORAGE_BUFFER = 12,
    PHYSICAL_STORAGE_BUFFER = 5349,
}

numbers! {
    /// Decorations.
    pub mod decoration: u32;
    SPEC_ID = 1, ROW_MAJOR = 4, ARRAY_STRIDE = 6, MATRIX_STRIDE = 7, BUILT_IN = 11, BINDING = 33,
    DESCRIPTOR_SET = 34, OFFSET = 35,
}

/// The execution model of compute shaders.
pub const GL_COMPUTE: u32 = 5;
/// The execution mode that gives the size of workgroups as literals.
pub const LOCAL_SIZE: u32 = 17;
/// The execution mode that gives the size of workgroups as ids of constants.
pub const LOCAL_SIZE_ID: u32 = 38;
/// The built-in constant that is the size of workgroups.
pub const WORKGROUP_SIZE: u32 = 25;
