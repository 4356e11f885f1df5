// Keeps how the tracks of a trace are arranged, for the next time that it is opened at the same address.

import type { TraceOverview } from "../data/answers.ts";
import type { Written } from "./arrangement.ts";

function keyOf({ name, start_unix_ns, origin_ns }: TraceOverview): string {
  return `gapscope-tracks ${start_unix_ns ?? name}.${origin_ns}`;
}

export function keep(trace: TraceOverview, arranged: Written): void {
  try {
    if (Object.keys(arranged).length === 0) localStorage.removeItem(keyOf(trace));
    else localStorage.setItem(keyOf(trace), JSON.stringify(arranged));
  } catch {
    // It holds until the page is closed.
  }
}

export function kept(trace: TraceOverview): Written {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(trace)) ?? "{}");
    const text = (name: string): string | undefined => {
      const value: unknown = typeof found === "object" && found !== null ? (found as Record<string, unknown>)[name] : undefined;
      return typeof value === "string" ? value : undefined;
    };
    return { tracks: text("tracks"), order: text("order"), text: text("text") };
  } catch {
    // A file may have no storage, and others may have written there.
    return {};
  }
}
