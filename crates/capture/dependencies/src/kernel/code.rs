//! Evaluates the arithmetic of kernels: an operation and its integer or boolean operands go in, its result comes out,
//! for one invocation or for 64 at once.
//!
//! A value of n bits is kept in the low n bits of a 64-bit word; the other bits are 0.

/// An arithmetic operation of up to three operands. `SDiv`, `SLess` and the like take them as signed, `UDiv`, `ULess`
/// and the like as unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Code {
    Copy,
    Add,
    Sub,
    Mul,
    /// Returns the high half of a product.
    UMulHigh,
    /// The same of signed operands.
    SMulHigh,
    /// Returns 1 where an addition wraps, else 0.
    Carry,
    /// Returns 1 where a subtraction wraps, else 0.
    Borrow,
    UDiv,
    SDiv,
    URem,
    /// Returns the remainder with the sign of the first operand.
    SRem,
    /// Returns the remainder with the sign of the second operand.
    SMod,
    Negate,
    And,
    Or,
    Xor,
    Not,
    Shl,
    Shr,
    /// Shifts right and repeats the sign.
    Sar,
    Equal,
    NotEqual,
    ULess,
    ULessEqual,
    SLess,
    SLessEqual,
    /// Returns the second operand if the first is not 0, else the third.
    Select,
    UMin,
    UMax,
    SMin,
    SMax,
    SAbs,
    /// Returns 1, 0 or -1.
    SSign,
    /// Extends the sign to 64 bits.
    SignExtend,
    /// Reverses the order of the bits.
    Reverse,
    /// Returns the number of bits that are set.
    Count,
    /// Returns the number of the lowest bit that is set, or -1.
    LowestBit,
    /// Returns the number of the highest bit that is set, or -1.
    HighestBit,
    /// Returns the number of the highest bit that differs from the sign, or -1.
    SHighestBit,
    /// Returns `a + b * c` in 64 bits, the offset of an element of an array; `b` alone has the operation's bits.
    UIndex,
    /// The same with `b` signed.
    SIndex,
}

/// The operands of an operation: single values, or arrays with a value for each invocation.
pub(crate) trait Operands {
    /// A single value, or an array with one for each invocation.
    type Result;
    /// Applies a function to the three operands, for each invocation.
    fn each(self, function: impl Fn(u64, u64, u64) -> u64) -> Self::Result;
}

/// The operands of an operation on single values, in order.
pub(crate) struct Single(pub u64, pub u64, pub u64);

impl Operands for Single {
    type Result = u64;
    fn each(self, function: impl Fn(u64, u64, u64) -> u64) -> u64 {
        function(self.0, self.1, self.2)
    }
}

/// Returns a word whose low `bits` bits are set.
pub(crate) fn mask(bits: u8) -> u64 {
    match bits {
        64.. => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

/// Returns a value of `bits` bits as a signed number.
pub(crate) fn signed(value: u64, bits: u8) -> i64 {
    let unused = 64_u32.saturating_sub(u32::from(bits.max(1)));
    ((value << unused) as i64) >> unused
}

/// Applies an operation to operands of `bits` bits, and returns its result. Results that SPIR-V leaves undefined,
/// such as that of a division by 0, are 0.
#[inline(always)]
pub(crate) fn operate<O: Operands>(code: Code, bits: u8, on: O) -> O::Result {
    let all = mask(bits);
    let s = move |value| signed(value, bits);
    match code {
        Code::Copy => on.each(|a, _, _| a),
        Code::Add => on.each(|a, b, _| a.wrapping_add(b) & all),
        Code::Sub => on.each(|a, b, _| a.wrapping_sub(b) & all),
        Code::Mul => on.each(|a, b, _| a.wrapping_mul(b) & all),
        Code::UMulHigh => on.each(|a, b, _| ((u128::from(a) * u128::from(b)) >> bits) as u64 & all),
        Code::SMulHigh => {
            on.each(|a, b, _| ((i128::from(s(a)) * i128::from(s(b))) >> bits) as u64 & all)
        }
        Code::Carry => on.each(|a, b, _| u64::from(a.wrapping_add(b) & all < a)),
        Code::Borrow | Code::ULess => on.each(|a, b, _| u64::from(a < b)),
        Code::UDiv => on.each(|a, b, _| a.checked_div(b).unwrap_or(0)),
        Code::SDiv => on.each(|a, b, _| s(a).checked_div(s(b)).unwrap_or(0) as u64 & all),
        Code::URem => on.each(|a, b, _| a.checked_rem(b).unwrap_or(0)),
        Code::SRem => on.each(|a, b, _| s(a).checked_rem(s(b)).unwrap_or(0) as u64 & all),
        Code::SMod => on.each(|a, b, _| {
            let rest = s(a).checked_rem(s(b)).unwrap_or(0);
            let turned = rest != 0 && (rest < 0) != (s(b) < 0);
            (if turned {
                rest.wrapping_add(s(b))
            } else {
                rest
            }) as u64
                & all
        }),
        Code::Negate => on.each(|a, _, _| a.wrapping_neg() & all),
        Code::And => on.each(|a, b, _| a & b),
        Code::Or => on.each(|a, b, _| a | b),
        Code::Xor => on.each(|a, b, _| a ^ b),
        Code::Not => on.each(|a, _, _| !a & all),
        Code::Shl => on.each(|a, b, _| if b < 64 { (a << b) & all } else { 0 }),
        Code::Shr => on.each(|a, b, _| if b < 64 { a >> b } else { 0 }),
        Code::Sar => on.each(|a, b, _| (s(a) >> b.min(63)) as u64 & all),
        Code::Equal => on.each(|a, b, _| u64::from(a == b)),
        Code::NotEqual => on.each(|a, b, _| u64::from(a != b)),
        Code::ULessEqual => on.each(|a, b, _| u64::from(a <= b)),
        Code::SLess => on.each(|a, b, _| u64::from(s(a) < s(b))),
        Code::SLessEqual => on.each(|a, b, _| u64::from(s(a) <= s(b))),
        Code::Select => on.each(|a, b, c| if a != 0 { b } else { c }),
        Code::UMin => on.each(|a, b, _| a.min(b)),
        Code::UMax => on.each(|a, b, _| a.max(b)),
        Code::SMin => on.each(|a, b, _| if s(a) < s(b) { a } else { b }),
        Code::SMax => on.each(|a, b, _| if s(a) > s(b) { a } else { b }),
        Code::SAbs => on.each(|a, _, _| s(a).unsigned_abs() & all),
        Code::SSign => on.each(|a, _, _| s(a).signum() as u64 & all),
        Code::SignExtend => on.each(|a, _, _| s(a) as u64),
        Code::Reverse => {
            let unused = 64_u32.saturating_sub(u32::from(bits.max(1)));
            on.each(move |a, _, _| a.reverse_bits() >> unused)
        }
        Code::Count => on.each(|a, _, _| u64::from(a.count_ones())),
        Code::LowestBit => on.each(|a, _, _| {
            let none = a == 0;
            (if none {
                u64::MAX
            } else {
                a.trailing_zeros().into()
            }) & all
        }),
        Code::HighestBit => on.each(|a, _, _| highest(a) & all),
        Code::SHighestBit => on.each(|a, _, _| {
            let a = if s(a) < 0 { !a & all } else { a };
            highest(a) & all
        }),
        Code::UIndex => on.each(|a, b, c| a.wrapping_add(b.wrapping_mul(c))),
        Code::SIndex => on.each(|a, b, c| a.wrapping_add((s(b) as u64).wrapping_mul(c))),
    }
}

/// Returns the number of the highest bit that is set, or -1.
fn highest(value: u64) -> u64 {
    value.checked_ilog2().map_or(u64::MAX, u64::from)
}

/// Reads a little-endian number from bytes. Bytes beyond the end are 0.
pub(crate) fn word(bytes: &[u8], at: u64, size: u8) -> u64 {
    let found = usize::try_from(at)
        .ok()
        .and_then(|at| bytes.get(at..at.checked_add(size.into())?));
    let mut word = [0; 8];
    if let Some(found) = found {
        word[..found.len()].copy_from_slice(found);
    }
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(code: Code, bits: u8, a: i64, b: i64) -> i64 {
        let all = mask(bits);
        let result = operate(code, bits, Single(a as u64 & all, b as u64 & all, 0));
        assert_eq!(result & !all, 0, "{code:?} leaves bits above its {bits}");
        signed(result, bits)
    }

    #[test]
    fn arithmetic_wraps_as_that_of_32_bits() {
        for (a, b) in [(7, 3), (-7, 3), (7, -3), (i32::MIN, -1), (-1, 5), (5, 0)] {
            let (x, y) = (i64::from(a), i64::from(b));
            let (ua, ub) = (a as u32, b as u32);
            assert_eq!(on(Code::Add, 32, x, y), i64::from(a.wrapping_add(b)));
            assert_eq!(on(Code::Sub, 32, x, y), i64::from(a.wrapping_sub(b)));
            assert_eq!(on(Code::Mul, 32, x, y), i64::from(a.wrapping_mul(b)));
            let high = (u64::from(ua) * u64::from(ub)) >> 32;
            assert_eq!(on(Code::UMulHigh, 32, x, y) as u32, high as u32);
            assert_eq!(on(Code::SMulHigh, 32, x, y) as i32, ((x * y) >> 32) as i32);
            assert_eq!(
                on(Code::Carry, 32, x, y) as u32 & 1,
                u32::from(ua.overflowing_add(ub).1)
            );
            if b != 0 && (a, b) != (i32::MIN, -1) {
                assert_eq!(on(Code::SDiv, 32, x, y), i64::from(a / b));
                assert_eq!(on(Code::SRem, 32, x, y), i64::from(a % b));
                assert_eq!(on(Code::UDiv, 32, x, y) as u32, ua / ub);
            }
            assert_eq!(on(Code::SAbs, 32, x, 0), i64::from(a.wrapping_abs()));
            assert_eq!(on(Code::SMin, 32, x, y), i64::from(a.min(b)));
            assert_eq!(on(Code::UMin, 32, x, y) as u32, ua.min(ub));
        }
        assert_eq!(on(Code::SMod, 32, -7, 3), 2);
        assert_eq!(on(Code::SMod, 32, 7, -3), -2);
        assert_eq!(on(Code::Sar, 16, -8, 1), -4);
        assert_eq!(on(Code::HighestBit, 32, 0, 0), -1);
        assert_eq!(on(Code::SHighestBit, 32, -1, 0), -1);
        assert_eq!(on(Code::Reverse, 8, 1, 0), -128);
        assert_eq!(on(Code::Shl, 32, 1, 31), i64::from(i32::MIN));
    }
}
