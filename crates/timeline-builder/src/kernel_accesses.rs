//! Fills the column `accesses` of the table of kernels: the code of each kernel, which is beside the trace as SPIR-V, goes
//! in, and what it says of the bytes that its invocations touch comes out.

use gapscope_files::ContainedPath;
use gapscope_spirv::{Module, Specialisation, Sum, Symbol};
use gapscope_trace::accesses::Symbol as TraceSymbol;
use gapscope_trace::accesses::{
    AccessSum, AccessedBinding, CertainAccess, IndexBound, KernelAccesses, MostBytes,
};
use gapscope_trace::tables::{Kernels, Table};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The greatest size of a module that is looked at. Larger ones are no kernels that touch each element once.
const MAX_CODE_BYTES: u64 = 4 << 20;
/// The greatest length of a text; longer ones are left out.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Fills the column from the code in `sources`, a folder. Kernels without SPIR-V there are left as they are.
pub fn fill(sources: &ContainedPath, kernels: &mut Kernels) {
    let mut modules: FxHashMap<Arc<str>, Option<Module>> = FxHashMap::default();
    let mut of_row = |row: usize| -> Option<Arc<str>> {
        let hash = kernels.source[row].as_ref()?;
        let entry = kernels.entry_point[row].as_ref()?;
        let module = modules.entry(Arc::clone(hash)).or_insert_with(|| {
            let code = sources.join(format!("{hash}.spv"));
            let code = code.read(MAX_CODE_BYTES).ok()?;
            Module::read(&code).ok()
        });
        let specialisation = specialisation(kernels.specialisation[row].as_deref().unwrap_or(""))?;
        let code = gapscope_spirv::KernelAccesses::read(module.as_ref()?, entry, &specialisation)?;
        let text = accesses(code).to_string();
        (text.len() <= MAX_TEXT_BYTES).then(|| text.into())
    };
    kernels.accesses = (0..kernels.len()).map(&mut of_row).collect();
}

/// Reads specialisation constants as the trace has them: `id:hex`, joined by commas.
fn specialisation(text: &str) -> Option<Specialisation> {
    let constant = |text: &str| {
        let (id, hex) = text.split_once(':')?;
        let digits = hex.as_bytes().chunks(2);
        let byte = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.map(byte).collect();
        Some((id.parse().ok()?, bytes?))
    };
    let constants = text.split(',').filter(|text| !text.is_empty());
    constants.map(constant).collect()
}

/// Converts what the code says into the trace's words.
fn accesses(code: gapscope_spirv::KernelAccesses) -> KernelAccesses {
    let certain = code.certain.into_iter().map(|access| CertainAccess {
        at: AccessedBinding {
            set: access.set,
            binding: access.binding,
            writes: access.writes,
        },
        bytes: access.bytes,
        address: sum(access.address),
        below: (access.below.into_iter())
            .map(|(index, length)| IndexBound {
                index: sum(index),
                array: (length.set, length.binding),
                offset: length.offset,
                stride: length.stride,
            })
            .collect(),
    });
    let most = code.most.into_iter().map(|most| MostBytes {
        at: AccessedBinding {
            set: most.set,
            binding: most.binding,
            writes: most.writes,
        },
        bytes: most.bytes,
    });
    KernelAccesses {
        threads: code.local_size,
        certain: certain.collect(),
        most: most.collect(),
    }
}

fn sum(sum: Sum) -> AccessSum {
    let symbol = |symbol: Symbol| match symbol {
        Symbol::Group(axis) => TraceSymbol::Group(axis),
        Symbol::Local(axis) => TraceSymbol::Local(axis),
        Symbol::Groups(axis) => TraceSymbol::Groups(axis),
    };
    let products = sum
        .into_iter()
        .map(|(symbols, factor)| (factor, symbols.into_iter().map(symbol).collect()));
    AccessSum(products.collect())
}
