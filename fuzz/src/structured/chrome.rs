//! Writes Chrome's JSON as PyTorch's profiler, XLA, Proton, Ascend's profiler and unitrace do.

use super::Document;
use super::chance::{Chance, Clock};

/// A document that is being written.
struct Events<'a> {
    chance: &'a mut Chance,
    clock: Clock,
    events: Vec<String>,
    /// The pieces of device work so far.
    work: u64,
    /// The correlations of calls without work so far.
    calls: Vec<u64>,
    correlation: u64,
    /// Whether times are in microseconds with a fraction.
    fraction: bool,
}

/// Writes one document, or the documents of several ranks.
pub fn document(chance: &mut Chance) -> Document {
    let ranks = if chance.once_in(12) {
        1 + chance.below(3)
    } else {
        0
    };
    let mut document = Document::default();
    let producer = chance.rng.u8(0..8);
    for rank in 0..ranks.max(1) {
        let (text, work) = one(chance, producer, (ranks > 0).then_some((rank, ranks)));
        document
            .files
            .push((format!("rank{rank}.json"), text.into_bytes()));
        document.work += work;
    }
    document
}

fn one(chance: &mut Chance, producer: u8, rank: Option<(u64, u64)>) -> (String, u64) {
    let (clock, fraction) = (Clock::new(chance), chance.rng.bool());
    let mut events = Events {
        chance,
        clock,
        events: Vec::new(),
        work: 0,
        calls: Vec::new(),
        correlation: 0,
        fraction,
    };
    events.names(producer);
    for _ in 0..events.chance.below(40) {
        match producer {
            4 => events.xla(),
            5 => events.proton(),
            6 => events.ascend(),
            7 => events.unitrace(),
            _ => events.kineto(producer == 3),
        }
    }
    let Events { events, work, .. } = events;
    let separator = if chance.once_in(3) { ",\n" } else { "," };
    let mut list = events.join(separator);
    if chance.is_odd() {
        list.push(',');
    }
    let mut members = vec![format!("\"traceEvents\":[{list}]")];
    if producer < 4 || rank.is_some() {
        let count = 1 + chance.below(2);
        let device = |id| {
            format!(
                "{{\"id\":{id},\"name\":\"H100\",\"totalGlobalMem\":1000,\"computeMajor\":9,\"computeMinor\":0,\"numSms\":132}}"
            )
        };
        let devices: Vec<String> = (0..count).map(device).collect();
        members.insert(0, "\"schemaVersion\":1".to_owned());
        members.insert(0, format!("\"deviceProperties\":[{}]", devices.join(",")));
        let base = chance.json(1_751_410_836_000_000_000_u64);
        members.insert(0, format!("\"baseTimeNanoseconds\":{base}"));
    }
    if let Some((rank, ranks)) = rank {
        let (rank, ranks) = (chance.json(rank), chance.json(ranks));
        let info = format!(
            "\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{rank},\"world_size\":{ranks}}}"
        );
        members.push(info);
    }
    // Other writers of Chrome's JSON write the list alone, which says nothing of the whole.
    let text = match rank.is_none() && chance.once_in(6) {
        true => format!("[{list}]"),
        false => chance.object(members),
    };
    (text, work)
}

impl Events<'_> {
    /// Returns a time of the file, from nanoseconds.
    fn time(&mut self, ns: u64) -> String {
        let usual = match self.fraction {
            true => format!("{}.{:03}", ns / 1000, ns % 1000),
            false => (ns / 1000).to_string(),
        };
        self.chance.json(usual)
    }

    /// Adds an event with these members besides its times and its place.
    fn push(&mut self, phase: &str, pid: String, tid: String, more: Vec<String>) {
        // An event that is there twice counts once.
        loop {
            let start_ns = self.clock.next(self.chance);
            let start = self.time(start_ns);
            let mut members = vec![
                format!("\"ph\":\"{phase}\""),
                format!("\"pid\":{pid}"),
                format!("\"tid\":{tid}"),
                format!("\"ts\":{start}"),
            ];
            if phase == "X" {
                let duration_ns = 1000 + self.chance.below(30_000);
                members.push(format!("\"dur\":{}", self.time(duration_ns)));
            }
            members.extend_from_slice(&more);
            let event = self.chance.object(members);
            if !self.events.contains(&event) {
                self.events.push(event);
                return;
            }
        }
    }

    fn host(&mut self) -> (String, String) {
        let thread = 11 + self.chance.below(2);
        (self.chance.json(1000), self.chance.json(thread))
    }

    /// Adds the names of processes and threads.
    fn names(&mut self, producer: u8) {
        let rows: &[(&str, &str, &str)] = match producer {
            4 => &[
                ("1", "0", "/host:CPU"),
                ("2", "0", "/device:GPU:0"),
                ("3", "0", "GPU1"),
            ],
            7 => &[("4294967295", "0", "Device #0")],
            _ => &[("1000", "11", "python"), ("0", "7", "python")],
        };
        for (pid, tid, name) in rows {
            let name = self.chance.quoted(name);
            self.events.push(format!("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":{name}}}}}"));
        }
        if self.chance.once_in(3) {
            self.events.push("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":2,\"tid\":5,\"args\":{\"name\":\"XLA Ops\"}}".to_owned());
        }
    }

    /// Adds an event of PyTorch's profiler, of 2021 where `is_old`.
    fn kineto(&mut self, is_old: bool) {
        let category =
            |new: &str, old: &str| format!("\"cat\":\"{}\"", if is_old { old } else { new });
        let name = format!("\"name\":{}", self.chance.name());
        let (pid, tid) = self.host();
        match self.chance.rng.u8(0..16) {
            0..4 => {
                self.correlation += 1;
                let id = self.correlation;
                self.calls.push(id);
                let functions = [
                    "cudaLaunchKernel",
                    "cudaMemcpyAsync",
                    "cudaGraphLaunch",
                    "cudaStreamSynchronize",
                    "hipLaunchKernel",
                    "cudaEventQuery",
                    "cuLaunchKernel",
                ];
                let function = self.chance.one_of(&functions);
                let function = format!("\"name\":{}", self.chance.quoted(function));
                let id = self.chance.json(id);
                self.push(
                    "X",
                    pid,
                    tid,
                    vec![
                        category("cuda_runtime", "Runtime"),
                        function,
                        format!("\"args\":{{\"correlation\":{id}}}"),
                    ],
                );
            }
            4..8 => self.work(is_old),
            8 => {
                let args = "\"args\":{\"Input Dims\":[[2,3],[]],\"Input type\":[\"float\",\"\"]}"
                    .to_owned();
                self.push(
                    "X",
                    pid,
                    tid,
                    vec![category("cpu_op", "Operator"), name, args],
                );
            }
            9 => self.push(
                "X",
                pid,
                tid,
                vec![
                    category("python_function", "Python"),
                    name,
                    "\"args\":{\"Python id\":3,\"Python parent id\":null}".to_owned(),
                ],
            ),
            10 => self.push(
                "X",
                pid,
                tid,
                vec![category("user_annotation", "Operator"), name],
            ),
            11 => {
                let phase = self
                    .chance
                    .one_of(&["B", "E", "b", "e", "i", "n", "S", "F", "P"]);
                let id = self.chance.json(4);
                self.push(
                    phase,
                    pid,
                    tid,
                    vec![name, format!("\"id\":{id}"), "\"cat\":\"x\"".to_owned()],
                );
            }
            12 => {
                let phase = self.chance.one_of(&["s", "f", "t"]);
                let id = self.chance.below(self.correlation + 1);
                let (id, kind) = (
                    self.chance.json(id),
                    self.chance.one_of(&["ac2g", "fwdbwd"]),
                );
                self.push(
                    phase,
                    pid,
                    tid,
                    vec![name, format!("\"id\":{id}"), format!("\"cat\":\"{kind}\"")],
                );
            }
            13 => {
                let value = self.chance.json("12.5");
                self.push(
                    "C",
                    pid,
                    tid,
                    vec![name, format!("\"args\":{{\"a\":{value},\"b\":2}}")],
                );
            }
            14 => {
                let other = self.chance.one_of(&[
                    "overhead",
                    "Trace",
                    "gpu_user_annotation",
                    "mtia_ccp_events",
                    "cuda_sync",
                    "",
                ]);
                let (stream, id) = (
                    self.chance.json(7),
                    self.chance.json(self.calls.last().copied().unwrap_or(0)),
                );
                self.push("X", pid, tid, vec![format!("\"cat\":\"{other}\""), name, format!("\"args\":{{\"device\":0,\"stream\":{stream},\"correlation\":{id},\"wait_on_stream\":7,\"wait_on_cuda_event_record_corr_id\":{id}}}")]);
            }
            _ => {
                let (bytes, device) = (self.chance.json(4096), self.chance.json(0));
                self.push("i", pid, tid, vec!["\"cat\":\"cpu_instant_event\"".to_owned(), "\"name\":\"[memory]\"".to_owned(), format!("\"args\":{{\"Total Allocated\":{bytes},\"Total Reserved\":9000,\"Device Type\":1,\"Device Id\":{device}}}")]);
            }
        }
    }

    /// Adds a kernel, a copy or a fill.
    fn work(&mut self, is_old: bool) {
        let (device, stream) = (self.chance.below(2), 7 + self.chance.below(3));
        let id = self.calls.pop().unwrap_or(999);
        let (device, stream, id) = (
            self.chance.json(device),
            self.chance.json(stream),
            self.chance.json(id),
        );
        let kinds = [
            ("kernel", "Kernel"),
            ("gpu_memcpy", "Memcpy"),
            ("gpu_memset", "Memset"),
        ];
        let (new, old) = self.chance.one_of(&kinds);
        let mut args = vec![
            format!("\"device\":{device}"),
            "\"context\":1".to_owned(),
            format!("\"stream\":{stream}"),
            format!("\"correlation\":{id}"),
        ];
        match new {
            "kernel" => {
                let (grid, registers) = (self.chance.json("[8,1,1]"), self.chance.json(32));
                args.extend([
                    format!("\"grid\":{grid}"),
                    "\"block\":[128,1,1]".to_owned(),
                    format!("\"registers per thread\":{registers}"),
                    "\"shared memory\":0".to_owned(),
                ]);
                if self.chance.once_in(4) {
                    let (elements, rank) = (self.chance.json(1024), self.chance.json("\"0\""));
                    args.extend([
                        "\"Collective name\":\"allreduce\"".to_owned(),
                        format!("\"In msg nelems\":{elements}"),
                        "\"dtype\":\"Float\"".to_owned(),
                        format!("\"Process Group Name\":{rank}"),
                        "\"Group size\":2".to_owned(),
                    ]);
                }
                if self.chance.once_in(6) {
                    args.push("\"graph id\":3,\"graph node id\":4".to_owned());
                }
            }
            _ => args.push(format!("\"bytes\":{}", self.chance.json(4096))),
        }
        let args = self.chance.object(args);
        let name = format!("\"name\":{}", self.chance.name());
        let category = format!("\"cat\":\"{}\"", if is_old { old } else { new });
        self.work += 1;
        self.push(
            "X",
            device,
            stream,
            vec![category, name, format!("\"args\":{args}")],
        );
    }

    /// Adds an event of XLA's profiler.
    fn xla(&mut self) {
        let name = format!("\"name\":{}", self.chance.name());
        if self.chance.rng.bool() {
            let id = self.chance.json(5);
            let call = "\"name\":\"cuLaunchKernel\"".to_owned();
            return self.push(
                "X",
                "1".to_owned(),
                "9".to_owned(),
                vec![call, format!("\"args\":{{\"correlation_id\":{id}}}")],
            );
        }
        let details = self.chance.one_of(&[
            "\"kernel_details\":\"regs:32 static_shared:16 dynamic_shared:0 grid:7,1,1 block:128,1,1 occ_pct:50\"",
            "\"memcpy_details\":\"kind_src:pinned kind_dst:device size:64 dest:0 async:1\"",
            "\"memset_details\":\"kind:device num_bytes:4\"",
            "\"kernel_details\":\"regs: grid:a,b block:\"",
        ]);
        let (device, id) = (
            self.chance.one_of(&["2", "3"]).to_owned(),
            self.chance.json(5),
        );
        self.work += 1;
        self.push("X", device, "8".to_owned(), vec![name, format!("\"args\":{{\"correlation_id\":{id},\"hlo_module\":\"jit_f\",\"tf_op\":\"a/b\",{details}}}")]);
    }

    /// Adds an event of Triton's Proton.
    fn proton(&mut self) {
        let name = self.chance.name();
        let stream = self.chance.json("\"stream 7\"");
        let stack = self.chance.json(format!("[\"ROOT\",\"forward\",{name}]"));
        self.work += 1;
        self.push(
            "X",
            "0".to_owned(),
            stream,
            vec![
                "\"cat\":\"kernel\"".to_owned(),
                format!("\"name\":{name}"),
                format!("\"args\":{{\"call_stack\":{stack}}}"),
            ],
        );
    }

    /// Adds an event of Ascend's profiler.
    fn ascend(&mut self) {
        let name = format!("\"name\":{}", self.chance.name());
        let id = self.chance.json(44);
        if self.chance.rng.bool() {
            return self.push(
                "X",
                "5".to_owned(),
                "6".to_owned(),
                vec![name, format!("\"args\":{{\"connection_ids\":[{id}]}}")],
            );
        }
        let task = self
            .chance
            .one_of(&["AI_CORE", "MEMCPY_ASYNC", "AI_VECTOR_CORE"]);
        let (task, stream) = (self.chance.quoted(task), self.chance.json(3));
        self.work += 1;
        self.push("X", "9".to_owned(), "3".to_owned(), vec![name, format!("\"args\":{{\"Task Type\":{task},\"Stream Id\":{stream},\"connection_id\":{id},\"Task Id\":1}}")]);
    }

    /// Adds an event of Intel's unitrace.
    fn unitrace(&mut self) {
        self.correlation += 1;
        let id = self.chance.json(self.correlation);
        match self.chance.rng.u8(0..3) {
            0 => {
                let call = "\"name\":\"zeCommandListAppendLaunchKernel\"".to_owned();
                self.push(
                    "X",
                    "1".to_owned(),
                    "2".to_owned(),
                    vec!["\"cat\":\"cpu_op\"".to_owned(), call],
                );
            }
            1 => {
                self.push(
                    "s",
                    "1".to_owned(),
                    "2".to_owned(),
                    vec![
                        "\"cat\":\"data_flow\"".to_owned(),
                        "\"name\":\"dep\"".to_owned(),
                        format!("\"id\":{id}"),
                    ],
                );
            }
            _ => {
                let name = self.chance.one_of(&[
                    "gemm[SIMD32 {16; 1; 1} {128; 1; 1}]",
                    "zeCommandListAppendMemoryCopy(M2D)[4096]",
                    "k%5BSIMD16 {a; ;}%5D",
                ]);
                let name = self.chance.quoted(name);
                self.work += 1;
                self.push(
                    "X",
                    "4294967295".to_owned(),
                    "4294967294".to_owned(),
                    vec![
                        "\"cat\":\"gpu_op\"".to_owned(),
                        format!("\"name\":{name}"),
                        format!("\"args\":{{\"id\":{id}}}"),
                    ],
                );
            }
        }
    }
}
