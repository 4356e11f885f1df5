//! Tests the dependencies between launches of CUDA.

use std::path::Path;

use gapscope_capture::cuda::*;
use gapscope_capture::model::*;
use gapscope_capture::{AnyCapture, CUDA_FORMAT, Writer};
use gapscope_dependencies::{Dependencies, EdgeKind, NodeKind};

const PIECE: usize = 65_536;

fn launch(writer: &mut Writer, kernel: &str, reached: &[u32]) -> std::io::Result<()> {
    writer.record(&CudaRecord::Launch(Launch {
        module: ModuleId(0),
        kernel: kernel.to_owned(),
        grid: [1; 3],
        block: [1; 3],
        reached: reached.iter().map(|id| MemoryId(*id)).collect(),
        device_ns: Some(1000),
        ..Launch::default()
    }))
}

/// The second launch reads what the first one wrote; the third reads what the host wrote after the first had read it.
fn write(folder: &Path) -> std::io::Result<()> {
    let header = Header {
        format: CUDA_FORMAT,
        api: CapturedApi::Cuda,
        ..Header::<CudaDevice>::default()
    };
    let mut writer = Writer::create(folder, header)?;
    let code = vec![writer.chunk(&[0; 64])?];
    let id = ModuleId(0);
    writer.record(&CudaRecord::CudaModule(CudaModule { id, code }))?;
    for id in 0..3u32 {
        writer.record(&CudaRecord::CudaMemory(CudaMemory {
            id: MemoryId(id),
            address: (u64::from(id) + 1) << 32,
            bytes: 2 * PIECE as u64,
            place: MemoryPlace::Device,
        }))?;
        let zeros = vec![0; 2 * PIECE];
        writer.content(MemoryId(id), 0, &zeros, ContentCause::FirstUse)?;
    }
    let ones = vec![1; PIECE];
    launch(&mut writer, "first", &[0, 1, 1])?;
    writer.outcome(MemoryId(1), 0, &ones)?;
    writer.content(MemoryId(0), 0, &ones, ContentCause::HostWrite)?;
    writer.content(
        MemoryId(0),
        PIECE as u64,
        &ones[..8],
        ContentCause::HostWrite,
    )?;
    launch(&mut writer, "second", &[1, 2])?;
    writer.outcome(MemoryId(2), PIECE as u64, &ones)?;
    launch(&mut writer, "third", &[0])?;
    writer.outcome(MemoryId(0), 0, &ones)?;
    writer.record(&CudaRecord::End(End::default()))
}

#[test]
fn launches_depend_on_what_they_may_reach_and_on_writes_between_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    write(&folder).expect("it can be written");
    let (AnyCapture::Cuda(capture), None) = AnyCapture::open(&folder).expect("it opens") else {
        panic!("a valid capture of CUDA");
    };
    let (found, is_all) = Dependencies::from_cuda(&capture);
    assert!(is_all);
    let nodes = found.graph.nodes.iter();
    let nodes: Vec<_> = nodes.map(|node| (node.kind, &*node.name)).collect();
    let dispatch = Some(NodeKind::Dispatch);
    let between = (Some(NodeKind::Update), "written by the host or a copy");
    assert_eq!(
        nodes,
        [
            (dispatch, "first"),
            between,
            (dispatch, "second"),
            (dispatch, "third")
        ]
    );
    let edges = found.graph.edges.iter();
    let edges: Vec<_> = edges
        .map(|edge| (edge.from, edge.to, edge.kind, edge.bytes, edge.exact))
        .collect();
    let piece = PIECE as u64;
    assert_eq!(
        edges,
        [
            (0, 1, EdgeKind::WriteAfterRead, piece + 8, false),
            (0, 2, EdgeKind::ReadAfterWrite, piece, false),
            (1, 3, EdgeKind::ReadAfterWrite, piece + 8, false),
        ]
    );
    assert!(found.hazards.is_empty() && found.unknown.is_some());
    let json = serde_json::to_value(found.json()).expect("it is JSON");
    let first = &json["nodes"][0];
    assert_eq!(first["read_bytes"], 4 * piece);
    assert_eq!(first["written_bytes"], piece);
    assert_eq!(first["exact"], false);
    assert_eq!(first["duration_ns"], 1000);
}
