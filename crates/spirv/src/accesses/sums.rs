//! Sums over the numbers of an invocation and of its workgroup, with which addresses are calculated.

use std::collections::BTreeMap;

/// The most terms of a sum; longer ones are not followed.
const MAX_TERMS: usize = 16;

/// A number that differs between invocations or dispatches, with its axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// The number of the workgroup.
    Group(u8),
    /// The number of the invocation in its workgroup.
    Local(u8),
    /// How many workgroups the dispatch has.
    Groups(u8),
}

/// A sum of products: the factor of each product of symbols. The product of none is 1.
pub type Sum = BTreeMap<Vec<Symbol>, u64>;

pub fn constant(value: u64) -> Sum {
    Sum::from([(Vec::new(), value)])
}

/// Returns the number that a sum is, where it is the same for all invocations.
pub fn number(sum: &Sum) -> Option<u64> {
    match sum.len() {
        0 => Some(0),
        1 => sum.get(&Vec::new()).copied(),
        _ => None,
    }
}

pub fn add(a: &Sum, b: &Sum) -> Option<Sum> {
    let mut sum = a.clone();
    for (symbols, factor) in b {
        let total = sum.entry(symbols.clone()).or_default();
        *total = total.checked_add(*factor)?;
    }
    bounded(sum)
}

pub fn multiply(a: &Sum, b: &Sum) -> Option<Sum> {
    let mut product = Sum::new();
    for (left, factor) in a {
        for (right, other) in b {
            let mut symbols: Vec<Symbol> = left.iter().chain(right).copied().collect();
            symbols.sort_unstable();
            let total = product.entry(symbols).or_default();
            *total = total.checked_add(factor.checked_mul(*other)?)?;
        }
    }
    bounded(product)
}

/// Drops products with the factor 0, and gives up on sums that wrap in 32 bits or are too long.
fn bounded(mut sum: Sum) -> Option<Sum> {
    sum.retain(|_, factor| *factor > 0);
    let is_small = |factor: &u64| *factor <= u64::from(u32::MAX);
    let is_short = sum.keys().all(|symbols| symbols.len() <= 3) && sum.len() <= MAX_TERMS;
    (is_short && sum.values().all(is_small)).then_some(sum)
}
