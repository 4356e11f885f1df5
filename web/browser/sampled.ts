// A trace with planted samples: the host is late before each of ten steps, two thirds of the time in `load_batch` and one third in `next_batch`,
// where it waits for a worker that decodes meanwhile. All times in this file are in microseconds.

export const STEPS = 10;
const PERIOD_US = 10_000;
const WORK_US = 1000;
const SAMPLE_US = 200;

/** The number of samples of the submitting thread in gaps, by line. */
export const SAMPLES = { load: 0, wait: 0 };

const lines: string[] = [];
for (let at = 0; at < STEPS; at += 1) {
  const start = 1000 + at * PERIOD_US;
  lines.push(
    `submission id=${at + 1} process=1 queue=1 thread=41 start_ns=${start - 100}us duration_ns=50us command_buffers=1`,
    `host_call process=1 thread=41 call=submit start_ns=${start - 100}us duration_ns=50us queue=1`,
    `host_call process=1 thread=41 call=wait-fences start_ns=${start - 50}us duration_ns=${WORK_US + 60}us`,
    `command_buffer id=${at + 1} process=1 queue=1 submission=${at + 1} start_ns=${start}us duration_ns=${WORK_US}us dispatches=1`,
    `dispatch command_buffer=${at + 1} position=0 queue=1 kernel=1 start_ns=${start}us duration_ns=${WORK_US}us label=${1 + (at % 2)}`,
    `sample time_ns=${start + WORK_US + 10}us process=1 thread=41 stack=2 state=running source=after-wait`,
  );
  const late_us = PERIOD_US - WORK_US - 110;
  for (let n = 0; n * SAMPLE_US < late_us; n += 1) {
    const waits = n % 3 === 2;
    const more = waits ? "state=blocked system_call=read" : "state=running";
    // Nothing follows the last step, so its samples are in no gap.
    if (at + 1 < STEPS) SAMPLES[waits ? "wait" : "load"] += 1;
    lines.push(`sample time_ns=${start + WORK_US + 10 + n * SAMPLE_US + 5}us process=1 thread=41 stack=${waits ? 9 : 3} source=sampled period_ns=${SAMPLE_US}us ${more}`);
    if (waits) lines.push(`sample time_ns=${start + WORK_US + 10 + n * SAMPLE_US + 5}us process=2 thread=52 stack=8 source=sampled period_ns=${3 * SAMPLE_US}us state=running`);
  }
}

export const SAMPLED = [
  "manifest gapscope_version=0.1.0 command=made exit.code=0 sampling_mode=dispatch start_ns=0 end_ns=110ms start_unix_ns=1790000000000000000 stack_rate_hz=5000",
  "process id=1 pid=41 parent_pid=1 executable=/usr/bin/made hook=vulkan start_ns=0 end_ns=110ms",
  "process id=2 pid=52 parent_pid=41 executable=/usr/bin/made hook=sampled start_ns=0 end_ns=110ms",
  "thread process=1 thread=41 name=main",
  'device id=1 process=1 api=vulkan name="Made GPU" driver=made uuid=00ff clock.method=calibrated clock.error_ns=100 clock.samples=2 clock.nanoseconds_per_tick=1.0',
  "queue id=1 device=1 family=0 index=0 capabilities=compute timestamp_bits=64",
  "label id=1 text=even",
  "label id=2 text=odd",
  "kernel id=1 process=1 name=forward name_source=entry-point entry_point=forward local_x=64 local_y=1 local_z=1",
  "frame id=1 kind=python function=main file=/home/a/train.py line=60",
  "frame id=2 kind=python function=load_batch file=/home/a/train.py line=41",
  "frame id=3 kind=python function=resize file=/v/lib/python3.12/site-packages/PIL/Image.py line=9",
  "frame id=4 kind=python function=next_batch file=/home/a/train.py line=50",
  "frame id=5 kind=native function=read library=/usr/lib/libc.so.6",
  "frame id=6 kind=python function=Queue.get file=/usr/lib/python3.12/multiprocessing/queues.py line=103",
  "frame id=7 kind=python function=decode file=/home/a/data.py line=12",
  "stack id=1 frame=1",
  "stack id=2 parent=1 frame=2",
  "stack id=3 parent=2 frame=3",
  "stack id=5 parent=1 frame=4",
  "stack id=6 parent=5 frame=6",
  "stack id=9 parent=6 frame=5",
  "stack id=8 frame=7",
  ...lines,
].join("\n");
