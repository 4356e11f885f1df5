//! Writes the other texts that gapscope imports: rocprofv3's JSON, ggml's logs, Xcode's counters, exports of Instruments
//! and gapscope's own exports.

use super::Document;
use super::chance::{Chance, Clock};
use crate::bytes;
use gapscope_export::{Scene as Drawing, chrome, perfetto};
use gapscope_trace::{Trace, TraceWriter};
use stand_in_xctrace::{Quirks, SCHEMAS, Scene};
use std::sync::OnceLock;

fn file(name: &str, text: impl Into<Vec<u8>>, work: u64) -> Document {
    Document {
        files: vec![(name.to_owned(), text.into())],
        work,
    }
}

/// Writes rocprofv3's JSON.
pub fn rocprofv3(chance: &mut Chance) -> Document {
    let mut clock = Clock::new(chance);
    let kinds = [
        "NONE",
        "HIP_RUNTIME_API",
        "KERNEL_DISPATCH",
        "MEMORY_COPY",
        "MARKER_CORE_RANGE_API",
        "MEMORY_ALLOCATION",
    ];
    let operations = [
        "\"hipLaunchKernel\",\"hipStreamSynchronize\"",
        "\"a\"",
        "\"MEMORY_COPY_HOST_TO_DEVICE\"",
        "\"roctxThreadRangeA\"",
        "\"MEMORY_ALLOCATION_ALLOCATE\"",
    ];
    let mut records: [Vec<String>; 5] = Default::default();
    let mut work = 0;
    for correlation in 1..=chance.below(12) {
        let (start, kind) = (clock.next(chance), chance.rng.usize(0..5));
        let operation = chance.below(2);
        let mut members = vec![
            format!("\"kind\":{}", chance.json(kind + 1)),
            format!("\"operation\":{}", chance.json(operation)),
            format!(
                "\"correlation_id\":{{\"internal\":{},\"external\":0}}",
                chance.json(correlation)
            ),
            format!("\"start_timestamp\":{}", chance.json(start)),
            format!("\"end_timestamp\":{}", chance.json(start + 100)),
            format!("\"thread_id\":{}", chance.json(11)),
        ];
        match kind {
            1 => {
                let (agent, kernel, size) = (chance.below(2), chance.json(1), chance.json(256));
                members.push(format!("\"dispatch_info\":{{\"agent_id\":{{\"handle\":{agent}}},\"queue_id\":{{\"handle\":1}},\"kernel_id\":{kernel},\"private_segment_size\":0,\"group_segment_size\":0,\"workgroup_size\":{{\"x\":{size},\"y\":1,\"z\":1}},\"grid_size\":{{\"x\":4096,\"y\":1,\"z\":1}}}},\"stream_id\":{{\"handle\":3}}"));
                work += 1;
            }
            2 => {
                let bytes = chance.json(64);
                members.push(format!("\"dst_agent_id\":{{\"handle\":1}},\"src_agent_id\":{{\"handle\":0}},\"bytes\":{bytes},\"stream_id\":{{\"handle\":3}}"));
                work += 1;
            }
            4 => {
                let (address, size) = (chance.quoted("0x1000"), chance.json(64));
                members.push(format!(
                    "\"agent_id\":{{\"handle\":1}},\"address\":{address},\"allocation_size\":{size}"
                ));
            }
            _ => {}
        }
        records[kind].push(chance.object(members));
    }
    let buffers = [
        "hip_api",
        "kernel_dispatch",
        "memory_copy",
        "marker_api",
        "memory_allocation",
    ];
    let buffers: Vec<String> = buffers
        .iter()
        .zip(&records)
        .map(|(name, records)| format!("\"{name}\":[{}]", records.join(",")))
        .collect();
    let names: Vec<String> = kinds
        .iter()
        .enumerate()
        .map(|(at, kind)| {
            let operations = if at == 0 { "" } else { operations[at - 1] };
            format!(
                "{{\"kind\":{},\"operations\":[\"\",{operations}]}}",
                chance.quoted(kind)
            )
            .replace(",]", "]")
        })
        .collect();
    let agent = |id: u64, chance: &mut Chance| {
        format!(
            "{{\"id\":{{\"handle\":{id}}},\"type\":{},\"name\":{},\"product_name\":\"MI300X\",\"node_id\":{id},\"cu_count\":304}}",
            chance.json(2),
            chance.quoted("gfx942")
        )
    };
    let agents = [agent(0, chance), agent(1, chance)].join(",");
    let kernel = chance.name();
    let members = vec![
        format!(
            "\"metadata\":{{\"node\":{{\"machine_id\":\"aa\",\"hostname\":\"h\",\"system_name\":\"Linux\",\"release\":\"6\",\"hardware_name\":\"x\"}},\"pid\":{},\"init_time\":1,\"fini_time\":9,\"command\":[{}]}}",
            chance.json(42),
            chance.quoted("app")
        ),
        format!("\"agents\":[{agents}]"),
        format!(
            "\"kernel_symbols\":[{{\"kernel_id\":1,\"kernel_name\":{kernel},\"formatted_kernel_name\":{kernel},\"group_segment_size\":0,\"arch_vgpr_count\":24}}]"
        ),
        format!(
            "\"strings\":{{\"callback_records\":[],\"buffer_records\":[{}],\"marker_api\":[{{\"key\":1,\"value\":{}}}]}}",
            names.join(","),
            chance.quoted("step")
        ),
        format!("\"buffer_records\":{{{}}}", buffers.join(",")),
    ];
    let process = chance.object(members);
    file(
        "results.json",
        format!("{{\"rocprofiler-sdk-tool\":[{process}]}}"),
        work,
    )
}

/// Writes a log of ggml.
pub fn ggml(chance: &mut Chance) -> Document {
    let mut text = "ggml_vulkan: Found 1 Vulkan devices:\nggml_vulkan: 0 = NVIDIA H200 (NVIDIA) | uma: 0 | fp16: 1\n".to_owned();
    let prefixes = [
        "",
        "",
        "llama-1  | ",
        "\u{1b}[32m",
        "Nov 27 07:00:00 host llama[12]: ",
        "2026-11-27T07:00:00.000000000Z stderr F ",
    ];
    let prefix = chance.one_of(&prefixes);
    let mut work = 0;
    for _ in 0..1 + chance.below(4) {
        text += &format!("{prefix}----------------\n{prefix}Vulkan Timings:\n");
        let mut total_us = 0.0;
        for _ in 0..chance.below(6) {
            let name = chance.one_of(&[
                "ADD",
                "MUL_MAT q4_K m=4096 n=512 k=4096",
                "RMS_NORM_MUL RMS_NORM(4096,512,1,1)",
                "FLASH_ATTN_EXT: x",
            ]);
            let (count, tenths) = (1 + chance.below(40), chance.below(10_000));
            let mean_us = tenths as f64 / 10.0;
            let name = chance.text(name).replace(['\n', '\r'], " ");
            let (shown_count, shown_mean) = (chance.json(count), chance.json(mean_us));
            text += &format!("{prefix}{name}: {shown_count} x {shown_mean} us");
            text += chance.one_of(&["", " (41652.1 GFLOPS/s)", " = 70.01 us"]);
            if chance.is_odd() {
                text += " = x us (";
            }
            text.push('\n');
            total_us += mean_us * count as f64;
            work += count;
        }
        if !chance.is_odd() {
            text += &format!(
                "{prefix}Total time: {} us.\n",
                chance.json(format!("{total_us:.1}"))
            );
        }
        if chance.once_in(3) {
            text += "llama_perf_context_print: load time = 812.00 ms\n";
        }
    }
    file("stderr.log", text, work)
}

/// Writes a table of Xcode's counters.
pub fn counters(chance: &mut Chance) -> Document {
    let mut columns = vec![
        "Index".to_owned(),
        "Encoder FunctionIndex".to_owned(),
        "CommandBuffer Label".to_owned(),
        "Encoder Label".to_owned(),
    ];
    for _ in 0..chance.below(5) {
        let name = chance.one_of(&["ALU Utilization", "Kernel Invocations", "", "Bytes, read"]);
        columns.push(chance.quoted(name));
    }
    let mut text = columns.join(",");
    let rows = chance.below(12);
    for row in 0..rows {
        let mut cells = vec![chance.json(row), chance.json(row * 7)];
        let label = format!("Command Buffer {} 0xa74c", row / 3);
        cells.extend([
            chance.quoted(&label),
            chance.quoted("Compute Encoder, 0 0xa74c"),
        ]);
        while cells.len() < columns.len() {
            cells.push(chance.json("0.98"));
        }
        if chance.is_odd() {
            cells.pop();
        }
        text += &format!("{}{}", chance.one_of(&["\n", "\r\n"]), cells.join(","));
    }
    file("run Counters.csv", text, rows)
}

/// Writes exports of Instruments.
pub fn xctrace(chance: &mut Chance) -> Document {
    let mut clock = Clock { now_ns: 1000 };
    let mut scene = Scene::labelled_chain(1 + chance.below(6));
    let mut work = 0;
    for buffer in &mut scene.command_buffers {
        let mut time = |chance: &mut Chance| {
            let usual = clock.next(chance);
            // The stand-in adds to the times, and no further than this.
            chance.number(usual).cast_signed() >> if chance.is_sound() { 0 } else { 2 }
        };
        (buffer.created_ns, buffer.committed_ns) = (time(chance), time(chance));
        for encoder in &mut buffer.encoders {
            for run in &mut encoder.gpu {
                run.start_ns = time(chance);
                run.duration_ns = chance.number(300).cast_signed() / 4;
                work += 1;
            }
            encoder.label = chance.text("Encoder");
        }
        buffer.completed_ns = Some(time(chance));
        buffer.label = chance.text("Buffer");
    }
    let quirks = Quirks {
        two_nodes: chance.once_in(4),
        forward_references: chance.once_in(4),
        ..Quirks::default()
    };
    let mut document = Document {
        files: vec![("toc.xml".to_owned(), scene.toc().into_bytes())],
        work,
    };
    for (schema, _) in SCHEMAS.iter() {
        if !chance.is_odd() {
            let name = format!("{schema}.xml");
            document
                .files
                .push((name, scene.table(schema, &quirks).into_bytes()));
        }
    }
    document
}

/// An export of gapscope: the name of its file, its bytes, and the pieces of work in it.
type Export = (&'static str, Vec<u8>, u64);

/// Writes one of gapscope's own exports, with the trace behind the drawing or without it. What is changed afterwards damages
/// one of them.
pub fn drawn(chance: &mut Chance) -> Document {
    static EXPORTS: OnceLock<Vec<Export>> = OnceLock::new();
    let exports = EXPORTS.get_or_init(|| (0..6).flat_map(exports).collect());
    let (name, bytes, work) = &exports[chance.rng.usize(0..exports.len())];
    let mut bytes = bytes.clone();
    if !chance.is_sound() {
        for _ in 0..1 + chance.below(3) {
            match chance.rng.u8(0..3) {
                0 => bytes::change_lines(&mut bytes, &mut chance.rng),
                1 => bytes::change_value(&mut bytes, &mut chance.rng),
                _ => bytes::change(&mut bytes, &mut chance.rng),
            }
        }
    }
    file(name, bytes, *work)
}

/// Makes the exports of a trace with so many launches.
fn exports(work: u64) -> Vec<Export> {
    let mut text = "manifest sampling_mode=dispatch start_ns=0 end_ns=1s\nprocess id=1 pid=7\ndevice id=1 process=1\nqueue id=1 device=1\nlabel id=1 text=step\nkernel id=1 name=sin\n".to_owned();
    for id in 1..=work {
        text += &format!(
            "submission id={id} process=1 queue=1 thread=7 start_ns={id}000 duration_ns=100\ncommand_buffer id={id} process=1 queue=1 submission={id} dispatches=1\ndispatch command_buffer={id} queue=1 kernel=1 start_ns={id}500 duration_ns=300 label=1\n"
        );
    }
    let trace = Trace::from_text(&text).expect("the text is that of a trace");
    let folder = crate::scratch::folder();
    let path = folder.path().join("t.gapscope");
    let mut writer = TraceWriter::create(&path).expect("the folder for inputs can be written");
    *writer.tables_mut() = trace.tables.clone();
    writer
        .finish(&trace.manifest)
        .expect("the folder for inputs can be written");
    let mut scene = Drawing::new(&trace);
    scene.embed(&path);
    let mut out: [Vec<u8>; 2] = Default::default();
    let [json, packets] = &mut out;
    chrome::write(&scene, json).expect("memory takes what is written");
    perfetto::write(&scene, packets).expect("memory takes what is written");
    ["run.json", "run.pftrace"]
        .into_iter()
        .zip(out)
        .map(|(name, bytes)| (name, bytes, work))
        .collect()
}
