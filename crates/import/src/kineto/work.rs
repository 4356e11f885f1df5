//! Parses the arguments of a device's events in PyTorch's files: an object of JSON goes in, and the facts of a
//! kernel, copy or fill come out.

use super::category::Category;
use super::event::Event;
use super::json::{bare, elements, members};
use super::number::whole;
use super::streams::Stream;
use crate::functions::class_of;
use crate::inventory::KernelFacts;
use crate::profile::{Correlation, DeviceWorkKind, GraphId, GraphNodeId};
use crate::transfers;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::TransferKind;

/// The arguments of a piece of work. Absent arguments are `None` or 0.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct WorkArgs<'a> {
    pub(super) correlation: Option<Correlation>,
    /// The device and the stream that the arguments name: `Some(None)` for one that is no number.
    device: Option<Option<u32>>,
    context: Option<u32>,
    stream: Option<Option<u32>>,
    /// The numbers of workgroups, and those of threads of a workgroup, in x, y and z.
    grid: [Option<u32>; 3],
    block: [Option<u32>; 3],
    /// The registers of a thread, and the bytes of shared memory of a workgroup.
    registers: Option<u32>,
    shared_bytes: Option<u32>,
    /// The bytes of a copy or fill.
    bytes: Option<u64>,
    /// Whether the work is a node of a CUDA graph.
    pub(super) of_graph: bool,
    /// The executable graph of that node.
    pub(super) graph: Option<GraphId>,
    /// PyTorch's description of the collective that the kernel runs; `None` for other kernels.
    pub(super) collective: Option<&'a [u8]>,
}

impl<'a> WorkArgs<'a> {
    /// Reads an event's object of arguments.
    pub(super) fn parse(args: &'a [u8]) -> WorkArgs<'a> {
        let mut parsed = WorkArgs::default();
        let small = |value| whole(value).and_then(|n| u32::try_from(n).ok());
        for (key, value) in members(args) {
            match key {
                key if is_correlation(key) => parsed.correlation = correlation(value),
                b"device" | b"dev-id" => parsed.device = Some(small(value)),
                b"context" => parsed.context = small(value),
                b"stream" | b"queue" | b"stream-id" => parsed.stream = Some(small(value)),
                b"grid" => parsed.grid = triple(value),
                b"block" => parsed.block = triple(value),
                // ONNX Runtime writes each size alone.
                [b'g', b'r', b'i', b'd', b'_', axis @ b'x'..=b'z'] => {
                    parsed.grid[usize::from(axis - b'x')] = small(value).filter(|size| *size > 0);
                }
                [b'b', b'l', b'o', b'c', b'k', b'_', axis @ b'x'..=b'z'] => {
                    parsed.block[usize::from(axis - b'x')] = small(value).filter(|size| *size > 0);
                }
                b"registers per thread" => parsed.registers = small(value),
                b"shared memory" => parsed.shared_bytes = small(value),
                b"bytes" => parsed.bytes = whole(value).and_then(|n| u64::try_from(n).ok()),
                b"graph node id" => {
                    let node = whole(value).filter(|id| *id != 0);
                    parsed.of_graph = node.is_some();
                    parsed.graph = node
                        .and_then(GraphNodeId::from_file)
                        .map(GraphNodeId::graph);
                }
                b"Collective name" => parsed.collective = Some(bare(value)),
                _ => {}
            }
        }
        parsed
    }

    /// Returns the stream of the work. Without a stream in the arguments, the event's pid is the device and its tid
    /// is the stream.
    pub(super) fn stream(&self, pid: &[u8], tid: &[u8]) -> Stream {
        let small = |value| whole(value).and_then(|n| u32::try_from(n).ok());
        Stream {
            device: self.device.unwrap_or_else(|| small(pid)),
            context: self.context.unwrap_or(0),
            stream: self.stream.unwrap_or_else(|| small(tid)),
        }
    }

    /// Returns another stream of the same device and context, from its number as the file writes it.
    pub(super) fn other_stream(&self, stream: &[u8]) -> Option<Stream> {
        let stream = whole(stream).and_then(|n| u32::try_from(n).ok())?;
        Some(Stream {
            stream: Some(stream),
            ..self.stream(b"", b"")
        })
    }

    /// Returns the kernel, without its process. The shared memory of a workgroup is that which is static and dynamic
    /// together, because the file does not separate them.
    pub(super) fn kernel_facts(&self, name: TextId) -> KernelFacts {
        KernelFacts {
            entry_point: Some(name),
            local: self.block,
            registers: self.registers.filter(|r| *r > 0),
            static_shared_bytes: self.shared_bytes,
            ..KernelFacts::new(ProcessId::default(), name)
        }
    }

    /// Returns the numbers of workgroups in x, y and z.
    pub(super) fn groups(&self) -> [Option<u32>; 3] {
        self.grid
    }

    /// Returns the copy that the event's name describes.
    pub(super) fn copy(&self, name: &str) -> DeviceWorkKind {
        let kind = transfers::kind(name);
        let host_memory = transfers::host_memory(name, kind);
        DeviceWorkKind::Transfer {
            kind,
            bytes: self.bytes,
            host_memory,
        }
    }

    /// Returns the fill of as many bytes as the arguments say.
    pub(super) fn fill(&self) -> DeviceWorkKind {
        DeviceWorkKind::Transfer {
            kind: TransferKind::Fill,
            bytes: self.bytes,
            host_memory: None,
        }
    }
}

/// Returns the category of an event whose own category is unknown, by what only the arguments of work and of calls have.
pub(super) fn category_by_args(event: &Event) -> Category {
    if event.args.is_empty() {
        return Category::Other;
    }
    let is_function = || std::str::from_utf8(event.name).is_ok_and(|name| class_of(name).is_some());
    let (mut has_correlation, mut has_stream, mut has_shape, mut has_bytes) =
        (false, false, false, false);
    for (key, _) in members(event.args) {
        match key {
            key if is_correlation(key) => has_correlation = true,
            b"stream" => has_stream = true,
            b"grid" | b"block" => has_shape = true,
            b"bytes" => has_bytes = true,
            _ => {}
        }
    }
    let is_copy = || event.name.starts_with(b"Memcpy") || event.name.starts_with(b"CopyHost");
    match (has_stream, has_shape) {
        _ if has_correlation && is_function() => Category::Call,
        (true, true) => Category::Kernel,
        (true, _) if has_bytes && is_copy() => Category::Copy,
        (true, _) if has_bytes && event.name.starts_with(b"Memset") => Category::Fill,
        _ => Category::Other,
    }
}

/// Returns the bytes that a call of HIP copies, which its arguments say. In files of ROCm 6 the copies do not say them.
pub(super) fn copied_bytes(function: &str, args: &[u8]) -> Option<u64> {
    if !function.starts_with("hipMemcpy") {
        return None;
    }
    let mut members = members(args);
    let (_, bytes) = members.find(|(key, _)| matches!(*key, b"size" | b"bytes"))?;
    whole(bytes).and_then(|bytes| u64::try_from(bytes).ok())
}

/// Returns whether an argument is the correlation: as PyTorch's profiler writes it, as XLA's, or as PaddlePaddle's.
pub(super) fn is_correlation(key: &[u8]) -> bool {
    matches!(key, b"correlation" | b"correlation_id" | b"correlation id")
}

/// Parses a correlation, which some versions write as a text; 0 means none. It may have all 64 bits.
pub(super) fn correlation(value: &[u8]) -> Option<Correlation> {
    let large = || std::str::from_utf8(bare(value)).ok()?.parse().ok();
    let number = whole(value).map(|number| number as u64).or_else(large);
    number.filter(|number| *number != 0).map(Correlation)
}

/// Parses an array of three sizes, such as `[1, 2, 3]`. A size of 0 is unknown.
fn triple(value: &[u8]) -> [Option<u32>; 3] {
    let mut sizes = elements(value).map(|value| {
        let size = whole(value).and_then(|n| u32::try_from(n).ok());
        size.filter(|size| *size > 0)
    });
    [(); 3].map(|()| sizes.next().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::build::Labels;

    #[test]
    fn launches_are_read_whatever_their_numbers_are_written_as() {
        assert_eq!(
            correlation(b"18446744073709551615"),
            Some(Correlation(u64::MAX))
        );
        let args = WorkArgs::parse(
            br#"{"device": 3, "stream": "7", "correlation": "12", "grid": [64, 2, 1], "block": [128,1,1], "registers per thread": 0, "shared memory": 49152}"#,
        );
        assert_eq!(args.correlation, Some(Correlation(12)));
        assert_eq!(args.groups(), [64, 2, 1].map(Some));
        let stream = args.stream(b"1", b"1");
        let known = (stream.device, stream.context, stream.stream);
        assert_eq!(known, (Some(3), 0, Some(7)));
        let stream = WorkArgs::parse(b"{}").stream(b"\"GPU\"", b"");
        assert_eq!((stream.device, stream.stream), (None, None));
        let stream = WorkArgs::parse(br#"{"device": "cuda", "stream": -1}"#).stream(b"0", b"7");
        assert_eq!((stream.device, stream.stream), (None, None));
        let shape = args.kernel_facts(Labels::default().text(""));
        assert_eq!(
            (shape.local, shape.registers),
            ([128, 1, 1].map(Some), None)
        );
        assert_eq!(shape.static_shared_bytes, Some(49152));
    }
}
