//! A compact column of numbers that are mostly small.

use gapscope_trace::lookup::NONE;

/// A column of numbers by row, which may be [`NONE`]. Each number takes two bytes as long as all of them fit into
/// two.
#[derive(Debug)]
pub struct Numbers(Width);

/// The numbers in the width that the greatest so far needs.
#[derive(Debug)]
enum Width {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers(Width::Narrow(Vec::new()))
    }
}

/// The two-byte form of [`NONE`].
const NARROW_NONE: u16 = u16::MAX;

impl Numbers {
    #[inline]
    pub(super) fn push(&mut self, number: u32) {
        match &mut self.0 {
            Width::Narrow(numbers) => match narrow(number) {
                Some(number) => numbers.push(number),
                None => {
                    self.widen();
                    self.push(number);
                }
            },
            Width::Wide(numbers) => numbers.push(number),
        }
    }

    /// Gives each number four bytes.
    #[cold]
    fn widen(&mut self) {
        let numbers = self.iter();
        self.0 = Width::Wide(numbers.collect());
    }

    /// Returns the number of a row, which must exist.
    #[inline]
    pub fn at(&self, row: usize) -> u32 {
        match &self.0 {
            Width::Narrow(numbers) => wide(numbers[row]),
            Width::Wide(numbers) => numbers[row],
        }
    }

    /// Returns the numbers of all rows in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let (narrow, all): (&[u16], &[u32]) = match &self.0 {
            Width::Narrow(numbers) => (numbers, &[]),
            Width::Wide(numbers) => (&[], numbers),
        };
        narrow
            .iter()
            .map(|number| wide(*number))
            .chain(all.iter().copied())
    }

    /// Reserves memory for `rows` numbers, if there is enough.
    pub(super) fn reserve(&mut self, rows: usize) {
        let _ = match &mut self.0 {
            Width::Narrow(numbers) => numbers.try_reserve_exact(rows),
            Width::Wide(numbers) => numbers.try_reserve_exact(rows),
        };
    }
}

/// Returns the two-byte form of a number, or `None` where the number does not fit.
#[inline]
fn narrow(number: u32) -> Option<u16> {
    match number {
        NONE => Some(NARROW_NONE),
        number => u16::try_from(number)
            .ok()
            .filter(|number| *number != NARROW_NONE),
    }
}

/// Returns the number of a two-byte form.
#[inline]
fn wide(number: u16) -> u32 {
    match number {
        NARROW_NONE => NONE,
        number => u32::from(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_they_were_pushed() {
        let most = u32::from(u16::MAX);
        let few = vec![0, 7, NONE, most - 1];
        let many = [
            few.clone(),
            vec![most, NONE, 0],
            vec![most + 1, NONE - 1, 3],
        ]
        .concat();
        for (pushed, is_narrow) in [(few, true), (many, false)] {
            let mut numbers = Numbers::default();
            pushed.iter().for_each(|number| numbers.push(*number));
            assert_eq!(matches!(numbers, Numbers(Width::Narrow(_))), is_narrow);
            assert_eq!(numbers.iter().count(), pushed.len());
            assert!(numbers.iter().eq(pushed.iter().copied()));
            assert!((0..pushed.len()).all(|row| numbers.at(row) == pushed[row]));
        }
    }
}
