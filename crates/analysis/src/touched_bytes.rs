//! Computes how many bytes of its bindings a dispatch certainly touches: the accesses that the code of its kernel makes in
//! each invocation, the workgroups and the sizes of the bound ranges go in, and a lower bound comes out.
//!
//! An address is a sum over the numbers of workgroup and invocation. Each of these numbers, a dimension, adds a step as
//! often as there are workgroups or invocations. Different sums are different bytes, and they are counted without
//! walking over them.

use gapscope_timeline::bound_bytes::BoundRange;
use gapscope_trace::accesses::{AccessSum, AccessedBinding, CertainAccess, KernelAccesses, Symbol};

/// The facts of a dispatch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// What the kernel's code says.
    pub(crate) code: &'a KernelAccesses,
    /// Workgroups by axis.
    pub(crate) grid: [u32; 3],
    /// The bound ranges.
    pub(crate) ranges: &'a [BoundRange],
}

/// A dimension: its step, and the number of its values.
type Dimension = (u64, u64);

/// A sum as dimensions, with the part that is the same in all invocations.
struct Steps {
    /// The step and the number of values of each dimension with more than one value; those of workgroups come first.
    dimensions: [Dimension; 6],
    constant: u64,
}

impl Launch<'_> {
    /// Returns the number of invocations.
    fn invocations(&self) -> u64 {
        let sizes = self.grid.into_iter().chain(self.code.threads);
        sizes.map(u64::from).fold(1, u64::saturating_mul)
    }

    /// Returns the most bytes that the dispatch can touch of a binding by its number of invocations; `None` where the
    /// code does not tell.
    pub(crate) fn most(&self, at: AccessedBinding) -> Option<u64> {
        let most = self.code.most.iter().find(|most| most.at == at)?;
        Some(u64::from(most.bytes).saturating_mul(self.invocations()))
    }

    /// Returns the bytes of a binding that are certainly touched; `None` where no access is certain.
    pub(crate) fn certain(&self, at: AccessedBinding) -> Option<u64> {
        let range = self.range((at.set, at.binding))?;
        let accesses: Vec<&CertainAccess> = (self.code.certain.iter())
            .filter(|access| access.at == at)
            .collect();
        let each = accesses.iter().map(|access| {
            let steps = self.steps(&access.address)?;
            let window = Window::around(access, &accesses, &steps, self);
            let limit = self.limit(access, &steps, window.end, range)?;
            let (count, unit) = count(&steps.dimensions, limit);
            // Windows of neighbours may overlap.
            let bytes = match window.end - window.start <= unit {
                true => window.bytes,
                false => unit.min(u64::from(access.bytes)),
            };
            Some(count.saturating_mul(bytes))
        });
        each.flatten().max()
    }

    /// Returns the bytes of the only range that is bound here; `None` for none or an array.
    fn range(&self, (set, binding): (u32, u32)) -> Option<u64> {
        let mut all = (self.ranges.iter()).filter(|of| (of.set, of.binding) == (set, binding));
        let range = all.next()?;
        all.next().is_none().then_some(range.bytes)
    }

    /// Returns the steps of a sum; `None` where it is none of this kind, or wraps in 32 bits.
    fn steps(&self, sum: &AccessSum) -> Option<Steps> {
        let counts = [self.grid, self.code.threads].concat();
        let mut steps = Steps {
            dimensions: [(0, 1); 6],
            constant: 0,
        };
        for (factor, symbols) in &sum.0 {
            let mut step = *factor;
            let mut dimension = None;
            for symbol in symbols {
                let (place, is_count) = match symbol {
                    Symbol::Groups(axis) => (usize::from(*axis), true),
                    Symbol::Group(axis) => (usize::from(*axis), false),
                    Symbol::Local(axis) => (3 + usize::from(*axis), false),
                };
                match is_count {
                    true => step = step.checked_mul(u64::from(*counts.get(place)?))?,
                    false if dimension.is_some() => return None,
                    false => dimension = Some(place),
                }
            }
            match dimension {
                None => steps.constant = steps.constant.checked_add(step)?,
                Some(place) => {
                    let total = &mut steps.dimensions[place];
                    total.0 = total.0.checked_add(step)?;
                }
            }
        }
        let mut greatest = steps.constant;
        for ((step, values), count) in steps.dimensions.iter_mut().zip(counts) {
            *values = u64::from(count);
            match count {
                0 => return None,
                1 => *step = 0,
                _ => greatest = greatest.checked_add(step.checked_mul(*values - 1)?)?,
            }
        }
        (greatest <= u64::from(u32::MAX)).then_some(steps)
    }

    /// Returns the value that sums of steps, without the constant, must be below for the access to be made in the
    /// bound range; `None` where a condition is none of this kind.
    fn limit(&self, access: &CertainAccess, steps: &Steps, end: u64, range: u64) -> Option<u64> {
        let mut limit = (range + 1).saturating_sub(end);
        for bound in &access.below {
            let index = self.steps(&bound.index)?;
            let bytes = self.range(bound.array)?;
            let length = bytes.saturating_sub(bound.offset.into()) / u64::from(bound.stride.max(1));
            let left = length.saturating_sub(index.constant);
            let pairs = || steps.dimensions.iter().zip(&index.dimensions);
            let scale = match pairs().find(|(_, (step, _))| *step > 0) {
                Some(((address, _), (step, _))) => address / step,
                None if left > 0 => continue,
                None => return Some(0),
            };
            if scale == 0 || pairs().any(|(address, index)| address.0 != index.0 * scale) {
                return None;
            }
            limit = limit.min(left.saturating_mul(scale));
        }
        Some(limit)
    }
}

/// The bytes that accesses with the same steps touch in one invocation.
struct Window {
    start: u64,
    end: u64,
    bytes: u64,
}

impl Window {
    /// Joins an access with all others that differ in the constant part of the address alone, such as those to the
    /// parts of a vector.
    fn around(
        access: &CertainAccess,
        all: &[&CertainAccess],
        steps: &Steps,
        launch: &Launch,
    ) -> Window {
        let alike = all.iter().filter(|other| other.below == access.below);
        let mut parts: Vec<(u64, u64)> = alike
            .filter_map(|other| {
                let other_steps = launch.steps(&other.address)?;
                let is_alike = other_steps.dimensions == steps.dimensions;
                let start = other_steps.constant;
                is_alike.then_some((start, start + u64::from(other.bytes)))
            })
            .collect();
        parts.sort_unstable();
        let mut window = Window {
            start: parts.first().map_or(0, |part| part.0),
            end: 0,
            bytes: 0,
        };
        for (start, end) in parts {
            window.bytes += end.saturating_sub(start.max(window.end));
            window.end = window.end.max(end);
        }
        window
    }
}

/// Returns a lower bound for how many different sums of steps are below a limit, and the least step.
fn count(dimensions: &[Dimension; 6], limit: u64) -> (u64, u64) {
    let mut dimensions: Vec<Dimension> = (dimensions.iter().copied())
        .filter(|(step, values)| *step > 0 && *values > 1)
        .collect();
    dimensions.sort_unstable();
    let Some((unit, _)) = dimensions.first().copied() else {
        return (u64::from(limit > 0), u64::MAX);
    };
    // The greatest sum so far. The first dimensions give all multiples of the unit up to it.
    let mut span = 0;
    let mut apart_from = Vec::new();
    for (step, values) in dimensions {
        let is_contiguous = apart_from.is_empty();
        if is_contiguous && step % unit == 0 && step <= span + unit {
            span += step * (values - 1);
        } else if step >= span + unit {
            if is_contiguous {
                apart_from.push((unit, span / unit + 1));
            }
            apart_from.push((step, values));
            span += step * (values - 1);
        }
        // Sums of another dimension would meet those so far: of its values the first alone counts.
    }
    let count = match apart_from.is_empty() {
        true => (span / unit + 1).min(limit.div_ceil(unit)),
        false => apart(&apart_from, limit),
    };
    (count, unit)
}

/// Returns how many sums of steps are below a limit, where each step is greater than all sums of those before.
fn apart(dimensions: &[Dimension], limit: u64) -> u64 {
    let sums = |dimensions: &[Dimension]| dimensions.iter().map(|(_, values)| values).product();
    let greatest = |dimensions: &[Dimension]| -> u64 {
        let each = dimensions.iter().map(|(step, values)| step * (values - 1));
        each.sum()
    };
    let Some(((step, values), rest)) = dimensions.split_last() else {
        return u64::from(limit > 0);
    };
    let inner = greatest(rest);
    match limit.checked_sub(inner + 1) {
        None => apart(rest, limit),
        Some(left) => {
            let times: u64 = sums(rest);
            times.saturating_mul((*values).min(left / step + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::tables::Access;
    use std::collections::BTreeSet;

    /// The bytes that a dispatch certainly touches of its first binding, and what walking over all invocations finds.
    fn both(code: &str, grid: [u32; 3], bytes: &[u64]) -> (Option<u64>, u64) {
        let code: KernelAccesses = code.parse().unwrap();
        let ranges: Vec<BoundRange> = (0..)
            .zip(bytes)
            .map(|(binding, bytes)| BoundRange {
                set: 0,
                binding,
                bytes: *bytes,
                access: Access::ReadWrite,
            })
            .collect();
        let launch = Launch {
            code: &code,
            grid,
            ranges: &ranges,
        };
        let at = code.certain[0].at;
        (launch.certain(at), walked(&launch, at))
    }

    fn walked(launch: &Launch, at: AccessedBinding) -> u64 {
        let mut touched = BTreeSet::new();
        let [nx, ny, nz] = launch.grid;
        let [tx, ty, tz] = launch.code.threads;
        let axes = |sizes: [u32; 3]| {
            (0..sizes[2]).flat_map(move |z| {
                (0..sizes[1]).flat_map(move |y| (0..sizes[0]).map(move |x| [x, y, z]))
            })
        };
        for group in axes([nx, ny, nz]) {
            for local in axes([tx, ty, tz]) {
                let value = |sum: &AccessSum| -> u64 {
                    let products = sum.0.iter().map(|(factor, symbols)| {
                        let numbers = symbols.iter().map(|symbol| match symbol {
                            Symbol::Group(axis) => group[usize::from(*axis)],
                            Symbol::Local(axis) => local[usize::from(*axis)],
                            Symbol::Groups(axis) => launch.grid[usize::from(*axis)],
                        });
                        factor * numbers.map(u64::from).product::<u64>()
                    });
                    products.sum()
                };
                for access in launch.code.certain.iter().filter(|access| access.at == at) {
                    let is_made = access.below.iter().all(|bound| {
                        let bytes = launch.ranges[bound.array.1 as usize].bytes;
                        value(&bound.index)
                            < bytes.saturating_sub(bound.offset.into()) / u64::from(bound.stride)
                    });
                    let start = value(&access.address);
                    let end = start + u64::from(access.bytes);
                    if is_made && end <= launch.ranges[at.binding as usize].bytes {
                        touched.extend(start..end);
                    }
                }
            }
        }
        touched.len() as u64
    }

    const LINEAR: &str =
        "threads 8.1.1; read 0.0 4 at 4*l0+32*w0+32*n0*w1 if 1*l0+8*w0+8*n0*w1 < 0.1+0/4";

    #[test]
    fn elements_are_counted_as_walking_over_all_invocations_counts_them() {
        let cases: [(&str, [u32; 3], &[u64]); 13] = [
            (LINEAR, [4, 1, 1], &[128, 128]),
            // The last workgroup is not full; the input is shorter than the output; a grid of two dimensions.
            (LINEAR, [4, 1, 1], &[128, 100]),
            (LINEAR, [4, 1, 1], &[50, 128]),
            (LINEAR, [3, 2, 1], &[1000, 140]),
            (
                "threads 8.1.1; read 0.0 4 at 4*l0+32*w0",
                [3, 2, 1],
                &[1000],
            ),
            ("threads 8.1.1; read 0.0 16 at 0", [3, 2, 1], &[1000]),
            // The parts of a vector; rows of a matrix with a hole behind each; every second element.
            (
                "threads 8.1.1; read 0.0 4 at 16*l0+128*w0; read 0.0 4 at 16*l0+128*w0+4; read 0.0 4 at 16*l0+128*w0+8",
                [2, 1, 1],
                &[240],
            ),
            (
                "threads 4.2.1; read 0.0 4 at 4*l0+16*w0+256*l1+512*w1",
                [2, 2, 1],
                &[1000],
            ),
            ("threads 8.1.1; read 0.0 4 at 8*l0+64*w0", [2, 1, 1], &[100]),
            // Neighbours share bytes; workgroups overlap.
            ("threads 8.1.1; read 0.0 16 at 4*l0+32*w0", [2, 1, 1], &[76]),
            (
                "threads 8.1.1; read 0.0 4 at 4*l0+16*w0",
                [3, 1, 1],
                &[1000],
            ),
            // Rows that are no multiple of an element apart meet.
            ("threads 3.1.1; read 0.0 6 at 14*w0+16*w1", [2, 3, 1], &[20]),
            (
                "threads 2.2.2; write 0.0 4 at 4*l0+8*l1+16*l2+32*w2",
                [1, 1, 3],
                &[90],
            ),
        ];
        for (code, grid, bytes) in cases {
            let (counted, walked) = both(code, grid, bytes);
            let counted = counted.unwrap();
            // Where accesses overlap the tail is not counted.
            let slack = match code {
                code if code.contains("16 at 4") => 12,
                code if code.contains("14*w0") => 8,
                _ => 0,
            };
            assert!(counted <= walked, "{code}: {counted} of {walked}");
            assert!(counted + slack >= walked, "{code}: {counted} of {walked}");
        }
    }

    #[test]
    fn bytes_that_are_not_understood_are_not_certain() {
        let none =
            |code: &str, grid, bytes: &[u64]| assert_eq!(both(code, grid, bytes).0, None, "{code}");
        // The condition is on another index; sums wrap; two numbers are multiplied; the condition is on a multiple.
        none(
            "threads 8.1.1; read 0.0 4 at 4*l0+32*w0 if 1*w0 < 0.1+0/4",
            [2, 1, 1],
            &[64, 64],
        );
        none(
            "threads 8.1.1; read 0.0 4 at 4*l0+4294967292",
            [2, 1, 1],
            &[64],
        );
        none("threads 8.1.1; read 0.0 4 at 4*l0*w0", [2, 1, 1], &[64]);
        none(
            "threads 8.1.1; read 0.0 4 at 4*l0 if 3*l0 < 0.1+0/4",
            [2, 1, 1],
            &[64, 64],
        );
    }

    use proptest::prelude::*;
    proptest! {
        #[test]
        fn never_are_more_bytes_certain_than_are_touched(
            steps in proptest::collection::vec(0u64..40, 6),
            grid in [1u32..4, 1u32..4, 1u32..3],
            threads in [1u32..5, 1u32..4, 1u32..3],
            size in 1u32..20, other in 1u32..20, offset in 0u64..30, bytes in 0u64..400, bound in 0u64..400, stride in 1u32..9,
        ) {
            let [a, b, c, d, e, f] = steps[..] else { unreachable!() };
            let [x, y, z] = threads;
            let index = format!("{a}*w0+{b}*w1+{c}*w2+{d}*l0+{e}*l1+{f}*l2");
            let doubled = format!("{}*w0+{}*w1+{}*w2+{}*l0+{}*l1+{}*l2", 2*a, 2*b, 2*c, 2*d, 2*e, 2*f);
            let code = format!(
                "threads {x}.{y}.{z}; read 0.0 {size} at {doubled} if {index} < 0.1+3/{stride}; read 0.0 {other} at {doubled}+{offset} if {index} < 0.1+3/{stride}"
            );
            let (counted, walked) = both(&code, grid, &[bytes, bound]);
            prop_assert!(counted.unwrap_or(0) <= walked, "{counted:?} of {walked}: {code}");
        }
    }
}
