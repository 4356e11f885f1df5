// A dialog that lists keys and mouse actions.

import { h } from "./dom.ts";
import { KEYS, keyName } from "./input/keys.ts";

/** Makes the dialog; it closes by its button and by a click beside it. */
export function helpDialog(): HTMLDialogElement {
  const dialog = h(
    "dialog",
    { class: "help", "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h(
      "dl",
      {},
      KEYS.map(({ keys, meaning }) => [h("dt", {}, keys.map((key) => h("kbd", {}, keyName(key)))), h("dd", {}, meaning)]).flat(),
    ),
    h("h2", {}, "Mouse and trackpad"),
    h(
      "dl",
      {},
      ([
        ["drag", "move"],
        ["Shift + drag, or drag on the ruler", "select a range"],
        ["Ctrl + wheel, pinch, or wheel on the ruler", "zoom"],
        ["Shift + wheel, or sideways", "move"],
        ["click, double click", "select, zoom to"],
        ["Enter, Shift + Enter in the search", "next, previous match"],
      ] as const).flatMap(([what, meaning]) => [h("dt", {}, what), h("dd", {}, meaning)]),
    ),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return dialog;
}
