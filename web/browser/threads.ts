// A trace of a program that compiles on many threads, each of which does nothing else.

export const COMPILERS = 40;

const threads = Array.from({ length: COMPILERS }, (_, at) => 100 + at);

export const COMPILING = [
  'manifest gapscope_version=0.1.0 command=made exit.code=0 sampling_mode=dispatch start_ns=0 end_ns=20ms start_unix_ns=1790000000000000000 host.system=Made host.processor=Made host.cores=2',
  "process id=1 pid=41 parent_pid=1 executable=/usr/bin/made hook=vulkan start_ns=0 end_ns=20ms",
  "thread process=1 thread=41 name=main",
  "thread process=1 thread=42 name=uploads",
  ...threads.map((thread) => `thread process=1 thread=${thread} name=compiler`),
  'device id=1 process=1 api=vulkan name="Made GPU" driver=made uuid=00ff heaps=1073741824 clock.method=calibrated clock.error_ns=100 clock.samples=2 clock.nanoseconds_per_tick=1.0',
  "queue id=1 device=1 family=0 index=0 capabilities=compute timestamp_bits=64",
  "queue id=2 device=1 family=1 index=0 capabilities=transfer timestamp_bits=64",
  "",
  "label id=1 text=forward",
  "kernel id=1 process=1 name=matmul name_source=entry-point entry_point=matmul local_x=64 local_y=1 local_z=1",
  ...threads.map((thread, at) => `host_call process=1 thread=${thread} call=create-pipelines start_ns=${200 + at * 90}us duration_ns=${300 + at * 20}us`),
  ...Array.from({ length: 30 }, (_, at) => [
    `submission id=${at + 1} process=1 queue=1 thread=41 start_ns=${5900 + at * 400}us duration_ns=50us command_buffers=1`,
    `host_call process=1 thread=41 call=submit start_ns=${5900 + at * 400}us duration_ns=50us queue=1`,
    `host_call process=1 thread=41 call=wait-fences start_ns=${5960 + at * 400}us duration_ns=200us`,
    `host_call process=1 thread=42 call=map-memory start_ns=${5800 + at * 400}us duration_ns=30us`,
    `host_call process=1 thread=42 call=submit start_ns=${5850 + at * 400}us duration_ns=30us`,
    `command_buffer id=${at + 1} process=1 queue=1 submission=${at + 1} start_ns=${6000 + at * 400}us duration_ns=150us dispatches=1 label=1`,
    `marker process=1 scope=command-buffer label=1 queue=1 command_buffer=${at + 1} start_ns=${6000 + at * 400}us duration_ns=150us`,
    `dispatch command_buffer=${at + 1} position=0 queue=1 kernel=1 start_ns=${6000 + at * 400}us duration_ns=150us groups_x=64 groups_y=1 groups_z=1 label=1`,
  ]).flat(),
].join("\n");
