// Hands texts and files over to the reader: to the clipboard, and as downloads.

import { h } from "./dom.ts";

/** How long a button says what it did. */
const SAID_MS = 2000;

/** Makes a button that copies a text, which is asked for when it is pressed. */
export function copyButton(name: string, text: () => string, attributes: { class?: string; title?: string } = {}): HTMLButtonElement {
  const say = (said: string): void => {
    button.textContent = said;
    setTimeout(() => (button.textContent = name), SAID_MS);
  };
  const button = h(
    "button",
    {
      type: "button",
      ...attributes,
      onclick: () =>
        void navigator.clipboard.writeText(text()).then(
          () => say("Copied"),
          () => say("The browser refused"),
        ),
    },
    name,
  );
  return button;
}

/** Offers a file to save. */
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: name });
  link.click();
  // By then the browser has read the object.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
