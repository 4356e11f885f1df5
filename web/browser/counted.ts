// A trace with hardware counters and sampled instructions: three kernels of 1 ms in turn, one limited by memory, one by the tensor pipe, and one near
// no limit, and a fourth kernel that ran once.

const KERNELS = [
  { name: "gemm", values: [98, 90, 5, 500e9, 125e9] },
  { name: "copy", values: [95, 0, 10, 1000e9, 1000e9] },
  { name: "walk", values: [90, 0, 20, 250e9, 250e9] },
];
const COUNTERS = [
  { name: "SMs active", unit: "percent" },
  { name: "tensor pipe active", unit: "percent" },
  { name: "FMA pipe active", unit: "percent" },
  { name: "DRAM read", unit: "bytes/s" },
  { name: "DRAM written", unit: "bytes/s" },
];

const lines = [
  "manifest sampling_mode=dispatch start_ns=0 end_ns=31ms command=train",
  'device id=1 api=cuda name="GPU" driver=1 clock.error_ns=100 clock.method=calibrated limits.measured.copy_bytes_per_s=2500000000000',
  "queue id=1 device=1 capabilities=compute",
  ...COUNTERS.map(({ name, unit }, at) => `counter id=${at + 1} name="${name}" unit=${unit} device=1 source="made up"`),
  ...[...KERNELS, { name: "rare" }].map(({ name }, at) => `kernel id=${at + 1} name=${name}`),
];
for (let ms = 0; ms < 30; ms += 1) {
  const kernel = ms % KERNELS.length;
  lines.push(`dispatch queue=1 kernel=${kernel + 1} start_ns=${ms}ms duration_ns=1ms`);
  for (let part = 0; part < 10; part += 1) KERNELS[kernel].values.forEach((value, counter) => lines.push(`counter_value counter=${counter + 1} start_ns=${ms * 1000 + part * 100}us duration_ns=100us value=${value}`));
}
lines.push("dispatch queue=1 kernel=4 start_ns=30ms duration_ns=150us");
KERNELS[0].values.forEach((value, counter) => lines.push(`counter_value counter=${counter + 1} start_ns=30ms duration_ns=100us value=${value}`));

const SAMPLED: [place: string, reason: string, samples: number][] = [
  ["offset_bytes=64 file=/home/me/gemm.cu line=12", "long_scoreboard", 60],
  ["offset_bytes=64 file=/home/me/gemm.cu line=12", "selected", 20],
  ["offset_bytes=416 no_line=none-for-instruction", "wait", 20],
];
for (const [place, reason, samples] of SAMPLED) lines.push(`pc_sample process=1 device=1 kernel=1 function=gemm ${place} stall_reason=${reason} samples=${samples}`);

export const COUNTED = lines.join("\n");
