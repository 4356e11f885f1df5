// A trace whose every number is known: ten steps of four kernels, then ten of one fused kernel that does the same work. The host is late between steps.
// All times in this file are in microseconds.

export interface Piece {
  start_us: number;
  duration_us: number;
  name: string;
}

export const KERNELS = ["sin", "cos", "exp", "log", "fused"];
const EAGER_STEPS = 10;
const FUSED_STEPS = 10;

/** The work of the first queue, in order. */
export const WORK: Piece[] = [];
/** The gaps of the device with their parts by cause, in order. */
export const GAPS: { start_us: number; duration_us: number; parts: Record<string, number> }[] = [];

const lines: string[] = [];

function step(number: number, start_us: number, kernels: number[], label: number, period_us: number, last: boolean): void {
  const each_us = label === 1 ? 100 : 120;
  const busy_us = kernels.length * each_us;
  const wait_us = label === 1 ? 50 : 30;
  lines.push(
    `submission id=${number} process=1 queue=1 thread=41 start_ns=${start_us - 100}us duration_ns=50us command_buffers=1`,
    `host_call process=1 thread=41 call=submit start_ns=${start_us - 100}us duration_ns=50us queue=1`,
    `host_call process=1 thread=41 call=wait-fences start_ns=${start_us - 50}us duration_ns=${50 + busy_us + wait_us}us`,
    `command_buffer id=${number} process=1 queue=1 submission=${number} start_ns=${start_us}us duration_ns=${busy_us}us dispatches=${kernels.length} label=${label}`,
    `marker process=1 scope=command-buffer label=${label} queue=1 command_buffer=${number} start_ns=${start_us}us duration_ns=${busy_us}us`,
  );
  kernels.forEach((kernel, at) => {
    const start = start_us + at * each_us;
    lines.push(
      `dispatch command_buffer=${number} position=${at} queue=1 kernel=${kernel + 1} start_ns=${start}us duration_ns=${each_us}us groups_x=64 groups_y=1 groups_z=1 bindings=${kernel + 1} label=${label}`,
    );
    WORK.push({ start_us: start, duration_us: each_us, name: KERNELS[kernel] });
  });
  if (last) return;
  const gap_us = period_us - busy_us;
  GAPS.push({
    start_us: start_us + busy_us,
    duration_us: gap_us,
    parts: { "after-host-wait": wait_us, "host-late": gap_us - wait_us - 100, "submit-call": 50, "launch-latency": 50 },
  });
}

for (let at = 0; at < EAGER_STEPS; at += 1) step(at + 1, 1000 + at * 1000, [0, 1, 2, 3], 1, 1000, false);
for (let at = 0; at < FUSED_STEPS; at += 1) step(at + 11, 11_000 + at * 500, [4], 2, 500, at === FUSED_STEPS - 1);

/** Two copies that overlap, on a second queue, while the first works. */
export const COPIES = [
  { start_us: 3050, duration_us: 100, bytes: 1 << 20 },
  { start_us: 3100, duration_us: 150, bytes: 2 << 20 },
];
COPIES.forEach((copy, at) =>
  lines.push(
    `submission id=${100 + at} process=1 queue=2 thread=42 start_ns=${copy.start_us - 30}us duration_ns=10us command_buffers=1`,
    `host_call process=1 thread=42 call=submit start_ns=${copy.start_us - 30}us duration_ns=10us queue=2`,
    `command_buffer id=${100 + at} process=1 queue=2 submission=${100 + at} start_ns=${copy.start_us}us duration_ns=${copy.duration_us}us transfers=1`,
    `transfer command_buffer=${100 + at} position=0 queue=2 kind=copy bytes=${copy.bytes} start_ns=${copy.start_us}us duration_ns=${copy.duration_us}us source=1 destination=6`,
  ),
);

/** A clock that changes twice, and the host's load, which is known in every other millisecond. */
export const CLOCK = [
  { at_us: 0, hertz: 1.2e9 },
  { at_us: 4000, hertz: 1.98e9 },
  { at_us: 12_000, hertz: 0.8e9 },
];
export const LOAD = Array.from({ length: 8 }, (_, at) => ({ at_us: at * 2000, percent: 12.5 * (at + 1) }));

const BUFFERS = ["x", "y", "z", "u", "v", "copied"];

export const KNOWN = [
  'manifest gapscope_version=0.1.0 command=made exit.code=0 sampling_mode=dispatch start_ns=0 end_ns=16ms start_unix_ns=1790000000000000000 host.system=Made host.processor=Made host.cores=2',
  "process id=1 pid=41 parent_pid=1 executable=/usr/bin/made hook=vulkan start_ns=0 end_ns=16ms",
  "thread process=1 thread=41 name=main",
  "thread process=1 thread=42 name=copier",
  'device id=1 process=1 api=vulkan name="Made GPU" driver=made uuid=00ff heaps=1073741824 clock.method=calibrated clock.error_ns=100 clock.samples=2 clock.nanoseconds_per_tick=1.0',
  "queue id=1 device=1 family=0 index=0 capabilities=compute timestamp_bits=64",
  "queue id=2 device=1 family=1 index=0 capabilities=transfer timestamp_bits=64",
  'loss what="host calls" count=3 reason="made to be lost"',
  "",
  "label id=1 text=eager",
  "label id=2 text=compiled",
  ...KERNELS.map((name, at) => `kernel id=${at + 1} process=1 name=${name} name_source=entry-point entry_point=${name} local_x=64 local_y=1 local_z=1`),
  ...BUFFERS.map((name, at) => `buffer id=${at + 1} process=1 device=1 bytes=4096 allocation=1 offset_bytes=${at * 4096} name=${name}`),
  ...[
    [1, 2],
    [2, 3],
    [3, 4],
    [4, 5],
    [1, 5],
  ].flatMap(([reads, writes], at) => [
    `binding id=${at + 1} set=0 binding=0 element=0 buffer=${reads} offset_bytes=0 bytes=4096 access=read`,
    `binding id=${at + 1} set=0 binding=1 element=0 buffer=${writes} offset_bytes=0 bytes=4096 access=write`,
  ]),
  "memory process=1 device=1 at_ns=500us event=allocate allocation=1 bytes=65536 heap=0",
  "memory process=1 device=1 at_ns=15.9ms event=free allocation=1 bytes=65536 heap=0",
  'counter id=1 name="memory clock" unit=hertz device=1 source="made up"',
  ...CLOCK.map(({ at_us, hertz }) => `counter_value counter=1 start_ns=${at_us}us value=${hertz}`),
  'counter id=2 name=load unit=percent source="made up"',
  ...LOAD.map(({ at_us, percent }) => `counter_value counter=2 start_ns=${at_us}us duration_ns=1ms value=${percent}`),
  ...lines,
].join("\n");

/** Returns the time in a range in which the device works. */
export function busy_ns(from_ns: number, to_ns: number): number {
  // The copies lie within work of the first queue.
  return WORK.reduce((sum, { start_us, duration_us }) => sum + Math.max(0, Math.min(to_ns, (start_us + duration_us) * 1000) - Math.max(from_ns, start_us * 1000)), 0);
}

/** Returns the idle time of a cause over the whole trace, in nanoseconds. */
export function idleBy(cause: string): number {
  return GAPS.reduce((sum, gap) => sum + gap.parts[cause] * 1000, 0);
}
