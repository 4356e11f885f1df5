//! Parses the arguments of a device's events in files of XLA's profiler (JAX, TensorFlow).

use super::facts::{Correlation, KernelShape, WorkKind};
use super::json::{bare, members};
use super::texts::TextId;
use super::work::correlation;
use crate::transfers;
use gapscope_trace::tables::TransferKind;

/// The arguments of a piece of work.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct XlaArgs<'a> {
    pub(super) correlation: Correlation,
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
    pub(super) fn parse(args: &'a [u8]) -> XlaArgs<'a> {
        let mut found = XlaArgs::default();
        let text = |value| std::str::from_utf8(bare(value)).unwrap_or_default();
        let mut module: &[u8] = b"";
        for (key, value) in members(args) {
            match key {
                b"correlation_id" => found.correlation = correlation(value),
                b"tf_op" | b"name" => found.scope = bare(value),
                b"hlo_module" => module = bare(value),
                b"kernel_details" => found.kernel = text(value),
                b"memcpy_details" => found.copy = text(value),
                b"memset_details" => found.fill = text(value),
                _ => {}
            }
        }
        if found.scope.is_empty() {
            found.scope = module;
        }
        found
    }

    /// Returns the transfer that the work is; `None` for a kernel.
    pub(super) fn transfer(&self, name: &str) -> Option<WorkKind> {
        let fill =
            !self.fill.is_empty() || name.starts_with("Memset") || name.starts_with("memset");
        let copy =
            !self.copy.is_empty() || name.starts_with("Memcpy") || name.starts_with("memcpy");
        if !fill && !copy {
            return None;
        }
        let details = if fill { self.fill } else { self.copy };
        let bytes = field(details, "size").or_else(|| field(details, "num_bytes"));
        let kind = transfers::kind(name);
        let kind = if fill { TransferKind::Fill } else { kind };
        let place = match kind {
            TransferKind::HostToDevice => field(details, "kind_src"),
            TransferKind::DeviceToHost => field(details, "kind_dst"),
            _ => None,
        };
        Some(WorkKind::Transfer {
            kind,
            bytes: bytes.and_then(|bytes| bytes.parse().ok()),
            host_memory: place.and_then(transfers::place),
        })
    }

    pub(super) fn shape(&self, name: TextId) -> KernelShape {
        let number = |name| field(self.kernel, name).and_then(|n| n.parse().ok());
        KernelShape {
            name,
            block: self.triple("block"),
            registers: number("regs").filter(|registers| *registers > 0),
            static_shared_bytes: number("static_shared"),
            dynamic_shared_bytes: number("dynamic_shared"),
            shared_bytes: None,
        }
    }

    pub(super) fn groups(&self) -> [u32; 3] {
        self.triple("grid")
    }

    fn triple(&self, name: &str) -> [u32; 3] {
        let mut found = [0; 3];
        let numbers = field(self.kernel, name).unwrap_or_default().split(',');
        for (to, number) in found.iter_mut().zip(numbers) {
            *to = number.parse().unwrap_or(0);
        }
        found
    }
}

/// Returns the value of a field in details of the form `name:value name:value`.
fn field<'a>(details: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = details.split_whitespace().filter_map(|f| f.split_once(':'));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::tables::MemoryPlace;

    #[test]
    fn details_are_read() {
        let args = XlaArgs::parse(
            br#"{"correlation_id": "42", "tf_op": "jit(f)/add", "hlo_module": "jit_f", "kernel_details": "regs:32 static_shared:16 dynamic_shared:0 grid:7,1,1 block:128,2,1 occ_pct:100"}"#,
        );
        assert_eq!(
            (args.correlation, args.scope),
            (Correlation(42), &b"jit(f)/add"[..])
        );
        assert!(args.transfer("loop_add").is_none());
        let shape = args.shape(TextId(0));
        assert_eq!((shape.block, shape.registers), ([128, 2, 1], Some(32)));
        assert_eq!(shape.static_shared_bytes, Some(16));
        assert_eq!(args.groups(), [7, 1, 1]);
        let args =
            XlaArgs::parse(br#"{"memcpy_details": "kind_src:pinned kind_dst:device size:64"}"#);
        let copy = args.transfer("MemcpyH2D");
        let Some(WorkKind::Transfer {
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
}
