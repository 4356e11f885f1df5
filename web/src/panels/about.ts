// The panel about the trace: its facts, its losses, and its tables.

import { unreadSentences } from "../data/losses.ts";
import { fill, h } from "../dom.ts";
import type { Device, Findings, Process, TraceOverview } from "../generated/protocol.ts";
import { bytes, count, duration } from "../time/format.ts";

/** The panel about one trace. */
export class AboutPanel {
  readonly element = h("div", { class: "panel about-panel", tabindex: "0", role: "group", "aria-label": "About the trace" });

  /** Shows the facts; `findings` may come later, and `file` says what a saved page leaves out, and `absent` what the trace has nothing of. */
  show(overview: TraceOverview, findings: Findings | null, file: string | null, absent: readonly string[] = []): void {
    const { manifest } = overview;
    const host = manifest.host;
    const unread = findings?.unread ?? overview.unread;
    const remarks = [...new Set([...overview.remarks, ...(findings?.notes ?? [])])];
    fill(
      this.element,
      h(
        "div",
        {},
        h("h2", { class: "part" }, "Trace"),
        h(
          "dl",
          { class: "fields" },
          pair("command", manifest.command?.join(" ")),
          pair("machine", [host?.system, host?.processor, host?.cores ? `${host.cores} cores` : ""].filter(Boolean).join(", ")),
          pair("begun", overview.start_unix_ns ? new Date(Number(overview.start_unix_ns) / 1e6).toLocaleString() : "unknown"),
          pair("ended", ended(overview)),
          (manifest.devices ?? []).flatMap((device) => [
            h("dt", {}, "device"),
            h("dd", {}, `${device.name} (${[device.api, device.driver].filter(Boolean).join(", ")}); clock ${clockText(device, manifest.processes ?? [])}`),
          ]),
        ),
      ),
      h(
        "div",
        { class: "losses" },
        h("h2", { class: "part" }, "Not recorded"),
        overview.losses.length === 0
          ? h("p", { class: "note" }, unread.length === 0 ? "Nothing is known to be missing." : "No loss while recording is known.")
          : h("ul", {}, overview.losses.map((loss) => h("li", {}, h("b", {}, loss.text), `: ${loss.reason}`))),
        unread.length > 0 ? h("h2", { class: "part" }, "Not readable") : null,
        unreadSentences(unread).map((sentence) => h("p", { class: "problem" }, sentence)),
        file ? h("p", { class: "problem" }, file) : null,
        absent.length > 0 ? h("h2", { class: "part" }, "Not in this trace") : null,
        absent.map((why) => h("p", { class: "note", "data-absent": "true" }, why)),
        remarks.length > 0 ? h("h2", { class: "part" }, "Remarks") : null,
        remarks.map((remark) => h("p", {}, remark)),
      ),
      h(
        "div",
        {},
        h("h2", { class: "part" }, "Tables"),
        h(
          "table",
          { "aria-label": "Tables of the trace" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Table"), h("th", { scope: "col", class: "number" }, "Rows"), h("th", { scope: "col", class: "number" }, "On disk"))),
          h(
            "tbody",
            {},
            overview.tables
              .filter((table) => table.rows !== 0)
              .map((table) => h("tr", {}, h("td", {}, table.name), h("td", { class: "number" }, table.rows === null ? "unknown" : count(table.rows)), h("td", { class: "number" }, bytes(table.bytes)))),
          ),
        ),
      ),
    );
  }
}

/** gapscope's own hooks. A process with any other hook was recorded by another tool (`Process::other_tool`). */
const OWN_HOOKS = ["", "none", "vulkan", "cuda", "sdk", "replay", "sampled"];

/** Describes how a device's clock was mapped to the host's, in the words of `gapscope info`. */
export function clockText({ clock, process }: Device, processes: readonly Process[]): string {
  if (clock.method === "none") return "not mapped to the host's clock";
  const tool = processes.find(({ id, hook }) => id === process && hook !== undefined && !OWN_HOOKS.includes(hook))?.hook;
  const mapped = tool === undefined ? "calibrated by the driver" : `mapped by the tool that wrote the file (${tool})`;
  const error = clock.error_ns === null ? "error unknown" : `error at most ${duration(clock.error_ns)}`;
  return `${clock.method === "brackets" ? "bounded by submissions and waits" : mapped}, ${error}`;
}

/** Describes how the program ended, in the words of the report. */
function ended({ live, manifest: { exit } }: TraceOverview): string | undefined {
  if (live || !exit) return undefined;
  return "code" in exit ? `with exit code ${exit.code}` : `by signal ${exit.signal}`;
}

/** Makes a name with its value; nothing for an absent or empty one. */
function pair(name: string, value: string | undefined): HTMLElement[] {
  return value ? [h("dt", {}, name), h("dd", {}, value)] : [];
}
