//! Parses the arguments of a device's events in files of XLA's profiler (JAX, TensorFlow). These files are Chrome's JSON,
//! as those of PyTorch's profiler (Kineto) are, but have other arguments.

use super::json::{bare, members};
use super::work::correlation;
use crate::details::{self, detail, sizes};
use crate::inventory::KernelFacts;
use crate::profile::{Correlation, DeviceWorkKind};
use crate::transfers;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::TransferKind;

/// The arguments of a piece of work.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct XlaArgs<'a> {
    /// The number that joins a call with its work.
    pub(super) correlation: Option<Correlation>,
    /// The operation of the program that the work belongs to, as names joined by `/`.
    pub(super) scope: &'a [u8],
    /// The details of a kernel, such as
    /// `regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:128,1,1 occ_pct:100`.
    kernel: &'a str,
    /// The details of a copy, such as `kind_src:pinned kind_dst:device size:4 dest:0 async:1`.
    copy: &'a str,
    /// The details of a fill, such as `kind:device num_bytes:4 async:1`.
    fill: &'a str,
}

impl<'a> XlaArgs<'a> {
    /// Reads the object of arguments. The scope is `name`, else `tf_op`, as in XSpace files, else TensorFlow's
    /// `annotation`; work without these has its HLO module (the compiled program) as scope.
    pub(super) fn parse(args: &'a [u8]) -> XlaArgs<'a> {
        let mut parsed = XlaArgs::default();
        let text = |value| std::str::from_utf8(bare(value)).unwrap_or_default();
        let mut scopes: [&[u8]; 4] = [b""; 4];
        for (key, value) in members(args) {
            match key {
                b"correlation_id" => parsed.correlation = correlation(value),
                b"name" => scopes[0] = bare(value),
                b"tf_op" => scopes[1] = bare(value),
                b"annotation" => scopes[2] = bare(value),
                b"hlo_module" => scopes[3] = bare(value),
                b"kernel_details" => parsed.kernel = text(value),
                b"memcpy_details" => parsed.copy = text(value),
                b"memset_details" => parsed.fill = text(value),
                _ => {}
            }
        }
        parsed.scope = scopes
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        parsed
    }

    /// Returns the transfer that the work is, by its details or the beginning of its name; `None` for a kernel.
    pub(super) fn transfer(&self, name: &str) -> Option<DeviceWorkKind> {
        let fill =
            !self.fill.is_empty() || name.starts_with("Memset") || name.starts_with("memset");
        let copy =
            !self.copy.is_empty() || name.starts_with("Memcpy") || name.starts_with("memcpy");
        if !fill && !copy {
            return None;
        }
        let details = if fill { self.fill } else { self.copy };
        let kind = transfers::kind(name);
        let kind = if fill { TransferKind::Fill } else { kind };
        let place = match kind {
            TransferKind::HostToDevice => detail(details, "kind_src"),
            TransferKind::DeviceToHost => detail(details, "kind_dst"),
            _ => None,
        };
        Some(DeviceWorkKind::Transfer {
            kind,
            bytes: details::bytes(details),
            host_memory: place.and_then(transfers::place),
        })
    }

    /// Returns the facts of the kernel with this name; their process is the default, which the importer's output replaces.
    pub(super) fn kernel_facts(&self, name: TextId) -> KernelFacts {
        let number = |key| detail(self.kernel, key).and_then(|n| n.parse().ok());
        KernelFacts {
            entry_point: Some(name),
            local: self.triple("block"),
            registers: number("regs").filter(|registers| *registers > 0),
            static_shared_bytes: number("static_shared"),
            dynamic_shared_bytes: number("dynamic_shared"),
            ..KernelFacts::new(ProcessId::default(), name)
        }
    }

    /// Returns the numbers of workgroups in x, y and z.
    pub(super) fn groups(&self) -> [Option<u32>; 3] {
        self.triple("grid")
    }

    /// Returns three sizes of a kernel's details; a size of 0 is unknown.
    fn triple(&self, key: &str) -> [Option<u32>; 3] {
        let sizes = sizes(detail(self.kernel, key));
        sizes.map(|size| size.filter(|size| *size > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::build::Labels;
    use gapscope_trace::tables::MemoryPlace;

    #[test]
    fn details_are_read() {
        let args = XlaArgs::parse(
            br#"{"correlation_id": "42", "tf_op": "jit(f)/add", "hlo_module": "jit_f", "kernel_details": "regs:32 static_shared:16 dynamic_shared:0 grid:7,1,1 block:128,2,1 occ_pct:100"}"#,
        );
        assert_eq!(args.correlation, Some(Correlation(42)));
        assert_eq!(args.scope, b"jit(f)/add");
        assert!(args.transfer("loop_add").is_none());
        let facts = args.kernel_facts(Labels::default().text(""));
        assert_eq!(
            (facts.local, facts.registers),
            ([128, 2, 1].map(Some), Some(32))
        );
        assert_eq!(facts.static_shared_bytes, Some(16));
        assert_eq!(args.groups(), [7, 1, 1].map(Some));
        let args =
            XlaArgs::parse(br#"{"memcpy_details": "kind_src:pinned kind_dst:device size:64"}"#);
        let copy = args.transfer("MemcpyH2D");
        let Some(DeviceWorkKind::Transfer {
            kind,
            bytes,
            host_memory,
        }) = copy
        else {
            panic!("{copy:?}");
        };
        assert_eq!((kind, bytes), (TransferKind::HostToDevice, Some(64)));
        assert_eq!(host_memory, Some(MemoryPlace::Pinned));
    }

    #[test]
    fn the_scope_is_the_name_else_the_operation_else_the_module() {
        for (args, scope) in [
            (r#"{"name": "a", "tf_op": "b", "hlo_module": "c"}"#, "a"),
            (r#"{"tf_op": "b", "name": "a"}"#, "a"),
            (r#"{"hlo_module": "c", "tf_op": "b"}"#, "b"),
            (r#"{"hlo_module": "c", "tf_op": ""}"#, "c"),
            (r#"{"hlo_module": "c", "annotation": "d"}"#, "d"),
        ] {
            assert_eq!(XlaArgs::parse(args.as_bytes()).scope, scope.as_bytes());
        }
    }
}
