// Ranks of one program whose every number is known. In each step they compute and then reduce together, and the host of rank LATE is late, so that
// the others wait for it. All times in this file are in microseconds.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeTrace } from "./product.ts";

export const RANKS = 4;
export const LATE = 2;
export const STEPS = 12;
const STEP_US = 1000;
const COMPUTE_US = 200;
/** Returns how much later than the others LATE arrives, which grows with each step. */
export const lateBy = (step: number): number => 100 + 10 * step;
/** Returns the time at which the others arrive. */
export const arrives = (step: number): number => 500 + step * STEP_US + COMPUTE_US;
export const END_US = 500 + STEPS * STEP_US;

const LABELS = ["label id=1 text=ncclCommInitRankConfig", "label id=2 text=ncclAllReduce"];
const manifest = (more: string): string =>
  `manifest gapscope_version=0.1.0 command=train exit.code=0 sampling_mode=dispatch start_ns=0 end_ns=${END_US}us start_unix_ns=1790000000000000000 host.system=Made host.processor=Made host.cores=8${more}`;

/** Returns the rows of a rank; `id` is that of its process, device and queue. */
function rows(rank: number, id: number, of: number): string[] {
  const [gemm, reduce] = [2 * id - 1, 2 * id];
  const lines = [
    `process id=${id} pid=${40 + rank} executable=/usr/bin/train hook=cuda start_ns=0 end_ns=${END_US}us`,
    `thread process=${id} thread=${7 + rank} name=main`,
    `device id=${id} process=${id} api=cuda name="Made GPU" uuid=a${rank} clock.method=calibrated clock.error_ns=1us clock.samples=2 clock.nanoseconds_per_tick=1.0`,
    `queue id=${id} device=${id}`,
    `kernel id=${gemm} process=${id} name=gemm`,
    `kernel id=${reduce} process=${id} name=ncclDevKernel_AllReduce_Sum_f32_RING_LL`,
    `marker process=${id} scope=thread thread=${7 + rank} label=1 domain=NCCL payload="NCCL communicator ID=77, No. of ranks=${of}, Rank=${rank}, CUDA device=0" start_ns=1us duration_ns=1us`,
  ];
  for (let step = 0; step < STEPS; step += 1) {
    const late = rank === LATE ? lateBy(step) : 0;
    const start = 500 + step * STEP_US + late;
    const reduced = start + COMPUTE_US;
    const end = arrives(step) + lateBy(step) + 50;
    const [first, second] = [1000 * id + 2 * step + 1, 1000 * id + 2 * step + 2];
    lines.push(
      `submission id=${first} process=${id} queue=${id} kind=kernel thread=${7 + rank} start_ns=${start - 12}us duration_ns=2us`,
      `dispatch queue=${id} kernel=${gemm} submission=${first} start_ns=${start}us duration_ns=${COMPUTE_US}us`,
      `marker process=${id} scope=thread thread=${7 + rank} label=2 domain=NCCL payload="NCCL communicator ID=77, Message size [bytes]=4096" start_ns=${start - 8}us duration_ns=5us`,
      `submission id=${second} process=${id} queue=${id} kind=kernel thread=${7 + rank} start_ns=${start - 6}us duration_ns=1us`,
      `dispatch queue=${id} kernel=${reduce} submission=${second} start_ns=${reduced}us duration_ns=${end - reduced}us`,
    );
  }
  return lines;
}

function text(rank: number): string {
  return [manifest(` rank.rank=${rank} rank.world_size=${RANKS} rank.local_rank=${rank}`), ...LABELS, ...rows(rank, 1, RANKS)].join("\n");
}

/** Writes all ranks as one trace, as for a launcher that does not number them. */
export function writeRanksInOneTrace(folder: string): string {
  const all = Array.from({ length: RANKS }, (_, rank) => rows(rank, rank + 1, RANKS));
  return writeTrace(folder, "one", [manifest(""), ...LABELS, ...all.flat()].join("\n"));
}

/** Writes the trace of each rank, with `more` added, into a folder in `folder`. */
export function writeRanks(folder: string, name = "train.gapscope", more = ""): string {
  const run = join(folder, name);
  mkdirSync(run, { recursive: true });
  for (let rank = 0; rank < RANKS; rank += 1) writeTrace(folder, `${name}/rank=${rank}`, text(rank) + more, `${name}/rank=${rank}`);
  return run;
}
