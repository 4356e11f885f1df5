//! Makes a capture of CUDA with every kind of record, which the page on the format shows and the kept fixture of version 2
//! holds: a kernel scales numbers of page-locked memory, and a second one adds a global after the host wrote those again.

use std::io::Result;
use std::path::Path;

use gapscope_capture::cuda::*;
use gapscope_capture::model::*;
use gapscope_capture::{CUDA_FORMAT, Writer};

pub const DEVICE: MemoryId = MemoryId(0);
pub const HOST: MemoryId = MemoryId(1);
pub const GLOBAL: MemoryId = MemoryId(2);
const X: u64 = 0x7e00_0000_0000;
const Y: u64 = 0x3_0200_0000;
const BYTES: u64 = 256;

fn floats(of: impl Fn(u64) -> f32) -> Vec<u8> {
    (0..BYTES / 4).flat_map(|i| of(i).to_le_bytes()).collect()
}

pub fn header() -> Header<CudaDevice> {
    Header {
        format: CUDA_FORMAT,
        api: CapturedApi::Cuda,
        gapscope: "0.1.0".to_owned(),
        command: vec!["./scale".to_owned(), "64".to_owned()],
        pid: 4711,
        started_unix_ns: 1_795_363_200_000_000_000,
        window: "launches 10..12".to_owned(),
        device: CudaDevice {
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            compute_capability: [9, 0],
            driver_version: Some(13_000),
            multiprocessors: Some(132),
            memory_bytes: Some(85_029_158_912),
        },
    }
}

/// Returns bytes that are as long as the shortest cubin.
pub fn code() -> Vec<u8> {
    [b"\x7fELF\x02\x01\x01\x41\x08".to_vec(), vec![0; 87]].concat()
}

fn objects(writer: &mut Writer) -> Result<()> {
    let code = vec![writer.chunk(&code())?];
    let module = CudaModule {
        id: ModuleId(0),
        code,
    };
    writer.record(&CudaRecord::CudaModule(module))?;
    let global = MemoryPlace::Global {
        module: ModuleId(0),
        name: "offset".to_owned(),
    };
    for (id, address, bytes, place) in [
        (DEVICE, X, BYTES, MemoryPlace::Device),
        (HOST, Y, BYTES, MemoryPlace::Host),
        (GLOBAL, X + (32 << 20), 4, global),
    ] {
        let memory = CudaMemory {
            id,
            address,
            bytes,
            place,
        };
        writer.record(&CudaRecord::CudaMemory(memory))?;
    }
    Ok(())
}

fn first_launch(writer: &mut Writer) -> Result<()> {
    let parameters = [X, Y, 64 << 32 | u64::from(2.0f32.to_bits())];
    writer.content(DEVICE, 0, &floats(|_| 0.0), ContentCause::FirstUse)?;
    writer.content(HOST, 0, &floats(|i| i as f32), ContentCause::FirstUse)?;
    // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION of one block
    let cluster = [1, 1, 1].map(u32::to_le_bytes).concat();
    writer.record(&CudaRecord::Launch(Launch {
        module: ModuleId(0),
        kernel: "scale".to_owned(),
        grid: [1, 1, 1],
        block: [64, 1, 1],
        shared_bytes: 1024,
        parameters: parameters.map(u64::to_le_bytes).concat(),
        attributes: vec![Attribute {
            id: 4,
            value: [cluster, vec![0; 52]].concat(),
        }],
        function: FunctionAttributes {
            max_dynamic_shared_bytes: 49_152,
            ..FunctionAttributes::default()
        },
        reached: vec![DEVICE, HOST],
        number: Some(10),
        called_ns: 125_000,
        device_ns: Some(5_120),
        ..Launch::default()
    }))?;
    writer.outcome(DEVICE, 0, &floats(|i| i as f32 * 2.0))
}

fn second_launch(writer: &mut Writer) -> Result<()> {
    let parameters = [X, X + (32 << 20)];
    writer.content(GLOBAL, 0, &0.5f32.to_le_bytes(), ContentCause::FirstUse)?;
    writer.content(
        HOST,
        0,
        &floats(|i| i as f32 + 1.0),
        ContentCause::HostWrite,
    )?;
    writer.record(&CudaRecord::Launch(Launch {
        module: ModuleId(0),
        kernel: "add".to_owned(),
        grid: [1, 1, 1],
        block: [64, 1, 1],
        parameters: parameters.map(u64::to_le_bytes).concat(),
        relocations: vec![Relocation {
            at: 8,
            memory: GLOBAL,
        }],
        stream: 1,
        reached: vec![DEVICE, GLOBAL],
        number: Some(11),
        called_ns: 310_000,
        ..Launch::default()
    }))?;
    writer.outcome(DEVICE, 0, &floats(|i| i as f32 * 2.0 + 0.5))
}

/// Writes the example into a folder, which must not exist.
pub fn write(folder: &Path) {
    let written = || {
        let mut writer = Writer::create(folder, header())?;
        objects(&mut writer)?;
        first_launch(&mut writer)?;
        second_launch(&mut writer)?;
        writer.record(&CudaRecord::End(End {
            reason: EndReason::Complete,
            after_ns: 420_000,
        }))
    };
    written().expect("the example can be written");
}
