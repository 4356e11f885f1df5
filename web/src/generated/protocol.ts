// The messages of the server. `UPDATE=1 cargo test -p gapscope-view typescript` writes this file from `crates/view/src/protocol.rs`, where each
// property is described.

/** Activity of all devices. */
export interface Activity {
  rows: ActivityRow[]; window: Interval;
}

/** Activity of a device or of a queue. */
export interface ActivityRow {
  device: number; queue_id: QueueId | null; slices: Slice[];
}

/** What to do about a cause of idle time, or about the work that bounds the speed. */
export interface Advice {
  cause: string; text: string;
}

/** The memory of a program's own allocator when its blocks took most. */
export interface AllocatorPeak {
  at_ns: number | null; block_count: number; bytes: number; reserved_bytes: number | null; unused_bytes: number | null;
}

/** How the tracks of a trace are arranged, as the page writes it into its address. All absent: as at first. */
export interface Arrangement {
  order?: string | null; text?: string | null; tracks?: string | null;
}

/** A rank's part in a collective. */
export interface Arrival {
  end_ns: number; queue: QueueId | null; rank: number; start_ns: number; waited_ns: number | null;
}

/** Bandwidth of the collectives of a kind and size. */
export interface Bandwidth {
  algorithm_bytes_per_s: number; bus_bytes_per_s: number; bytes: number; kind: string; ranks: number; time: Durations;
}

/** The basis for taking two works as equal. */
export type Basis = "labels" | "claim" | "no-common-kernel" | "few-common-kernels" | "nested" | "other-threads";

/** A buffer range that is bound. */
export interface Binding {
  access: string; binding: number; buffer: string; buffer_row: number | null; bytes: string; element: number; offset_bytes: string; set: number;
}

/** What bounds the speed. */
export type Bound = "host-bound" | "device-bound" | "transfer-bound" | "sync-bound" | "communication-bound" | "latency-bound" | "mixed" | "unknown";

/** Busy and idle time in a window. */
export interface BusyShare {
  busy_ns: number; busy_share: number; communication_only_ns: number | null; communication_overlapped_ns: number | null; counted_whole_ns: number | null;
  idle_ns: number; transfer_only_ns: number | null; window: Interval; window_ns: number;
}

/** The evidence for the bytes that a kernel must move at least. */
export type BytesEvidence = "code" | "bound-ranges";

/** A kind of host call, or a function of such calls. */
export interface CallFacts {
  call: string; cause: Cause | null; name: string; waits: boolean;
}

/** What the overview says of a capture. */
export interface CaptureOverview {
  barrier_count: number; buffer_bytes: string; buffer_count: number; command: string; device: CapturedDevice; dispatch_count: number; end: string | null;
  gapscope: string; kernel_count: number; kernels: CapturedKernel[]; name: string; process: number; remarks: string[]; started_unix_ns: string;
  submission_count: number; transfer_count: number; window: string; window_ns: string | null;
}

/** The device of a capture. */
export interface CapturedDevice {
  driver: string; name: string; subgroup_size: number;
}

/** A kernel of a capture. */
export interface CapturedKernel {
  code: string | null; code_bytes: number | null; constant_count: number; dispatch_count: number; entry: string; name: string;
  required_subgroup_size: number | null;
}

/** What can be asked in SQL. */
export interface Catalogue {
  saved: SavedQuery[]; tables: SqlTable[];
}

/** Why a device ran nothing. Each nanosecond of a gap has exactly one cause. */
export type Cause = "host-late" | "host-compile" | "host-allocate" | "submit-call" | "host-call" | "process-start" | "host-function" | "after-host-wait" | "other-queue" | "display" | "queue-handover" | "host-signal" | "external-wait" | "page-move" | "launch-latency" | "context-switch" | "graph-launch" | "within-command-buffer" | "recording" | "unknown";

/** The change of the idle time of one cause. */
export interface CauseChange {
  after_ns: number | null; before_ns: number | null; cause: Cause;
}

/** The code of a cause. */
export interface CauseCode {
  cause: Cause; exact: ExactLine[]; samples: number; sleeps: Sleep[]; source: CodeSource; total_ns: number; without_samples_ns: number;
}

/** All that is known of a cause, in the words of an API. */
export interface CauseFacts {
  advice: string; cause: Cause; colour: string; family: Family; host_was: string | null; letter: string; name: string; sentence: string; side: Side;
}

/** The explanation of a cause's idle time. */
export interface CauseNote {
  advice: string | null; code: string | null;
}

/** Idle time of one cause, and what to do about it. */
export interface CauseSummary {
  advice: string; cause: Cause; count: number; main_count: number; main_ns: number; may_be?: string | null; total_ns: number;
}

/** The best memory throughput of a device, to which that of kernels is related. */
export interface Ceiling {
  copy_bytes_per_s: number | null; device: number; name: string; nvlink_received_bytes_per_s: number | null; nvlink_sent_bytes_per_s: number | null;
  other_driver: string | null; pcie_read_bytes_per_s: number | null; pcie_write_bytes_per_s: number | null; read_bytes_per_s: number | null;
  source: CeilingSource; write_bytes_per_s: number | null;
}

/** The source of a ceiling. */
export type CeilingSource = "measured" | "data-sheet" | "unknown";

/** The map from a device's clock to the host's. */
export interface Clock {
  drift_ppm: number | null; error_ns: number | null; method: ClockMethod; nanoseconds_per_tick: number; samples: number;
}

/** The source of clock samples. */
export type ClockMethod = "calibrated" | "brackets" | "none";

/** The code behind idle time. */
export interface Code {
  causes: CauseCode[]; gil: LockHolder[]; longest: CodeTime[][]; missing_samples: number; ran_meanwhile: RanMeanwhile[]; samples: number; taken_samples: number;
  workers: Workers | null;
}

/** A frame of a stack. */
export interface CodeFrame {
  file: string | null; function: string | null; kind: string; library: string | null; line: number | null; source?: string | null;
}

/** A line of code that represents stacks. */
export interface CodeLine {
  frame: number; text: string;
}

/** What tells the code of a cause. */
export type CodeSource = "samples" | "ranges";

/** The time of a group of stacks: they have the same own frame with the same callers, and call the same function from it. */
export interface CodeTime {
  blocked: number; cause: Cause; frames: CodeFrame[]; is_idle_event_loop: boolean; samples: number; total_ns: number;
}

/** One collective. */
export interface Collective {
  arrivals: Arrival[]; communicator: string; first_ns: number; first_rank: number; kind: string; last_rank: number; number: number; skew_ns: number;
}

/** Collectives of a kind. */
export interface CollectiveKind {
  by_order_alone: boolean; contradictory_count: number | null; counts: number[]; incomplete_count: number; kind: string; last_unknown_count: number | null;
  matched_count: number; shifted_count: number; skew: Durations; unassigned_count: number; uncertain_count: number | null; unequal: boolean;
  unpaired_count: number;
}

/** Where a column of a frame lies. */
export interface ColumnHeader {
  name: string; offset: number; type: ColumnType;
}

/** The type of a column. */
export type ColumnType = "f64" | "u32" | "u8";

/** A command buffer: one submitted instance. */
export type CommandBufferId = number;

/** One command buffer. */
export interface CommandBufferRow {
  dispatch_count: number; duration_ns: number | null; id: CommandBufferId; label: string | null; name: string | null; queue_id: QueueId;
  start_ns: number | null; transfer_count: number;
}

/** Command buffers over the whole recording. */
export interface CommandBuffers {
  count: number; durations: Durations; empty_count: number; longest: CommandBufferRow[]; max_dispatches: number | null; mean_dispatches: number | null;
  start_to_start: Durations; submission_count: number; timings: TimingCount[];
}

/** Ranks that take part in collectives together. */
export interface CommunicatorRow {
  communicator: string; complete: boolean; matched_count: number; ranks: number[]; size: number | null;
}

/** What happened to a GPU or a machine. */
export type ConditionKind = "heat" | "power-brake" | "slowdown" | "power-cap" | "memory-stall" | "memory-limit" | "killed-for-memory" | "processor-stall" | "disk-stall" | "swap" | "thermal-state";

/** Something that may have changed how long work took. */
export interface ConditionNote {
  clock_share?: number | null; device: number | null; end_ns: number; held_ns: number; is_usual: boolean; kind: ConditionKind; sentence: string;
  start_ns: number;
}

/** Times of one device that cannot be true together with each other or with host times. */
export interface Contradiction {
  clock_error_ns: number | null; compared_count: number; count: number; device: number; kind: ContradictionKind; max_ns: number; median_ns: number;
  sentence: string; total_ns: number;
}

/** What times seem to show that cannot be. */
export type ContradictionKind = "starts-before-call" | "ends-after-wait" | "ends-after-seen" | "ends-after-later-work" | "starts-before-awaited" | "ends-after-recording";

/** A count of things that ran. */
export type Count = "dispatch_count" | "command_buffer_count" | "submission_count" | "transfer_count";

/** What a counter counts. */
export interface CounterFacts {
  name: string; source: string; unit: string;
}

/** What the header of a counter's frame says besides. */
export interface CounterHeader {
  generation: number; unit: string;
}

/** A recorded counter in figures. */
export interface CounterRow {
  device: number | null; max: number | null; mean: number | null; min: number | null; name: string; queue_id: QueueId | null; source: string; unit: string;
  value_count: number;
}

/** The critical path of a device, or of all devices together, as far as it runs through one kind of work that computing waited for. */
export interface CriticalPath {
  device: number; inferred_ns: number; is_remote: boolean; path_ns: number; queue: string; queue_device?: string | null; queue_id: QueueId; wait_count: number;
  waited_ns: number; what: string; window_ns: number;
}

/** The longest chain of dependencies. */
export interface CriticalPath2 {
  length: string; node_count: number; nodes: number[]; parallelism: number | null; unit: PathUnit; work: string;
}

/** A part of what depends on what in a capture, or in a range of a trace. */
export interface Dependencies {
  barrier_count: number; barriers: DependencyBarrier[]; critical_path: CriticalPath2 | null; cut_at: number | null; edge_count: number; edges: DependencyEdge[];
  edges_left_out: number; edges_outside: number; first: number; hazard_count: number; needless_count: number; node_count: number; nodes: DependencyNode[];
  possible_hazard_count: number; remarks: string[]; submissions: DependencySubmission[]; unknown: string | null;
}

/** Memory that a node reads or writes. */
export interface DependencyAccess {
  binding: [number, number, number] | null; buffer: string; bytes: string; direction: Direction; reason: string | null;
}

/** A barrier. */
export interface DependencyBarrier {
  command: number; need: Need; position: number; reason: string | null; submission: number;
}

/** A dependency of one node on another. */
export interface DependencyEdge {
  buffer_count: number; buffers: string[]; bytes: string; exact: boolean; from: number; hazard: HazardCertainty | null; kind: EdgeKind; ordered_by: Order;
  to: number;
}

/** A dispatch or transfer with what it reaches. */
export interface DependencyNode {
  access_count: number; accesses: DependencyAccess[]; beyond: string | null; duration_ns: number | null; exact: boolean; id: number; kind: NodeKind | null;
  labels: string[]; name: string; place: NodePlace | null; read_bytes: string; submission: number; written_bytes: string;
}

/** A submission of nodes. */
export interface DependencySubmission {
  called_ns: string | null; device_ns: string | null; name: string | null; number: number; queue: string | null;
}

/** A device as one process used it. */
export interface Device {
  api: string; clock: Clock; driver: string; heaps: number[]; id: DeviceId; limits: DeviceProperties | null; lost: boolean; name: string; number: number | null;
  process: ProcessId; uuid: string;
}

/** A physical GPU: all devices of the trace, of whatever process, with one uuid. */
export interface DeviceBusy {
  after_last_ns: number | null; analysed: BusyShare | null; api: string; before_first_ns: number | null; busy_ns: number | null; clock_error_ns: number | null;
  clock_method: string; clock_tool: string | null; command_buffers_counted_whole: number; command_buffers_untimed: number; counted_whole_ns: number | null;
  device_ids: DeviceId[]; driver: string; index: number; label: string | null; lost: boolean; name: string; process_ids: ProcessId[]; queues: QueueBusy[];
  transfer_only_ns: number | null; uuid: string; work_window: Interval | null;
}

/** Fill of a GPU over the analysed window. */
export interface DeviceFill {
  beside_communication_ns: number | null; beside_transfer_ns: number | null; computing_ns: number; device: number; kernels: KernelFill[];
  known_ns: number | null; mean_multiprocessors: number | null; multiprocessors: number | null; underfilled_mean_multiprocessors: number | null;
  underfilled_ns: number | null;
}

/** A device as one process used it. */
export type DeviceId = number;

/** Idle time of a device. */
export interface DeviceIdle {
  causes: GapTotal[]; device: number; pattern: Pattern; sides: SideRange[]; total_ns: number; unknown_host_ns: number; untimed_host_function_ns: number;
  untimed_work_ns: number; verdict: Bound; verdict_evidence: VerdictPart[]; verdict_sentence: string; verdict_window_ns: number | null;
}

/** Properties of a device. A property that is not known is absent. */
export interface DeviceProperties {
  compute_capability: string | null; core_clock_khz: number | null; groups_per_multiprocessor: number | null; l2_bytes: number | null;
  measured: MeasuredPeaks | null; memory_bytes_per_s: number | null; multiprocessors: number | null; partition: boolean;
  registers_per_multiprocessor: number | null; shared_bytes_per_multiprocessor: number | null; threads_per_multiprocessor: number | null;
}

/** Whether an access reads or writes. */
export type Direction = "read" | "write";

/** Drift over all command buffers that have both times. */
export interface Drift {
  count: number; max_union_ratio: number | null; min_union_ratio: number | null; p50_union_ratio: number | null; sentence: string; sum_ratio: number | null;
  union_ratio: number | null; violation_count: number; worst: DriftRow[];
}

/** Drift of one command buffer. */
export interface DriftRow {
  command_buffer: CommandBufferId; duration_ns: number; outside_ns: number; sum_ns: number; union_ns: number;
}

/** Statistics of durations in nanoseconds. All but the count are absent when the count is 0. */
export interface Durations {
  max_ns: number | null; mean_ns: number | null; min_ns: number | null; p50_ns: number | null; p99_ns: number | null; timed_count: number;
  total_ns: number | null;
}

/** Why a command must come after another. */
export type EdgeKind = "RAW" | "WAR" | "WAW";

/** A figure and how far it may be off. */
export interface Estimate {
  error: number; value: number;
}

/** A line that a hook saw. */
export interface ExactLine {
  count: number; frames: CodeFrame[]; source: string;
}

/** How the recorded command ended. */
export type Exit = { code: number } | { signal: number };

/** Causes that belong together, and share a colour where there are few. */
export type Family = "host" | "host-wait" | "queues" | "launch" | "command-buffer" | "unknown";

/** A column of a row. */
export interface Field {
  meaning: string; name: string; value: string | null;
}

/** What of two works is compared. */
export type Figure = "dispatches" | "workgroups" | "threads" | "command buffers" | "submissions" | "bytes bound" | "transfer bytes" | "GPU busy ns" | "wall ns" | "start to start ns";

/** What is said of a file with the page. */
export interface FileFacts {
  folded: string | null; made_unix_ns: string;
}

/** What `gapscope report --json` prints, and what the page needs besides. */
export interface Findings {
  activity?: Activity | null; advice: Advice[] | null; analysed_window: Interval | null; clock_error_ns: number | null;
  clock_error_unknown_because?: string | null; code?: CodeTime[]; code_details?: Code; command: string[]; command_buffer_count: number | null;
  command_buffers: CommandBuffers | null; complete: boolean; conditions?: ConditionNote[] | null; contradictions?: Contradiction[];
  counters?: CounterRow[] | null; critical_paths?: CriticalPath[]; devices: DeviceBusy[]; dispatch_count: number | null; drift: Drift | null;
  equal_work: WorkComparison | null; exit: Exit | null; fill: DeviceFill[] | null; folded_labels: FoldedLabel[] | null; gains: PredictedGain[];
  gains_of_steps?: number | null; gains_unknown?: UnknownGain[]; gains_window?: Interval | null; gap_notes: CauseNote[]; gaps: CauseSummary[] | null;
  gapscope_version: string; generation: number; gpu_busy_ns: number | null; gpu_busy_unknown_because?: string | null; head: HeadSentences;
  headline: HeadlineNote[]; hides_waits_for_ranks?: boolean; idle_time: IdleTime | null; joint_critical_paths?: CriticalPath[]; joint_gain?: JointGain | null;
  kernel_limits?: KernelLimits | null; kernel_rows: KernelRows[]; kernels: Kernel[] | null; label: string | null; label_names: (number | null)[];
  labels: LabelRow[] | null; launch_latency: QueueLatency[] | null; losses: Loss[]; memory: MemoryRow[] | null; notes: string[];
  operators: OperatorRow[] | null; path?: PathPart[]; phases?: Phase[]; profiled_kernels?: ProfiledKernel[] | null; ranks?: JudgedRanks | null;
  report_version: number; sampled_kernels?: SampledKernel[] | null; sampling_mode: SamplingMode; slack?: KernelSlack[]; start_ns: number;
  step_summary?: StepSummary | null; steps: Step[] | null; submission_count: number | null; timed_dispatch_count: number | null; trace: string;
  transfer_bytes: number | null; transfer_count: number | null; transfer_unknown_bytes_count: number | null; transfers: TransferRow[] | null;
  unknown_counts?: UnknownCount[]; unmeasured?: Unmeasured[]; unread: UnreadTable[]; verdict: Bound; verdict_evidence: VerdictPart[]; verdict_sentence: string;
  verdict_window_ns: number | null; wall_ns: number | null; wall_unknown_because?: string | null; warm_up: WarmUp; work_window: Interval | null;
}

/** Dispatches or transfers that do the same. */
export interface FlowNode {
  count: number; first_start_ns: number | null; id: number; kind: FlowNodeKind; label: string | null; name: string; total_ns: number | null;
}

/** The kind of work that a node stands for. */
export type FlowNodeKind = "dispatch" | "transfer" | "rest";

/** The GPU work under labels that differ only in the numbers of a model's modules. */
export interface FoldedLabel {
  depth: number; exclusive: LabelWork; in_graphs: number; inclusive: LabelWork; instances: number | null; layer_count: number; layer_max_busy_ns: number | null;
  layer_mean_busy_ns: number | null; layer_min_busy_ns: number | null; path: string; text: string;
}

/** The header of every frame. */
export interface FrameHeader {
  columns: ColumnHeader[]; rows: number;
}

/** One gap of a device. */
export interface Gap {
  after: WorkName; before: WorkName; cause: Cause; device: number; duration_ns: number; host_calls: HostTime[]; other_threads: HostTime[]; parts: GapPart[];
  process_id: ProcessId | null; start_ns: number; submission: SubmissionId | null; submit_begin_ns: number | null; thread: ThreadId | null;
  thread_name: string | null; waited_for_queue: QueueId | null;
}

/** Gaps of some range of lengths. */
export interface GapBin {
  count: number; from_ns: number; to_ns: number | null; total_ns: number;
}

/** A part of a gap. */
export interface GapPart {
  cause: Cause; duration_ns: number; start_ns: number;
}

/** Idle time of one cause. */
export interface GapTotal {
  by_other_threads_ns: number; cause: Cause; count: number; main_count: number; main_ns: number; total_ns: number; uncertain_ns: number | null;
}

/** The folded dependency graph of a range, or of the whole trace. */
export interface Graph {
  considered: number; dispatches: number; edges: GraphEdge[]; folded: string; nodes: FlowNode[]; unknown: number;
}

/** Reads of what others wrote. */
export interface GraphEdge {
  buffers: string[]; bytes: string; count: number; from: number; to: number;
}

/** A GPU, a recorded process, or the host. */
export interface Group {
  device_ids?: DeviceId[]; id: string; kind: GroupKind; name: string; process?: ProcessId | null;
}

/** What a group of tracks belongs to. */
export type GroupKind = "gpu" | "process" | "host";

/** The reason why one item must run after another. */
export type Hazard = "read-after-write" | "write-after-read" | "write-after-write";

/** How sure it is that nothing orders two nodes. */
export type HazardCertainty = "certain" | "possible";

/** The sentences beside the verdict. */
export interface HeadSentences {
  before: string[]; details: string[]; notes: string[]; steps: string[];
}

/** What a note beside the verdict is about. */
export type HeadlineKind = "contradiction" | "part-of-file" | "untimed-work" | "lost-calls" | "joined-file" | "scope" | "long-gap" | "lost-device" | "unused-device" | "phase" | "condition";

/** A sentence that belongs to the verdict. */
export interface HeadlineNote {
  kind: HeadlineKind; sentence: string;
}

/** The recording machine. */
export interface Host {
  boot_id: string | null; cores: number | null; processor: string; system: string; time_namespace: number | null;
}

/** Host time by call. */
export interface HostTime {
  call: string; count: number; function?: string | null; total_ns: number;
}

/** Idle time of a rank's devices in the analysed window. */
export interface Idle {
  cause: Cause | null; cause_ns: number | null; total_ns: number; window_ns: number;
}

/** What the header of the frame of samples in gaps says besides. */
export interface IdleSamplesHeader {
  causes: SampledCause[]; generation: number; parts: string[];
}

/** Idle time of the analysed window: of all devices, and of each queue. */
export interface IdleTime {
  below_threshold_count: number; below_threshold_ns: number; devices: DeviceIdle[]; gap_count: number; histogram: GapBin[]; host_calls: HostTime[];
  longest: Gap[]; other_thread_calls: HostTime[]; queues: QueueIdle[]; serialised_count: number; serialised_ns: number; sides: SideRange[];
  threads_at_work: ThreadAtWork[]; total_ns: number; uncertain_ns: number | null; unknown_host_ns: number; unknown_reasons: UnknownTotal[];
  untimed_host_function_ns: number;
}

/** A time for which a label was set. */
export interface Instance {
  duration_ns: number; row: number; start_ns: number; track: string;
}

/** Where a label was set, by start; at most 10,000. */
export interface Instances {
  count: number; instances: Instance[];
}

/** A half-open interval of nanoseconds, `start_ns..end_ns`. */
export interface Interval {
  end_ns: number; start_ns: number;
}

/** A file of another profiler of the same run, whose ranges of host code (operators, functions, annotations) were put on the clock of the file with the launches of GPU work, and how well the launches fit into them. */
export interface JoinedFile {
  drift_ns_per_s: number; file: string; launches: number; launches_inside: number; matched_threads: boolean; next_best_share: number | null;
  offset_error_ns: number; offset_ns: number; own_launches: number; own_launches_matched: number;
}

/** What two changes would bring together. */
export interface JointGain {
  changes: [string, string]; high: number; low: number; mid: number;
}

/** The findings on ranks with what to do first, in a folder of ranks as in one trace. */
export interface JudgedRanks {
  bandwidth: Bandwidth[]; clock_error_ns: number | null; collective_calls: CollectiveKind[]; collectives: CollectiveKind[]; communicators: CommunicatorRow[];
  critical_path: RanksPath | null; first_step: string | null; late_group: LateGroup | null; late_ranks: LateRankRow[]; longest: Collective[];
  missing_ranks: number[]; not_comparable_because: string | null; not_matched_because: string | null; outliers: Outlier[]; pipelines: Pipeline[];
  ranks: RankRow[]; sentences: string[]; slow_links: SlowLink[]; straggler: Straggler | null; verdict: Bound; verdict_evidence: VerdictPart[];
  verdict_sentence: string; world_size: number | null;
}

/** All dispatches of the kernels with one name and one code, over the whole recording. */
export interface Kernel {
  bound_count: number; bound_read_bytes: number | null; bound_written_bytes: number | null; busy_ns: number | null; busy_share: number | null;
  bytes_at_least?: number | null; bytes_evidence?: BytesEvidence | null; bytes_per_s?: number | null; codes: number; count: number;
  counters: KernelCounters | null; distance: number | null; first_ns: number | null; first_start_ns: number | null; full_name: string | null;
  launches: Launches | null; limit: KernelLimit | null; limited_by: LimitingUnit | null; max_ns: number | null; mean_ns: number | null; min_ns: number | null;
  name: string; name_source: string; p50_ns: number | null; p99_ns: number | null; phases?: KernelPhase[]; reached: number | null; reached_error: number | null;
  share_of_peak?: number | null; share_of_peak_unknown_because?: NoPeakShare | null; sources: KernelSource[]; timed_count: number;
  times_unknown_because?: string | null; total_ns: number | null; untimed_count: number; variants: number; winnable_ns: number | null;
}

/** The change of a kernel. */
export interface KernelChange {
  after_count: number | null; after_ns: number | null; before_count: number | null; before_ns: number | null; name: string;
}

/** A counter while a kernel ran. */
export interface KernelCounter {
  covered_share: number; error: number; max: number; mean: number; min: number; name: string; sample_count: number; standard_error: number; unit: string;
}

/** Hardware counters while a kernel ran, from samples in which it ran and nothing else did. */
export interface KernelCounters {
  alone_ns: number; covered_ns: number; covered_share: number; dram_read_bytes: Estimate | null; dram_written_bytes: Estimate | null; means: KernelCounter[];
  ran_ns: number; sample_count: number; shares: ShareOfLimit[]; unknown_because: string | null;
}

/** A kernel while the GPU was underfilled. */
export interface KernelFill {
  count: number; fill: number; groups_p50: number; groups_per_multiprocessor: number | null; limited_by: string | null; name: string; underfilled_ns: number;
}

/** The limit of a kernel. */
export type KernelLimit = "short" | "memory" | "compute" | "link" | "too-small" | "tail" | "idle" | "latency";

/** The data that the limits of kernels rest on. */
export interface KernelLimits {
  ceilings: Ceiling[]; covered_ns: number; covered_share: number; ran_ns: number; sample_count: number; sample_ns: number; sentences: string[];
}

/** A part of a kernel's time in which its units worked alike, by the samples of that time. It may be a part of each dispatch, or whole dispatches. */
export interface KernelPhase {
  limit: KernelLimit | null; limited_by: LimitingUnit | null; reached: number | null; time_share: number; unknown_because?: string | null;
  winnable_ns: number | null;
}

/** The rows of the table `kernels` that a kernel of the findings has, and its name as an index in `strings`. */
export interface KernelRows {
  kernels: number[]; name: number | null;
}

/** By how much the launches of a kernel could be longer. */
export interface KernelSlack {
  kernel: string; launches: number; slack_ns: number; total_ns: number;
}

/** The code of a kernel. */
export interface KernelSource {
  file: string | null; file_hash: string | null; hash: string;
}

/** All GPU work under one label path, over the whole recording. */
export interface LabelRow {
  depth: number; exclusive: LabelWork; in_graphs: number; inclusive: LabelWork; instances: number | null; path: string; text: string;
}

/** GPU work under a label. */
export interface LabelWork {
  busy_ns: number | null; dispatch_count: number; max_ns: number | null; mean_ns: number | null; min_ns: number | null; p50_ns: number | null;
  p99_ns: number | null; timed_count: number; total_ns: number | null; transfer_count: number;
}

/** What the lateness of one rank of a group costs the others. */
export interface LateAlone {
  cost_ns: number; rank: number;
}

/** An activity on which a late rank spent longer than the others. */
export interface LateCause {
  longer_ns: number; share: number; what: string;
}

/** The ranks that the others wait for, and what their lateness costs the others. */
export interface LateGroup {
  alone: LateAlone[]; cost_ns: number; how: LateHow; ranks: number[]; sentence: string | null;
}

/** How ranks of a group are late. */
export type LateHow = "alone" | "together" | "in-turns" | "both";

/** A rank that is late, alone or with others. */
export interface LateRankRow {
  cause: LateCause | null; chance: number; evidence: string | null; group_count: number; late_count: number; late_ns: number; later_than: number[];
  longer: LateCause[]; of_count: number; rank: number; reason: LateReason | null; stretch: Interval | null;
}

/** A reason why a rank is late. */
export type LateReason = "more-work" | "slower-clock" | "heat" | "power" | "data-loading" | "network";

/** The shape of a kernel's launches, on GPUs whose size is known. Means are by time. */
export interface Launches {
  known_ns: number; mean_multiprocessors: number; multiprocessors: number; occupancy: number | null; occupancy_limited_by: string | null; tail_ns: number;
  too_small_ns: number; waves: number | null;
}

/** Evaluations that are no samples. */
export interface LeftOut {
  because: Reason; count: number;
}

/** A unit of a GPU that can limit a kernel. */
export type LimitingUnit = "dram" | "l2" | "tensor" | "fma" | "alu" | "issue" | "pcie" | "nvlink";

/** A row that belongs to another one. */
export interface Link {
  duration_ns: number | null; name: string; relation: string; row: number; start_ns: number | null; table: string; track: string | null;
}

/** How far the traces are recorded, in the order of the overview. */
export interface Live {
  traces: TraceStatus[];
}

/** A thread that had the interpreter's lock. */
export interface LockHolder {
  frames: CodeFrame[]; process_id: ProcessId; samples: number; thread: ThreadId; thread_name: string | null;
}

/** The schema of a `Loss`, whose type hooks share: something that was not recorded. */
export interface Loss {
  count: number; reason: string; what: string;
}

/** Something that was not recorded. */
export interface LossLine {
  count: number; reason: string; text: string; what: string;
}

/** The facts about a recording as a whole. Fields that this version does not know are ignored. */
export interface Manifest {
  command: string[]; complete: boolean; devices: Device[]; end_ns: number; exit: Exit | null; format_version: number; gapscope_version: string; host: Host;
  joined_files: JoinedFile[]; losses: Loss[]; notes: string[]; processes: Process[]; queues: Queue[]; rank: Rank | null; ranks: number[];
  sampling_mode: SamplingMode; stack_rate_hz: number | null; start_ns: number; start_unix_ns: number | null; threads: Thread[]; unmeasured: Unmeasured[];
}

/** The measured peaks of a device. A peak that was not measured is absent. */
export interface MeasuredPeaks {
  copy_bytes_per_s: number | null; driver: string; fma_f32_flops: number | null; host_read_bytes_per_s: number | null; host_write_bytes_per_s: number | null;
  launch_interval_ns: number | null; launch_latency_ns: number | null; matrix_flops: Record<string, number>; measured_unix_s: number | null;
  nvlink_both_bytes_per_s: number | null; nvlink_received_bytes_per_s: number | null; nvlink_sent_bytes_per_s: number | null; read_bytes_per_s: number | null;
  write_bytes_per_s: number | null;
}

/** Who holds a part of the memory at the peak. */
export interface MemoryOwner {
  block_count: number; bytes: number; is_before_history: boolean; label: string | null; line: string | null; operation: string | null;
  phase: MemoryPhase | null; share: number;
}

/** A phase of training. */
export type MemoryPhase = "forward" | "backward" | "optimizer";

/** Device memory over the recording, by device and heap. */
export interface MemoryRow {
  allocation_count: number; allocator?: AllocatorPeak | null; device: number; free_count: number; heap: number | null; heap_bytes: number | null;
  live_bytes: number; live_count: number; owners: MemoryOwner[]; peak_at_ns: number | null; peak_bytes: number; total_bytes: number;
  unmatched_free_count: number;
}

/** A metric with its value. */
export interface MetricValue {
  meaning: string | null; metric: string; section: string; unit: string; value: number;
}

/** Why an answer cannot be had. */
export interface Missing {
  changed?: boolean; missing: string;
}

/** The need for a barrier. */
export type Need = "needed" | "needless" | "outside" | "host" | "unknown";

/** Work on one end of a dependency. */
export interface Neighbour {
  buffers: string[]; bytes: string; duration_ns: number | null; kind: Hazard; name: string; row: number; start_ns: number | null; table: string;
  track: string | null;
}

/** What a dispatch or transfer depends on, and what depends on it, by bound buffer ranges. */
export interface Neighbours {
  note: string; predecessors: Neighbour[]; successors: Neighbour[];
}

/** Why the share of the peak of a kernel whose bytes are known is not. */
export type NoPeakShare = "not-measured" | "above-peak";

/** The kind of a command. */
export type NodeKind = "dispatch" | "copy" | "fill" | "update";

/** The row of a trace that a node is. */
export interface NodePlace {
  row: number; start_ns: number | null; table: string; track: string | null;
}

/** A note of the reader at a moment or of a range of a trace. */
export interface Note {
  from_ns: number; text: string; to_ns: number | null;
}

/** The notes of a trace. */
export interface NotesAnswer {
  notes: Note[]; revision: string; unwritable: string | null;
}

/** All calls of an operator. */
export interface OperatorRow {
  call_count: number; inclusive: OperatorWork; name: string; own: OperatorWork;
}

/** Work on devices. */
export interface OperatorWork {
  timed_count: number; total_ns: number | null;
}

/** The order of the ends of an edge. */
export type Order = "barrier" | "semaphore" | "nothing" | "unknown";

/** Ranks that are unlike the others in one figure. */
export interface Outlier {
  cost_ns: number; kernel: string | null; machine: string | null; ranks: number[]; ratio: number; sentence: string; usual_ns: number; value_ns: number;
  what: Unlike;
}

/** What is open: all that the first drawing needs. */
export interface Overview {
  bins: number; capture?: CaptureOverview | null; file: FileFacts | null; first?: string | null; gapscope: string; keeps?: boolean | null;
  opened?: string[] | null; page_rows?: number | null; protocol: number; state?: string | null; together: string | null; traces: TraceOverview[];
}

/** Moves of managed memory's pages, which the driver makes where the host or a kernel touches them. */
export interface PageMoves {
  beside_kernels_ns: number; busy_ns: number; bytes: number; count: number;
}

/** The time of the critical path that was spent on one thing. */
export interface PathPart {
  high: number | null; low: number | null; name?: string | null; rank?: number | null; share: number; total_ns: number; what: string;
}

/** The unit of a critical path. */
export type PathUnit = "ns" | "commands";

/** How the gaps that carry the idle time follow each other. */
export interface Pattern {
  apart_p25_ns: number | null; apart_p75_ns: number | null; gap_count: number; gaps_per_period: number | null; period_ns: number | null; reason?: string | null;
  regularity: Regularity; share: number | null; spread_share: number | null; total_ns: number;
}

/** A part of the program with a verdict of its own. */
export interface Phase {
  end_ns: number; label: string | null; sentence: string; start_ns: number; verdict: Bound; window_ns: number;
}

/** Ranks that are the stages of a pipeline. */
export interface Pipeline {
  least_compute_share: number | null; most_compute_share: number | null; ranks: number[]; sentence: string; slowest: number | null;
}

/** What one change would bring. */
export interface PredictedGain {
  cause?: string | null; change: string; high: number; low: number; mid: number;
}

/** A recorded process. */
export interface Process {
  arguments: string[]; end_ns: number | null; executable: string; hook: string; id: ProcessId; parent_pid: number | null; pid: number; start_ns: number;
}

/** A process of the recording, as the trace numbers it; not the system's id. */
export type ProcessId = number;

/** The bound of a kernel. */
export type ProfileBound = "memory" | "compute" | "both" | "latency" | "unknown";

/** A launch of a kernel that was profiled. */
export interface ProfiledKernel {
  achieved_occupancy: number | null; bound: ProfileBound; compute: number | null; dram: number | null; dram_read_bytes: number | null;
  dram_written_bytes: number | null; duration_ns: number | null; full_name: string | null; groups: number | null; kernel: string; l1: number | null;
  l1_bytes: number | null; l1_hit_rate: number | null; l2: number | null; l2_bytes: number | null; l2_hit_rate: number | null; memory: number | null;
  metrics: MetricValue[]; multiprocessors: number | null; occupancy_limited_by: string | null; passes: number; profile: number; sentence: string;
  stalls: StallShare[]; submission: number | null; theoretical_occupancy: number | null; waves: number | null;
}

/** The queries that were asked, the latest first. */
export interface Queries {
  queries: string[];
}

/** A queue. */
export interface Queue {
  capabilities: string[]; device: DeviceId; family: number; id: QueueId; index: number; kind: string | null; name: string | null; priority: number | null;
  timestamp_bits: number;
}

/** A queue's part of its GPU. */
export interface QueueBusy {
  analysed: BusyShare | null; busy_ns: number | null; capabilities: string[]; name: string; queue_id: QueueId; work_window: Interval | null;
}

/** A queue: a Vulkan queue, a CUDA stream. */
export type QueueId = number;

/** Idle time of a queue, between its own first and last work. */
export interface QueueIdle {
  causes: GapTotal[]; device: number; queue_id: QueueId; total_ns: number;
}

/** Launch latency and queue depth of one queue, over the whole recording. */
export interface QueueLatency {
  depth_zero_ns: number | null; device: number; max_depth: number | null; mean_depth: number | null; queue_id: QueueId;
  started_before_submission_count: number | null; submission_count: number; submit_calls: Durations; submit_to_start: Durations;
  submit_to_start_idle: Durations; waited: Waited[]; waited_count: number;
}

/** A thread that ran while a submitting thread of its process was blocked. */
export interface RanMeanwhile {
  frames: CodeFrame[]; process_id: ProcessId; samples: number; thread: ThreadId; thread_name: string | null;
}

/** What the analyses say of a range of time. */
export interface RangeFindings {
  devices: DeviceBusy[]; dispatch_count: number; fill: DeviceFill[]; gaps: GapTotal[]; gpu_busy_ns: number | null; idle_time: IdleTime; kernels: Kernel[];
  transfer_bytes: string | null; transfers: TransferRow[]; verdict: Bound; verdict_evidence: VerdictPart[]; verdict_sentence: string;
  verdict_window_ns: number | null; window: Interval;
}

/** A rank of a distributed program. */
export interface Rank {
  local_rank: number | null; rank: number; world_size: number;
}

/** The time of the path on a rank, in nanoseconds. */
export interface RankOnPath {
  communication_ns: number; compute_ns: number; host_ns: number; launch_ns: number; rank: number; sync_ns: number; transfer_ns: number; unknown_ns: number;
}

/** One rank. */
export interface RankRow {
  collective_count: number | null; collective_ns: number | null; device_ids: DeviceId[]; devices: string[]; dispatch_count: number | null;
  gpu_busy_ns: number | null; idle: Idle | null; last_count: number | null; last_skew_ns: number | null; local_rank: number | null; machine: string | null;
  rank: number; unread: UnreadTable[]; verdict: Bound; verdict_evidence: VerdictPart[]; verdict_sentence: string; waited_ns: number | null;
  wall_ns: number | null;
}

/** The ranks of the program compared, with the collectives of the greatest skews under `longest`. */
export interface RanksAnswer {
  bandwidth: Bandwidth[]; clock_error_ns: number | null; collective_calls: CollectiveKind[]; collectives: CollectiveKind[]; communicators: CommunicatorRow[];
  critical_path: RanksPath | null; late_group: LateGroup | null; late_ranks: LateRankRow[]; longest: Collective[]; missing_ranks: number[];
  not_comparable_because: string | null; not_matched_because: string | null; outliers: Outlier[]; pipelines: Pipeline[]; ranks: RankRow[]; sentences: string[];
  slow_links: SlowLink[]; straggler: Straggler | null; traces: number[]; verdict: Bound; verdict_evidence: VerdictPart[]; verdict_sentence: string;
  world_size: number | null;
}

/** The critical path through all ranks. */
export interface RanksPath {
  change_count: number; error_ns: number; ranks: RankOnPath[]; unmatched_ns: number; window_ns: number;
}

/** One figure of two works. */
export interface Ratio {
  after: number | null; after_spread: Spread | null; before: number | null; before_spread: Spread | null; high: number | null; low: number | null;
  ratio: number | null; what: Figure; within_noise: boolean | null;
}

/** Why an evaluation is no sample. */
export type Reason = "warm-up" | "first-use" | "no-work" | "unclear" | "unfinished";

/** Whether gaps come regularly. */
export type Regularity = "regular" | "irregular" | "unknown";

/** Everything about one row of a table. */
export interface Row {
  bindings: Binding[] | Missing | null; device: string | null; duration_ns: number | null; fields: Field[]; gap?: Gap | null; kernel: RowKernel | null;
  label: RowLabel | null; link_counts: Record<string, number>; links: Link[]; queue: string | null; row: number; start_ns: number | null; table: string;
  thread: string | null; times_unknown_because?: string | null; title: string; track: string | null;
}

/** The kernel of a row. */
export interface RowKernel {
  fields: Field[]; has_source: boolean; name: string; row: number;
}

/** The label of a row, from the outermost in. */
export interface RowLabel {
  path: string[]; rows: number[];
}

/** The only row of a table with the values that were asked for. */
export interface RowNumber {
  row: number;
}

/** How much of a cause's idle time has samples. */
export interface SampledCause {
  cause: Cause; samples: number; total_ns: number; without_samples_ns: number;
}

/** A line of a function. */
export interface SampledFrame {
  file: string | null; function: string | null; kind: string; library: string | null; line: number | null; name: string; own: boolean; source: string | null;
  text: string;
}

/** A kernel whose instructions were sampled. */
export interface SampledKernel {
  function: string | null; kernel: string; other_samples: number; period_cycles: number | null; places: SampledPlace[]; samples: number; share: number;
  stalls: SampledStall[];
}

/** A line of source, or an instruction that has no line. */
export interface SampledPlace {
  file: string | null; instructions: number; line: number | null; no_line: string | null; offset_bytes: number; samples: number; share: number;
  stalls: SampledStall[];
}

/** A reason for which warps did not issue. */
export interface SampledStall {
  advice: string | null; meaning: string | null; reason: string; samples: number; share: number;
}

/** A thread whose stacks were sampled. */
export interface SampledThread {
  name: string; process: ProcessId; thread: ThreadId | null; track: string; worker: boolean;
}

/** What the header of the frame of samples says besides. */
export interface SamplesHeader {
  calls: string[]; frames: SampledFrame[]; generation: number; lines: CodeLine[]; rate_hz: number | null; sources: string[]; stacks: StackColumns;
  states: string[]; threads: SampledThread[]; told_by: CodeSource;
}

/** How the GPU was sampled. */
export type SamplingMode = "command-buffer" | "pass" | "dispatch" | "dispatch-serialised";

/** A query that gapscope brings along. */
export interface SavedQuery {
  meaning: string; name: string; sql: string;
}

/** A kernel's share of the limit of a unit. */
export interface ShareOfLimit {
  error: number; share: number; unit: LimitingUnit;
}

/** The part of the verdict's time that a cause counts for. */
export type Side = "host" | "sync" | "launch" | "unknown";

/** Idle time on one side of the verdict, and how much of it is certain. */
export interface SideRange {
  at_least_ns: number | null; at_most_ns: number | null; side: Side; total_ns: number;
}

/** What the sizes of dispatches say of the work of both sides. */
export type SizeEvidence = "equal" | "doubtful" | "unequal";

/** What a blocked thread waited for. */
export interface Sleep {
  samples: number; system_call: string | null; waited_for: WaitedFor;
}

/** A slice of time. */
export interface Slice {
  busy_ns: number; idle_cause: Cause | null; length_ns: number;
}

/** A rank whose network is slow, or ranks among which it is. */
export interface SlowLink {
  basis: SlowLinkBasis; cost_ns: number; count: number; kind: string | null; ranks: number[]; ratio: number; sentence: string; time_ns: number;
  usual_ns: number;
}

/** What shows a slow network. */
export type SlowLinkBasis = "late-ends" | "groups";

/** The code of a kernel. */
export interface SourceText {
  cut: boolean; file: string; language: string; text: string;
}

/** The statistics of one set of samples, in the unit of its quantity. */
export interface Spread {
  count: number; max: number; mean: number; median: number; min: number; p25: number; p75: number;
}

/** The rows that SQL has over all traces. */
export interface SqlAnswer {
  columns: SqlColumn[]; missing: string[]; more: boolean; rows: ((string | null)[])[]; took_ms: number; traces: string[];
}

/** A column of an answer of SQL. */
export interface SqlColumn {
  name: string; type: SqlType;
}

/** A table that can be asked. */
export interface SqlTable {
  columns: SqlTableColumn[]; meaning: string; name: string;
}

/** A column of a table that can be asked. */
export interface SqlTableColumn {
  meaning: string; name: string; type: string;
}

/** The kind of a column's values. */
export type SqlType = "integer" | "fraction" | "boolean" | "text";

/** For each row of the table `stacks` its innermost frame, the row of its callers' stack, and the line by which it is told. */
export interface StackColumns {
  frame: (number | null)[]; line: (number | null)[]; parent: (number | null)[];
}

/** A reason for which warps stalled. */
export interface StallShare {
  advice: string | null; meaning: string; reason: string; share: number; warps: number;
}

/** A step of the program: an iteration of its loop. */
export interface Step {
  because?: string | null; duration_ns: number; idle: StepIdle[]; is_left_out: boolean; is_slow: boolean; number: number; parts: StepPart[]; start_ns: number;
  window_ns: number;
}

/** Idle time in a step. */
export interface StepIdle {
  cause: Cause; total_ns: number;
}

/** A part of the device time of a step. */
export interface StepPart {
  share: number; total_ns: number; what: string;
}

/** The steps of a program together. */
export interface StepSummary {
  count: number; found: string; found_by: StepsFoundBy; label: string | null; median: number; median_ns: number; outside: StepPart[]; outside_ns: number;
  process_id: ProcessId | null; sentences: string[]; slow: number[]; thread: ThreadId | null;
}

/** How steps were found. */
export type StepsFoundBy = "markers" | "launches";

/** The rank that the others wait for most. */
export interface Straggler {
  cause: LateCause | null; chance: number; cost_ns: number; evidence: string | null; group_count: number; last_count: number; longer: LateCause[];
  of_count: number; rank: number; reason: LateReason | null; share: number; skew_ns: number; stretch: Interval | null;
}

/** Texts of a trace: names in frames are indices into the list of all of them. */
export interface Strings {
  from: number; strings: string[];
}

/** A submission. */
export type SubmissionId = number;

/** The size of a table. */
export interface TableFacts {
  bytes: number; name: string; rows: number | null;
}

/** A thread of a recorded process. */
export interface Thread {
  name: string; process: ProcessId; thread: ThreadId;
}

/** A thread that was at work while the submitting thread of its process was late. */
export interface ThreadAtWork {
  mostly_in: string; process_id: ProcessId; thread: ThreadId; thread_name: string | null; total_ns: number;
}

/** A thread, by the system's id. */
export type ThreadId = number;

/** How many command buffers have a timing. */
export interface TimingCount {
  count: number; timing: string;
}

/** One trace with its groups and tracks. */
export interface TraceOverview {
  arranged?: Arrangement | null; calls: CallFacts[]; causes: CauseFacts[]; clock_error_ns: number | null; code: CodeSource | null; complete: boolean;
  duration_ns: number | null; edition: number; extent: [number, number]; generation: number; groups: Group[]; live: boolean; losses: LossLine[];
  manifest: Manifest; name: string; origin_ns: string; remarks: string[]; sampling_mode: SamplingMode; start_unix_ns: string | null; tables: TableFacts[];
  tracks: TrackOverview[]; transfer_names: [number, number]; unread: UnreadTable[];
}

/** How far a trace is recorded. */
export interface TraceStatus {
  edition: number; generation: number; live: boolean;
}

/** What the header of a track's frame says besides. */
export interface TrackHeader {
  generation: number; lanes?: number[]; part?: [number, number] | null; slices?: number | null; tables?: string[]; whole?: boolean | null;
}

/** What the rows of a track are; in order of their names. */
export type TrackKind = "calls" | "command-buffers" | "counter" | "gaps" | "labels" | "queue-labels" | "samples" | "thread-labels" | "work";

/** A track: rows that are drawn together. */
export interface TrackOverview {
  busy: string | null; counter: CounterFacts | null; group: string; id: string; kind: TrackKind; name: string; only_call: string | null;
  process: ProcessId | null; queue: QueueId | null; rows: number | null; thread: ThreadId | null; untimed: number;
}

/** Transfers of one kind, over the whole recording. */
export interface TransferRow {
  busy_ns: number | null; bytes: number | null; bytes_per_second: number | null; count: number; kind: string; max_ns: number | null; mean_ns: number | null;
  min_ns: number | null; p50_ns: number | null; p99_ns: number | null; page_moves?: PageMoves | null; timed_count: number; total_ns: number | null;
  unknown_bytes_count: number; untimed_count: number;
}

/** A count that is not known. */
export interface UnknownCount {
  at_least: number | null; because: string; count: Count;
}

/** A change whose gain is not known. */
export interface UnknownGain {
  because: string; change: string | null; instead: string;
}

/** Why the cause of idle time is not known. */
export type UnknownReason = "no-submission" | "untimed-work" | "unrecorded-wait" | "long-start" | "page-move" | "before-recording" | "contradiction" | "early-wait";

/** Idle time of unknown cause, for one reason. */
export interface UnknownTotal {
  reason: UnknownReason; total_ns: number;
}

/** A figure that ranks are compared by. */
export type Unlike = "computes" | "idles" | "awaited" | "kernel";

/** A quantity that could not be measured beside the program. */
export interface Unmeasured {
  reason: string; what: string;
}

/** A table that a trace should have, and of which rows or a column could not be read. Findings that rest on it are unknown. */
export interface UnreadTable {
  column: string | null; file: string; reason: string; rows_missing: number | null; rows_read: number; table: string;
}

/** A part of the judged time. */
export interface VerdictPart {
  sentence: string; share: number; total_ns: number; what: string;
}

/** Submissions that waited for something other than their own queue's work. */
export interface Waited {
  cause: Cause; count: number;
}

/** What a blocked thread waits for. */
export type WaitedFor = "interpreter-lock" | "thread" | "process" | "socket" | "event-loop" | "events" | "timer" | "file" | "disk" | "driver" | "signal" | "unknown";

/** The warm-up of a recording, if there is one. */
export interface WarmUp {
  command_buffer_count: number; compile_calls: number; excluded: Interval | null; reason: string; slow_first_dispatches: number;
}

/** Two works compared. */
export interface WorkComparison {
  after: WorkCost; all_kernels: number | null; basis: Basis; before: WorkCost; causes: CauseChange[]; common_kernels: number | null; kernels: KernelChange[];
  launch_sizes: SizeEvidence | null; per_evaluation: boolean; ratios: Ratio[]; sentences: string[];
}

/** The cost of a part of a trace. Counts, bytes and times are of all of its work, warm-up included. */
export interface WorkCost {
  bound_read_bytes: number | null; bound_written_bytes: number | null; command_buffer_count: number | null; counted_evaluations: number;
  dispatch_count: number | null; dispatches_unknown_because?: string | null; evaluations: number | null; gpu_busy_ns: number | null; left_out: LeftOut[];
  meanwhile_ns?: number | null; name: string; submission_count: number | null; thread_count: number | null; transfer_bytes: number | null;
  transfer_count: number; untimed_count: number; verdict: Bound; verdict_sentence: string; wall_ns: number | null; window: Interval | null;
  workgroup_count: number | null;
}

/** What ran before or after a gap. */
export interface WorkName {
  command_buffer: CommandBufferId | null; label: string | null; name: string; queue_id: QueueId;
}

/** Code of workers. */
export interface WorkerCode {
  frames: CodeFrame[]; samples: number;
}

/** The code of worker processes while a submitting thread waited for them. */
export interface Workers {
  code: WorkerCode[]; processes: number; samples: number;
}
