// Tests the profile in the details of a kernel.

import { describe, expect, test } from "vitest";
import type { Findings, ProfiledKernel } from "../src/generated/protocol.ts";
import { profiledKernel } from "../src/panels/profiled-kernel.ts";
import { fake, fakeDocument } from "./fake-dom.ts";

fakeDocument();

const PROFILE = {
  profile: 1,
  kernel: "add",
  passes: 20,
  duration_ns: 22_000,
  bound: "memory",
  sentence: "Memory bounds it.",
  dram: 0.91,
  l2: 0.4,
  l1: null,
  dram_read_bytes: 1 << 20,
  dram_written_bytes: 1 << 19,
  l2_bytes: 2048,
  l1_bytes: null,
  l2_hit_rate: 0.5,
  l1_hit_rate: null,
  achieved_occupancy: 0.7,
  theoretical_occupancy: 1,
  occupancy_limited_by: "shared-memory",
  stalls: [{ reason: "long_scoreboard", warps: 1, share: 0.6, meaning: "Waited for data.", advice: "load earlier" }],
} as unknown as ProfiledKernel;

const findings = (profiled_kernels?: ProfiledKernel[]): Findings => ({ profiled_kernels }) as unknown as Findings;

describe("a kernel's profile", () => {
  test("is the last one of its kernel, with known and unknown figures", () => {
    const shown = profiledKernel(findings([{ ...PROFILE, sentence: "Before." }, PROFILE, { ...PROFILE, kernel: "gemm" }]), "add");
    const text = shown ? fake(shown).innerText : "";
    for (const part of ["22.0 µs, 20 passes, the last of 2 launches", "Memory bounds it.", "91.0 %, 1.50 MiB", "by shared memory", "long scoreboard", "60.0 %", "unknown", "caches hold what the previous run left"]) expect(text).toContain(part);
    expect(text).not.toContain("Before.");
  });

  test("is absent without one", () => {
    expect(profiledKernel(null, "add")).toBeNull();
    expect(profiledKernel({ missing: "no" }, "add")).toBeNull();
    expect(profiledKernel(findings(), "add")).toBeNull();
    expect(profiledKernel(findings([PROFILE]), "mul")).toBeNull();
  });
});
