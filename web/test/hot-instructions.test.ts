// Tests the hot instructions in the details of a kernel.

import { describe, expect, test } from "vitest";
import type { Findings, SampledKernel } from "../src/generated/protocol.ts";
import { hotInstructions } from "../src/panels/hot-instructions.ts";
import { fake, fakeDocument } from "./fake-dom.ts";

fakeDocument();

const SAMPLED = {
  kernel: "scale",
  samples: 1200,
  share: 0.9,
  stalls: [
    { reason: "long_scoreboard", samples: 1, share: 0.6, meaning: "Waited for data.", advice: "move less" },
    { reason: "wait", samples: 1, share: 0.3, meaning: "A fixed latency.", advice: "other" },
  ],
  places: [
    { file: "/home/me/scale.cu", line: 12, no_line: null, offset_bytes: 0x40, share: 0.8, samples: 1, instructions: 1, stalls: [{ reason: "long_scoreboard", samples: 1, share: 0.75, meaning: "Waited for data.", advice: "move less" }] },
    { file: null, line: null, no_line: "none-for-instruction", offset_bytes: 0x1a0, share: 0.2, samples: 1, instructions: 1, stalls: [] },
  ],
} as unknown as SampledKernel;

const findings = (sampled_kernels?: SampledKernel[]): Findings => ({ sampled_kernels }) as unknown as Findings;

describe("hot instructions", () => {
  test("are lines where the code has them, and offsets otherwise", () => {
    const shown = hotInstructions(findings([{ ...SAMPLED, kernel: "other", samples: 5 }, SAMPLED]), "scale");
    const text = shown ? fake(shown).innerText : "";
    for (const part of ["1,200 samples, 90.0 % of all", "scale.cu:12", "long scoreboard 75.0 %", "80.0 %", "+0x1a0", "over the whole recording"]) expect(text).toContain(part);
    const titles = shown ? fake(shown).all("li").map((place) => place.getAttribute("title")) : [];
    expect(titles[0]).toBe("/home/me/scale.cu:12\nlong scoreboard 75.0 %: Waited for data.");
    expect(titles[1]).toContain("no line for this instruction");
  });

  test("have advice about the most frequent stall of the kernel", () => {
    const shown = hotInstructions(findings([SAMPLED]), "scale");
    const text = shown ? fake(shown).innerText : "";
    expect(text).toContain("long scoreboard 60.0 %: Waited for data. To do: move less.");
    expect(text).not.toContain("To do: other");
    const none = hotInstructions(findings([{ ...SAMPLED, stalls: [{ reason: "selected", samples: 1, share: 1, meaning: "It issued.", advice: null }] }]), "scale");
    expect(none ? fake(none).innerText : "").not.toContain("To do");
  });

  test("are absent where none were sampled", () => {
    expect(hotInstructions(null, "scale")).toBeNull();
    expect(hotInstructions({ missing: "no" }, "scale")).toBeNull();
    expect(hotInstructions(findings(), "scale")).toBeNull();
    expect(hotInstructions(findings([{ ...SAMPLED, samples: 0 }]), "scale")).toBeNull();
  });
});
