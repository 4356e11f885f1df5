//! The text of the column `accesses` of `kernels`: what the code of a kernel says of the bytes that its invocations touch
//! through bindings. [`KernelAccesses`] is written by the recorder, and read by analyses.
//!
//! Entries are joined by `; `:
//! - `threads 256.1.1`: the threads of a workgroup, with the pipeline's specialisation.
//! - `read 0.1 4 at 4*l0+1024*w0+16` reads 4 bytes of binding 1 of set 0 at this address in each invocation. A sum has
//!   the symbols `w` (number of the workgroup), `l` (number of the invocation in it) and `n` (how many workgroups the
//!   dispatch has), each with its axis. ` if l0+256*w0 < 0.2+0/4`: only where the sum is below the number of elements of 4
//!   bytes from byte 0 of binding 2 of set 0 on.
//! - `write 0.2 most 4`: an invocation writes at most 4 bytes of that binding.

use std::fmt;
use std::str::FromStr;

/// What a kernel's code says of the bytes that its invocations touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelAccesses {
    /// The threads of a workgroup, with the pipeline's specialisation.
    pub threads: [u32; 3],
    /// Accesses that each invocation makes, or each whose index is in the bounds of an array.
    pub certain: Vec<CertainAccess>,
    /// The most bytes that an invocation touches of a binding.
    pub most: Vec<MostBytes>,
}

/// A binding in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessedBinding {
    /// Descriptor set.
    pub set: u32,
    /// Binding in the set.
    pub binding: u32,
    /// Whether it is written, and not read.
    pub writes: bool,
}

/// An access that is certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertainAccess {
    /// The binding and the direction.
    pub at: AccessedBinding,
    /// The number of bytes.
    pub bytes: u32,
    /// The first byte in the bound range.
    pub address: AccessSum,
    /// The conditions of the access.
    pub below: Vec<IndexBound>,
}

/// The condition that an index is in the bounds of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBound {
    /// The index.
    pub index: AccessSum,
    /// The set and the binding of the array.
    pub array: (u32, u32),
    /// The first byte of the array in the bound range.
    pub offset: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// The most bytes that an invocation touches of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MostBytes {
    /// The binding and the direction.
    pub at: AccessedBinding,
    /// The number of bytes.
    pub bytes: u32,
}

/// A sum of products of a factor and symbols.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessSum(pub Vec<(u64, Vec<Symbol>)>);

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

/// The text is none of this column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` describes no access of a kernel")]
pub struct NoAccess(String);

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Symbol::Group(axis) => write!(f, "w{axis}"),
            Symbol::Local(axis) => write!(f, "l{axis}"),
            Symbol::Groups(axis) => write!(f, "n{axis}"),
        }
    }
}

impl fmt::Display for AccessSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        for (place, (factor, symbols)) in self.0.iter().enumerate() {
            let plus = if place == 0 { "" } else { "+" };
            write!(f, "{plus}{factor}")?;
            symbols
                .iter()
                .try_for_each(|symbol| write!(f, "*{symbol}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for AccessedBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.writes { "write" } else { "read" };
        write!(f, "{direction} {}.{}", self.set, self.binding)
    }
}

impl fmt::Display for KernelAccesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.threads;
        write!(f, "threads {x}.{y}.{z}")?;
        for access in &self.certain {
            write!(f, "; {} {} at {}", access.at, access.bytes, access.address)?;
            for IndexBound {
                index,
                array: (set, binding),
                offset,
                stride,
            } in &access.below
            {
                write!(f, " if {index} < {set}.{binding}+{offset}/{stride}")?;
            }
        }
        for most in &self.most {
            write!(f, "; {} most {}", most.at, most.bytes)?;
        }
        Ok(())
    }
}

impl FromStr for KernelAccesses {
    type Err = NoAccess;

    fn from_str(text: &str) -> Result<KernelAccesses, NoAccess> {
        let refused = |entry: &str| NoAccess(entry.to_owned());
        let mut entries = text.split("; ");
        let first = entries.next().unwrap_or_default();
        let threads = first.strip_prefix("threads ").map(|sizes| sizes.split('.'));
        let threads = threads.and_then(|sizes| {
            let sizes: Option<Vec<u32>> = sizes.map(|size| size.parse().ok()).collect();
            sizes?.try_into().ok()
        });
        let mut accesses = KernelAccesses {
            threads: threads.ok_or_else(|| refused(first))?,
            ..KernelAccesses::default()
        };
        for entry in entries {
            accesses.add(entry).ok_or_else(|| refused(entry))?;
        }
        Ok(accesses)
    }
}

impl KernelAccesses {
    /// Reads one entry.
    fn add(&mut self, entry: &str) -> Option<()> {
        let mut words = entry.split(' ');
        let writes = match words.next()? {
            "read" => false,
            "write" => true,
            _ => return None,
        };
        let (set, binding) = place(words.next()?)?;
        let at = AccessedBinding {
            set,
            binding,
            writes,
        };
        let word = words.next()?;
        if word == "most" {
            let bytes = words.next()?.parse().ok()?;
            self.most.push(MostBytes { at, bytes });
            return words.next().is_none().then_some(());
        }
        let bytes = word.parse().ok()?;
        let address = words.next().filter(|word| *word == "at");
        let address = address.and_then(|_| sum(words.next()?))?;
        let mut below = Vec::new();
        while let Some(word) = words.next() {
            let index = sum((word == "if").then(|| words.next())??)?;
            let array = words.next().filter(|word| *word == "<");
            let array = array.and_then(|_| words.next())?;
            let (array, layout) = array.split_once('+')?;
            let (offset, stride) = layout.split_once('/')?;
            below.push(IndexBound {
                index,
                array: place(array)?,
                offset: offset.parse().ok()?,
                stride: stride.parse().ok()?,
            });
        }
        self.certain.push(CertainAccess {
            at,
            bytes,
            address,
            below,
        });
        Some(())
    }
}

/// Reads the numbers of a set and a binding.
fn place(text: &str) -> Option<(u32, u32)> {
    let (set, binding) = text.split_once('.')?;
    Some((set.parse().ok()?, binding.parse().ok()?))
}

fn sum(text: &str) -> Option<AccessSum> {
    if text == "0" {
        return Some(AccessSum::default());
    }
    let product = |text: &str| {
        let mut parts = text.split('*');
        let factor = parts.next()?.parse().ok()?;
        let symbols: Option<Vec<Symbol>> = parts.map(symbol).collect();
        Some((factor, symbols?))
    };
    let products: Option<Vec<(u64, Vec<Symbol>)>> = text.split('+').map(product).collect();
    products.map(AccessSum)
}

fn symbol(text: &str) -> Option<Symbol> {
    let (kind, axis) = text.split_at_checked(1)?;
    let axis = axis.parse().ok().filter(|axis| *axis < 3)?;
    match kind {
        "w" => Some(Symbol::Group(axis)),
        "l" => Some(Symbol::Local(axis)),
        "n" => Some(Symbol::Groups(axis)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_read_as_they_were_written() {
        let text = "threads 256.1.1; read 0.0 4 at 4*l0+1024*w0+1024*w1*n0 if 1*l0+256*w0+256*w1*n0 < 0.1+0/4; write 0.1 16 at 0; read 0.0 most 4";
        let accesses: KernelAccesses = text.parse().unwrap();
        assert_eq!((accesses.certain.len(), accesses.most.len()), (2, 1));
        assert_eq!(accesses.certain[0].below[0].array, (0, 1));
        assert_eq!(accesses.to_string(), text);
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "threads 1.1",
            "x",
            "read",
            "read 0",
            "read 0.0",
            "read 0.0 4",
            "read 0.0 4 at",
            "read 0.0 4 at q0",
            "read 0.0 4 at 4*w3",
            "read 0.0 4 at 4 if",
            "read 0.0 4 at 4 if 1 <",
            "read 0.0 4 at 4 if 1 < 0.1",
            "read 0.0 most",
            "read 0.0 most 4 5",
            "é",
            "read 0.0 4 at 4*é",
        ] {
            assert!(text.parse::<KernelAccesses>().is_err(), "{text}");
            let text = format!("threads 1.1.1; {text}");
            assert!(text.parse::<KernelAccesses>().is_err(), "{text}");
        }
    }
}
