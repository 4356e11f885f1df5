// The page of a capture (a window of a program's commands that were saved to be run again): its kernels, its facts,
// and the graph of dependencies between its commands.

import { Appearance } from "./appearance.ts";
import type { DataSource } from "./data/source.ts";
import { DependenciesPanel } from "./dependencies/panel.ts";
import { fill, h } from "./dom.ts";
import type { Theme } from "./draw/palette.ts";
import type { CaptureOverview, CapturedKernel } from "./generated/protocol.ts";
import { Table } from "./panels/table.ts";
import { Tabs } from "./tabs.ts";
import { keepTheme, storedTheme } from "./theme.ts";
import { bytes, count, duration, plural } from "./time/format.ts";

/** The page; `begin` is called once. The address keeps the picked node as `#n=` and its id. */
export class CapturePage {
  private readonly appearance = new Appearance([]);
  private readonly panel: DependenciesPanel;

  constructor(
    private readonly root: HTMLElement,
    source: DataSource,
    private readonly capture: CaptureOverview,
  ) {
    this.appearance.theme = storedTheme();
    this.panel = new DependenciesPanel(this.appearance, {
      ask: (wanted) => source.allDependencies(0, wanted),
      go: null,
      file: source.file,
      picked: (pick) => history.replaceState(null, "", pick?.kind === "node" ? `#n=${pick.id}` : location.pathname),
    });
  }

  /** Shows the page. The graph is loaded when its tab, which is the first, opens. */
  begin(): void {
    const { capture, root } = this;
    document.title = `${capture.name} · gapscope`;
    root.classList.add("captured");
    this.theme(this.appearance.theme);
    const open = (): void => void this.panel.open({}, (graph) => this.nodeInAddress(graph.nodes.length));
    const tabs = new Tabs(
      [
        { name: "dependencies", title: "Dependencies", element: this.panel.element, opened: open },
        { name: "kernels", title: "Kernels", element: this.kernels() },
        { name: "about", title: "Capture", element: this.about() },
      ],
      () => undefined,
    );
    fill(
      root,
      h(
        "header",
        { class: "topbar" },
        h("span", { class: "brand" }, "gapscope"),
        h("h1", { class: "trace-name clip", title: capture.name }, capture.name),
        h("span", { class: "facts-line clip", title: capture.device.name }, `${capture.window} of ${capture.command}`),
        h("button", { type: "button", class: "icon", title: "Light or dark", "aria-label": "Change between light and dark", onclick: () => this.theme(this.appearance.theme === "dark" ? "light" : "dark", true) }, "◐"),
      ),
      capture.remarks.length > 0 ? h("p", { class: "notice", role: "status" }, capture.remarks.join(" ")) : null,
      this.figures(),
      tabs.element,
    );
    root.dataset.fullDraw = "true";
  }

  /** Returns the node that the address names; null where it names none below `nodes`, the number of loaded nodes. */
  private nodeInAddress(nodes: number): { kind: "node"; id: number } | null {
    const id = Number(/^#n=(\d+)$/.exec(location.hash)?.[1] ?? NaN);
    return Number.isInteger(id) && id < nodes ? { kind: "node", id } : null;
  }

  private figures(): HTMLElement {
    const { capture } = this;
    const figure = (value: string, name: string, title = ""): HTMLElement => h("div", { title: title || null }, h("b", {}, value), h("span", { class: "note" }, name));
    const one = (number: number, one: string, many: string): HTMLElement => figure(count(number), number === 1 ? one : many);
    return h(
      "section",
      { class: "figures", "aria-label": "Contents of the capture" },
      one(capture.submission_count, "submission", "submissions"),
      one(capture.dispatch_count, "dispatch", "dispatches"),
      one(capture.transfer_count, "transfer", "transfers"),
      one(capture.barrier_count, "barrier", "barriers"),
      one(capture.kernel_count, "kernel", "kernels"),
      figure(bytes(Number(capture.buffer_bytes)), `in ${plural(capture.buffer_count, "buffer", "buffers")}`),
      figure(capture.device.name, "device", capture.device.driver),
    );
  }

  /** Makes the table of kernels, and tells how many the answer leaves out. */
  private kernels(): HTMLElement {
    const table = new Table<CapturedKernel>({
      name: "Kernels",
      sorted: 1,
      empty: "The window has no kernel.",
      columns: [
        { head: "Kernel", text: ({ name }) => name, sort: ({ name }) => name, wide: true },
        { head: "Dispatches", text: ({ dispatch_count }) => count(dispatch_count), sort: ({ dispatch_count }) => dispatch_count, number: true },
        { head: "Entry point", text: ({ entry }) => entry, sort: ({ entry }) => entry },
        { head: "Constants", text: ({ constant_count }) => count(constant_count), sort: ({ constant_count }) => constant_count, number: true, tooltip: "Specialisation constants that the program set." },
        { head: "Subgroup size", text: ({ required_subgroup_size }) => (required_subgroup_size === null ? "any" : count(required_subgroup_size)), sort: ({ required_subgroup_size }) => required_subgroup_size, number: true, tooltip: "The subgroup size that the program requires." },
        { head: "SPIR-V", text: ({ code_bytes }) => (code_bytes === null ? "unknown" : bytes(code_bytes)), sort: ({ code_bytes }) => code_bytes, number: true },
      ],
    });
    table.show(this.capture.kernels);
    const left = this.capture.kernel_count - this.capture.kernels.length;
    return h("div", { class: "panel" }, table.element, left > 0 ? h("p", { class: "note" }, `and ${count(left)} more`) : null);
  }

  private about(): HTMLElement {
    const { capture } = this;
    const pair = (name: string, value: string | null): HTMLElement[] => (value === null ? [] : [h("dt", {}, name), h("dd", {}, value)]);
    return h(
      "div",
      { class: "panel about-panel", tabindex: "0", role: "group", "aria-label": "About the capture" },
      h(
        "div",
        {},
        h("h2", { class: "part" }, "Capture"),
        h(
          "dl",
          { class: "fields" },
          pair("command", capture.command),
          pair("process", String(capture.process)),
          pair("window", capture.window),
          pair("begun", new Date(Number(capture.started_unix_ns) / 1e6).toLocaleString()),
          pair("lasted", capture.window_ns === null ? "unknown, because the capture was cut off" : `${duration(Number(capture.window_ns))}, including the time to wait for and save each submission`),
          pair("ended", capture.end ?? "cut off"),
          pair("written by", `gapscope ${capture.gapscope}`),
        ),
      ),
      h("div", {}, h("h2", { class: "part" }, "Device"), h("dl", { class: "fields" }, pair("name", capture.device.name), pair("driver", capture.device.driver), pair("subgroup size", String(capture.device.subgroup_size)))),
      h("div", {}, h("h2", { class: "part" }, "Run it again"), h("p", {}, h("code", {}, `gapscope replay ${capture.name}`)), h("p", { class: "note" }, "Runs the window again and compares its output."), h("p", {}, h("code", {}, `gapscope deps --json ${capture.name}`)), h("p", { class: "note" }, "Prints the data of the graph as JSON.")),
    );
  }

  /** Sets the theme and draws anew; with `keep` it is stored for the next time. */
  private theme(theme: Theme, keep = false): void {
    this.appearance.theme = theme;
    document.documentElement.dataset.theme = theme;
    if (keep) keepTheme(theme);
    this.panel.renew();
  }
}
