//! Writes databases of Nsight Systems and of rocprofv3 (rocpd) as rows in text, of which `planted` makes SQLite files.

use super::Document;
use super::chance::{Chance, Clock};
use crate::targets::planted;

/// The tables of a database, as rows in text.
#[derive(Default)]
struct Tables(String);

impl Tables {
    /// Begins a table; in an odd case a column is missing or there twice.
    fn begin(&mut self, chance: &mut Chance, name: &str, columns: &str) {
        let mut columns: Vec<&str> = columns.split(' ').collect();
        if chance.is_odd() {
            let at = chance.rng.usize(0..columns.len());
            match chance.rng.u8(0..3) {
                0 => drop(columns.remove(at)),
                1 => columns.push(columns[at]),
                _ => chance.rng.shuffle(&mut columns),
            }
        }
        self.0 += &format!("{name} {}\n", columns.join(" "));
    }

    /// Adds a row of values of JSON.
    fn row(&mut self, values: &[String]) {
        self.0 += &format!("[{}]\n", values.join(","));
    }

    /// Adds a row of numbers, of which some are odd.
    fn numbers(&mut self, chance: &mut Chance, values: &[u64]) {
        let values: Vec<String> = values.iter().map(|value| chance.json(value)).collect();
        self.row(&values);
    }

    fn document(self, name: &str, work: u64) -> Document {
        Document {
            files: vec![(name.to_owned(), planted::database(&self.0))],
            work,
        }
    }
}

/// The process of an export of Nsight Systems, in its number and in that of its thread 1.
const PROCESS: u64 = 117_440_512;
const THREAD: u64 = PROCESS + 1;

/// Writes an export of Nsight Systems.
pub fn nsys(chance: &mut Chance) -> Document {
    let mut tables = Tables::default();
    let mut clock = Clock::new(chance);
    tables.begin(chance, "StringIds", "id value");
    for (id, text) in [
        "",
        "cudaLaunchKernel_v7000",
        "cudaMemcpyAsync_v3020",
        "cudaGraphLaunch_v10000",
        "cudaStreamSynchronize_v3020",
    ]
    .iter()
    .enumerate()
    {
        let (id, text) = (chance.json(id), chance.quoted(text));
        tables.row(&[id, text]);
    }
    for id in 5..8 {
        let (id, text) = (chance.json(id), chance.name());
        tables.row(&[id, text]);
    }
    let (id, text) = (chance.json(8), chance.quoted("Graph Node Creation"));
    tables.row(&[id, text]);
    let launches = chance.below(16);
    let mut work = 0;
    let mut rows: [Vec<Vec<u64>>; 8] = Default::default();
    graphs(chance, &mut clock, &mut rows);
    for correlation in 1..=launches {
        let start = clock.next(chance);
        let kind = chance.rng.usize(0..4);
        if !chance.once_in(8) {
            rows[0].push(vec![
                start,
                start + 10,
                THREAD,
                correlation,
                kind as u64 + 1,
                0,
            ]);
        }
        let at = clock.next(chance);
        let place = [
            at,
            at + 500,
            chance.below(2),
            1,
            7 + chance.below(2),
            correlation,
            PROCESS,
        ];
        let own: &[u64] = match kind {
            0 => &[
                5,
                6,
                7,
                8,
                1,
                1,
                128,
                1,
                1,
                32,
                0,
                0,
                16,
                // A node of the executable graph, or none.
                chance.below(2) * node(2, chance.below(6)),
            ],
            1 => &[4096, 1, 0, 2],
            2 => &[],
            _ => &[3, 0],
        };
        work += u64::from(kind < 3);
        rows[kind + 1].push([&place, own].concat());
        if chance.once_in(4) {
            rows[5].push(vec![at, at + 9, 59, 0, THREAD, 5 + chance.below(3), 0, 12]);
        }
    }
    let place = "start end deviceId contextId streamId correlationId globalPid";
    let names = [
        (
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "start end globalTid correlationId nameId returnValue".to_owned(),
        ),
        (
            "CUPTI_ACTIVITY_KIND_KERNEL",
            format!(
                "{place} demangledName shortName mangledName gridX gridY gridZ blockX blockY blockZ registersPerThread localMemoryPerThread staticSharedMemory dynamicSharedMemory graphNodeId"
            ),
        ),
        (
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            format!("{place} bytes copyKind srcKind dstKind"),
        ),
        ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", place.to_owned()),
        (
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            format!("{place} syncType eventId"),
        ),
        (
            "NVTX_EVENTS",
            "start end eventType category globalTid textId domainId uint64Value".to_owned(),
        ),
        (
            "CUDA_GRAPH_EVENTS",
            "start end eventClass globalTid nameId graphId originalGraphId graphExecId".to_owned(),
        ),
        (
            "CUDA_GRAPH_NODE_EVENTS",
            "start end eventClass globalTid nameId graphNodeId originalGraphNodeId".to_owned(),
        ),
    ];
    for ((name, columns), rows) in names.iter().zip(rows) {
        // Nsight Systems leaves out tables without rows.
        if !rows.is_empty() {
            tables.begin(chance, name, columns);
            rows.iter().for_each(|row| tables.numbers(chance, row));
        }
    }
    facts_of_nsys(chance, &mut tables, clock.now_ns);
    tables.document("run.sqlite", work)
}

/// Returns the number of a node of a CUDA graph.
fn node(graph: u64, place: u64) -> u64 {
    graph << 32 | place
}

/// Adds rows of a CUDA graph that a thread makes and instantiates, to those of its tables. Of the executable graph some nodes are copies of
/// nodes that were never made.
fn graphs(chance: &mut Chance, clock: &mut Clock, rows: &mut [Vec<Vec<u64>>; 8]) {
    let nodes = chance.below(5);
    for (graph, executable) in [(1, 0), (2, 2)] {
        let at = clock.next(chance);
        rows[6].push(vec![at, at, 95, THREAD, 8, graph, 0, 0]);
        for place in 0..nodes + executable {
            let at = clock.next(chance);
            let original = executable / 2 * node(1, place);
            rows[7].push(vec![at, at, 77, THREAD, 8, node(graph, place), original]);
        }
        let at = clock.next(chance);
        if executable > 0 {
            rows[6].push(vec![at, at, 94, THREAD, 8, 1, 0, executable]);
        }
    }
}

/// Adds the tables that say what the machine and the session were.
fn facts_of_nsys(chance: &mut Chance, tables: &mut Tables, now_ns: u64) {
    tables.begin(chance, "META_DATA_EXPORT", "name value");
    for (name, value) in [
        ("EXPORT_PRODUCT_VERSION", "2026.2.1"),
        ("EXPORT_PARAM_TIME_NORMALIZE", "true"),
        ("EXPORT_PARAM_TIME_SHIFT", "1000"),
    ] {
        let (name, value) = (chance.quoted(name), chance.quoted(value));
        tables.row(&[name, value]);
    }
    tables.begin(
        chance,
        "TARGET_INFO_GPU",
        "id name uuid totalMemory smCount computeMajor computeMinor deviceId",
    );
    let name = chance.quoted("NVIDIA H100");
    let memory = chance.json(1_u64 << 36);
    tables.row(&[
        "0".to_owned(),
        name,
        "\"aa\"".to_owned(),
        memory,
        "132".to_owned(),
        "9".to_owned(),
        "0".to_owned(),
        "0".to_owned(),
    ]);
    tables.begin(chance, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs");
    tables.numbers(chance, &[1_751_410_836_000_000_000]);
    tables.begin(
        chance,
        "TARGET_INFO_CUDA_STREAM",
        "streamId processId contextId priority flag",
    );
    tables.numbers(chance, &[7, 7, 1, 0, 2]);
    if chance.rng.bool() {
        tables.begin(
            chance,
            "CUPTI_ACTIVITY_KIND_OVERHEAD",
            "start end globalTid overheadType",
        );
        tables.numbers(chance, &[now_ns, now_ns + 5, THREAD, 1]);
        tables.begin(
            chance,
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            "deviceId contextId streamId correlationId globalPid eventId",
        );
        tables.numbers(chance, &[0, 1, 7, 2, PROCESS, 0]);
        tables.begin(chance, "OSRT_API", "start end globalTid nameId");
        tables.numbers(chance, &[now_ns, now_ns + 5, THREAD, 6]);
        tables.begin(
            chance,
            "TARGET_INFO_GPU_METRICS",
            "typeId metricId metricName",
        );
        let name = chance.quoted("GR Active [Throughput %]");
        tables.row(&["1".to_owned(), "2".to_owned(), name]);
        tables.begin(chance, "GPU_METRICS", "timestamp typeId metricId value");
        tables.numbers(chance, &[now_ns, 1, 2, 50]);
        tables.begin(chance, "DIAGNOSTIC_EVENT", "severity text");
        let text = chance.quoted("Some events were lost.");
        tables.row(&["2".to_owned(), text]);
        tables.begin(chance, "SCHED_EVENTS", "start cpu");
        tables.numbers(chance, &[1, 2]);
    }
}

/// Writes a database of rocprofv3.
pub fn rocpd(chance: &mut Chance) -> Document {
    let mut tables = Tables::default();
    let mut clock = Clock::new(chance);
    let guid = "_00001234_5678_7abc_8def_0123456789ab";
    let strings = [
        "",
        "HIP_RUNTIME_API",
        "KERNEL_DISPATCH",
        "MEMORY_COPY",
        "MARKER_CORE_RANGE_API",
        "hipLaunchKernel",
        "MEMORY_COPY_HOST_TO_DEVICE",
        "hipStreamSynchronize",
        "HSA_CORE_API",
        "RCCL_API",
    ];
    let table = |name: &str| format!("rocpd_{name}{guid}");
    tables.begin(chance, &table("metadata"), "tag value");
    tables.row(&["\"schema_version\"".to_owned(), "\"3\"".to_owned()]);
    tables.begin(chance, &table("string"), "id string");
    for (id, text) in strings.iter().enumerate() {
        let (id, text) = (chance.json(id), chance.quoted(text));
        tables.row(&[id, text]);
    }
    tables.begin(
        chance,
        &table("info_node"),
        "id machine_id system_name hostname release hardware_name",
    );
    let machine = chance.quoted("aa");
    tables.row(&[
        "77".to_owned(),
        machine,
        "\"Linux\"".to_owned(),
        "\"h\"".to_owned(),
        "\"6\"".to_owned(),
        "\"x\"".to_owned(),
    ]);
    tables.begin(chance, &table("info_process"), "id nid pid command");
    let (pid, command) = (chance.json(42), chance.quoted("/usr/bin/app --fast"));
    tables.row(&["42".to_owned(), "77".to_owned(), pid, command]);
    tables.begin(chance, &table("info_thread"), "id tid name");
    let thread = chance.json(11);
    tables.row(&["11".to_owned(), thread, "\"worker\"".to_owned()]);
    tables.begin(
        chance,
        &table("info_agent"),
        "id type nid absolute_index name product_name extdata",
    );
    for id in 0..2 {
        let (kind, index) = (chance.quoted("GPU"), chance.json(id));
        let more = chance.quoted("{\"cu_count\":304}");
        tables.row(&[
            id.to_string(),
            kind,
            "77".to_owned(),
            index,
            "\"gfx942\"".to_owned(),
            "\"MI300X\"".to_owned(),
            more,
        ]);
    }
    tables.begin(chance, &table("info_stream"), "id name");
    let stream = chance.quoted("Stream 1");
    tables.row(&["3".to_owned(), stream]);
    tables.begin(
        chance,
        &table("info_kernel_symbol"),
        "id kernel_name display_name group_segment_size arch_vgpr_count",
    );
    for id in 1..3 {
        let (mangled, name, size) = (chance.name(), chance.name(), chance.json(512));
        tables.row(&[id.to_string(), mangled, name, size, "24".to_owned()]);
    }
    let mut rows: [Vec<Vec<u64>>; 4] = Default::default();
    let (mut events, mut work) = (0, 0);
    for correlation in 1..=chance.below(12) {
        let start = clock.next(chance);
        let category = chance.one_of(&[1, 1, 1, 4, 8, 9]);
        rows[0].push(vec![events, category, correlation]);
        rows[1].push(vec![
            11,
            start,
            start + 9,
            chance.one_of(&[5, 5, 7, 0]),
            events,
        ]);
        events += 1;
        let at = clock.next(chance);
        match chance.rng.u8(0..3) {
            0 => {
                rows[0].push(vec![events, 2, correlation]);
                rows[2].push(vec![
                    chance.below(2),
                    1 + chance.below(2),
                    3,
                    1,
                    at,
                    at + 300,
                    0,
                    512,
                    256,
                    1,
                    1,
                    4096,
                    1,
                    1,
                    events,
                ]);
            }
            1 => {
                rows[0].push(vec![events, 3, correlation]);
                rows[3].push(vec![at, at + 300, 6, 1, 0, 4096, 3, 1, events]);
            }
            _ => continue,
        }
        (events, work) = (events + 1, work + 1);
    }
    let names = [
        ("event", "id category_id stack_id"),
        ("region", "tid start end name_id event_id"),
        (
            "kernel_dispatch",
            "agent_id kernel_id stream_id queue_id start end private_segment_size group_segment_size workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y grid_size_z event_id",
        ),
        (
            "memory_copy",
            "start end name_id dst_agent_id src_agent_id size stream_id queue_id event_id",
        ),
    ];
    for ((name, columns), rows) in names.iter().zip(rows) {
        tables.begin(chance, &table(name), columns);
        rows.iter().for_each(|row| tables.numbers(chance, row));
    }
    tables.begin(
        chance,
        &table("memory_allocate"),
        "agent_id type level start address size",
    );
    let (kind, address, size) = (chance.quoted("ALLOC"), chance.json(4096), chance.json(64));
    tables.row(&[
        "0".to_owned(),
        kind,
        "\"REAL\"".to_owned(),
        clock.now_ns.to_string(),
        address,
        size,
    ]);
    tables.document("results.db", work)
}

/// Writes a database of rocmProfileData.
pub fn rpd(chance: &mut Chance) -> Document {
    let mut tables = Tables::default();
    let mut clock = Clock::new(chance);
    let strings = [
        "",
        "hipLaunchKernel",
        "hipMemcpyAsync",
        "hipDeviceSynchronize",
        "UserMarker",
        "KernelExecution",
        "CopyHostToDevice",
        "scale(float*, int)",
        "Barrier",
    ];
    tables.begin(chance, "rocpd_string", "id string");
    for (id, text) in strings.iter().enumerate() {
        let (id, text) = (chance.json(id), chance.quoted(text));
        tables.row(&[id, text]);
    }
    tables.begin(chance, "rocpd_ustring", "id string");
    let text = chance.quoted("step 1");
    tables.row(&["0".to_owned(), text]);
    let mut rows: [Vec<Vec<u64>>; 5] = Default::default();
    let mut work = 0;
    for call in 1..=chance.below(12) {
        let start = clock.next(chance);
        let pid = 42 + chance.below(2);
        let name = chance.one_of(&[1, 1, 2, 3, 4]);
        rows[0].push(vec![call, pid, pid, start, start + 9, name, 0]);
        if name > 2 {
            continue;
        }
        let at = clock.next(chance);
        let kind = 4 + name;
        work += 1;
        let gpu = chance.below(2);
        rows[1].push(vec![work, gpu, 0, at, at + 300, 7, kind]);
        rows[2].push(vec![work, call, work]);
        match name {
            1 => rows[3].push(vec![call, 256, 1, 1, 512, 0]),
            _ => rows[4].push(vec![call, 4096]),
        }
    }
    let names = [
        ("api", "id pid tid start end apiName_id args_id"),
        ("op", "id gpuId queueId start end description_id opType_id"),
        ("api_ops", "id api_id op_id"),
        (
            "kernelapi",
            "api_ptr_id workgroupX workgroupY workgroupZ groupSegmentSize privateSegmentSize",
        ),
        ("copyapi", "api_ptr_id size"),
    ];
    for ((name, columns), rows) in names.iter().zip(rows) {
        tables.begin(chance, &format!("rocpd_{name}"), columns);
        rows.iter().for_each(|row| tables.numbers(chance, row));
    }
    tables.document("trace.rpd", work)
}
