import { expect, test } from "vitest";
import { Motion } from "../src/input/motion.ts";

/** A screen whose frames a test shows. */
function screen(still = false): { motion: Motion; show: (frames: number, each_ms?: number) => void } {
  let waiting: ((now_ms: number) => void)[] = [];
  let now_ms = 1000;
  const motion = new Motion((done) => waiting.push(done), () => still);
  return {
    motion,
    show: (frames, each_ms = 16) => {
      for (let frame = 0; frame < frames; frame += 1) {
        now_ms += each_ms;
        for (const done of waiting.splice(0)) done(now_ms);
      }
    },
  };
}

test("a short press makes one whole step, in several frames", () => {
  const { motion, show } = screen();
  const parts: number[] = [];
  motion.press("KeyW", false, (steps) => parts.push(steps));
  motion.release("KeyW");
  show(40);
  expect(parts.length).toBeGreaterThan(4);
  expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(1, 9);
});

test("a held key goes on, as fast at any rate of frames, and repeated presses change nothing", () => {
  const made = (each_ms: number): number => {
    const { motion, show } = screen();
    let sum = 0;
    motion.press("KeyD", false, (steps) => (sum += steps));
    for (let ms = 0; ms < 2000; ms += each_ms) {
      motion.press("KeyD", true, () => expect.unreachable());
      show(1, each_ms);
    }
    motion.release("KeyD");
    show(100);
    return sum;
  };
  expect(made(8)).toBeCloseTo(14, 0);
  expect(made(33)).toBeCloseTo(made(8), 0);
});

test("two keys move at once, and all stop when the window is left", () => {
  const { motion, show } = screen();
  const sums = { w: 0, d: 0 };
  motion.press("KeyW", false, (steps) => (sums.w += steps));
  show(20);
  motion.press("KeyD", false, (steps) => (sums.d += steps));
  show(20);
  expect(sums.w).toBeGreaterThan(sums.d);
  motion.stop();
  show(100);
  const { w, d } = sums;
  show(100);
  expect(sums).toEqual({ w, d });
  // The next press begins anew.
  motion.press("KeyW", false, (steps) => (sums.w += steps));
  motion.release("KeyW");
  show(40);
  expect(sums.w).toBeCloseTo(w + 1, 9);
});

test("who wants no motion gets whole steps", () => {
  const { motion } = screen(true);
  const parts: number[] = [];
  motion.press("KeyW", false, (steps) => parts.push(steps));
  motion.press("KeyW", true, (steps) => parts.push(steps));
  expect(parts).toEqual([1, 1]);
});
