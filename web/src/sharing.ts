// A dialog with the address, a command and a file that show the present view again, and with a picture of it.

import { fill, h } from "./dom.ts";
import { errorMessage } from "./error-message.ts";
import { copyButton, download } from "./handing-over.ts";
import { pngPicture, svgPicture } from "./picture.ts";
import type { Timeline } from "./timeline/timeline.ts";

/** The version of the saved view's format. */
const VERSION = 1;

/** The traces and the state that a shared view consists of. */
export interface SharedView {
  /** The paths that `gapscope view` was given. */
  opened: readonly string[];
  /** The query of the address and the part after its `#`. */
  state: string;
  address: string;
}

/** Returns a command for POSIX shells that shows the view. */
export function commandOf({ opened, state }: SharedView): string {
  const [first, ...rest] = opened;
  return ["gapscope view", quoted(state ? `${first}#${state}` : first), ...rest.map(quoted)].join(" ");
}

/** Quotes a text for a shell where it has other than harmless characters. */
function quoted(text: string): string {
  return /^[\w./:=,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns the name and the JSON text of the file that shows the view; `gapscope` is the program's version. */
export function savedView({ opened, state }: SharedView, gapscope: string): { name: string; text: string } {
  return { name: `${baseName(opened)}.view.json`, text: `${JSON.stringify({ gapscope_view: VERSION, gapscope, traces: opened, state }, null, 2)}\n` };
}

/** Returns the name of the first trace, for names of files. */
function baseName(opened: readonly string[]): string {
  const folder = (opened[0] ?? "").split(/[\\/]/).filter(Boolean).at(-1) ?? "";
  return folder.replace(/\.gapscope$/, "") || "gapscope";
}

/** The dialog that the button *Link* opens. */
export class Sharing {
  readonly element = h("dialog", { class: "sharing", "aria-label": "Show this view again" });

  constructor(
    private readonly gapscope: string,
    /** Returns the present view, when the dialog opens. */
    private readonly shared: () => SharedView,
    /** Returns the timelines that are shown. */
    private readonly timelines: () => readonly Timeline[],
  ) {
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  open(): void {
    const shared = this.shared();
    const saved = savedView(shared, this.gapscope);
    const row = (title: string, note: string, text: string, does: HTMLElement): HTMLElement => h("div", { class: "sharing-row" }, h("h3", {}, title), h("p", { class: "note" }, note), h("code", { tabindex: "0", "aria-label": title }, text), does);
    fill(
      this.element,
      h("h2", {}, "Show this view again"),
      shared.opened.length > 0
        ? [
            row("Address", "While this server runs, in browsers of this machine.", shared.address, copyButton("Copy address", () => shared.address)),
            row("Command", "At any time, on this machine.", commandOf(shared), copyButton("Copy command", () => commandOf(shared))),
            row("File", "At any time, and beside the trace on any machine.", `gapscope view ${quoted(saved.name)}`, h("button", { type: "button", onclick: () => download(saved.name, new Blob([saved.text], { type: "application/json" })) }, "Save this view")),
          ]
        : [],
      this.picture(baseName(shared.opened)),
      h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")),
    );
    this.element.showModal();
  }

  /** Makes the buttons that save what the timelines show. */
  private picture(name: string): HTMLElement {
    const problem = h("p", { class: "problem", role: "status", hidden: true });
    const failed = (error: unknown): void => {
      problem.textContent = errorMessage(error);
      problem.hidden = false;
    };
    const save = (kind: string, made: () => Promise<Blob>): HTMLElement =>
      h("button", { type: "button", onclick: () => void made().then((picture) => download(`${name}.${kind.toLowerCase()}`, picture), failed) }, `Save ${kind}`);
    return h(
      "div",
      { class: "sharing-row" },
      h("h3", {}, "Picture"),
      h("p", { class: "note" }, "The timeline as it is seen now, for slides and messages."),
      h("span", { class: "sharing-buttons" }, save("PNG", () => pngPicture(this.timelines())), save("SVG", async () => svgPicture(this.timelines()))),
      problem,
    );
  }
}
