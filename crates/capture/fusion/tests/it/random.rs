//! Merges random chains, and checks that their results stay equal.

use proptest::prelude::*;

use crate::made::*;

const EXPRESSIONS: [&str; 8] = [
    "a[i] * 1.5",
    "a[i] + b[i]",
    "a[i] * b[i]",
    "max(a[i], b[i])",
    "sqrt(abs(a[i]))",
    "a[i] * 0.1 + 0.7",
    "select(a[i], b[i], a[i] < 1.0)",
    "1.0 / (1.0 + abs(a[i]))",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn merged_chains_give_the_same_bits(
        steps in prop::collection::vec((0..EXPRESSIONS.len(), 0..5_u32, 0..5_u32), 2..6),
    ) {
        let mut made = Made::new();
        let mut commands = Vec::new();
        let mut last = 0;
        for (expression, other, to) in steps {
            let text = EXPRESSIONS[expression];
            // A kernel in place has only one binding that is written; here there are two.
            let to = 5 + (to + u32::from(to + 5 == last)) % 6;
            let second = if other + 5 == to { other } else { other + 5 };
            let buffers = match text.contains("b[i]") {
                true => vec![last, second, to],
                false => vec![last, to],
            };
            if to == last || second == to {
                continue;
            }
            let count = buffers.len() as u32;
            let kernel = made.kernel(&elementwise(text), count, 0);
            commands.push(dispatch(kernel, &buffers));
            last = to;
        }
        let count = commands.len();
        let (_folder, capture) = made.run(commands);
        let chains = check_merged(&capture);
        prop_assert_eq!(chains, if count > 1 { vec![count] } else { vec![] });
    }
}
