//! Reads random words as modules: whatever they are, reading ends and does not panic.

use gapscope_spirv::numbers::op;
use gapscope_spirv::{Constants, Description, Module, Specialisation};
use proptest::prelude::*;

/// Opcodes that the readers know, and small numbers as operands, so that instructions refer to each other.
fn instruction() -> impl Strategy<Value = Vec<u32>> {
    let known = prop_oneof![
        0..=op::GROUP_MEMBER_DECORATE,
        Just(op::EXECUTION_MODE_ID),
        op::TYPE_COOPERATIVE_MATRIX_KHR..=op::COOPERATIVE_MATRIX_STORE_KHR,
        any::<u16>(),
    ];
    let operand = prop_oneof![8 => 0..16_u32, 1 => Just(5349), 1 => any::<u32>()];
    (known, prop::collection::vec(operand, 0..8), any::<bool>()).prop_map(
        |(op, operands, is_torn)| {
            let length = operands.len() as u32 + 1 + u32::from(is_torn && op % 32 == 0);
            [&[length << 16 | u32::from(op)], operands.as_slice()].concat()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_words_are_read_to_their_end(
        header in prop::array::uniform2(0_u32..64),
        body in prop::collection::vec(instruction(), 0..64),
    ) {
        let [version, bound] = header;
        let mut words = vec![0x0723_0203, 0x1_0000 | version << 8, 0, bound, 0];
        words.extend(body.concat());
        let described = Description::read(&words);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let Ok(module) = Module::read(&bytes) else {
            return Ok(());
        };
        let constants = Constants::new(&module, &Specialisation::from([(1, vec![7; 9])]));
        for id in 0..16 {
            let length = |id| constants.word(id);
            let scalars = module.scalars(id, 1_000, &length);
            prop_assert!(scalars.is_none_or(|count| count <= 1_000));
            let pieces = module.pieces(id, None, 100, &length);
            prop_assert!(pieces.is_none_or(|pieces| pieces.len() <= 100));
        }
        for entry in &described.entry_points {
            if let Ok(found) = module.entry_point(&entry.name) {
                prop_assert!(module.used_variables(found).len() <= module.variables.len());
            }
        }
    }
}
