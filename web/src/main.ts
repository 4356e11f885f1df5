// Starts the page: opens the data in the page or the server, and shows traces or a capture.

import "./style/page.css";
import "./style/panels.css";
import "./style/code.css";
import "./style/sql.css";
import "./style/timeline.css";
import "./style/dependencies.css";
import { App } from "./app.ts";
import { CapturePage } from "./capture-page.ts";
import { ELEMENT, FileAnswers } from "./data/file.ts";
import { DataSource, ServerAnswers } from "./data/source.ts";
import { fill, h } from "./dom.ts";
import { errorMessage } from "./error-message.ts";

/** Shows the page in the element `app`, or a sentence that says why it cannot be shown. */
async function begin(): Promise<void> {
  const root = document.getElementById("app");
  if (!root) return;
  try {
    const inside = document.getElementById(ELEMENT);
    const source = new DataSource(inside ? await FileAnswers.open(inside.textContent ?? "") : new ServerAnswers());
    // The encoded data is large and not needed any more.
    inside?.remove();
    const overview = await source.overview();
    if (overview.capture) return new CapturePage(root, source, overview.capture).begin();
    if (overview.traces.length === 0) throw new Error("There is no trace to show.");
    await new App(root, source, overview).begin();
  } catch (error) {
    fill(
      root,
      h(
        "div",
        { class: "failure", role: "alert" },
        h("h1", {}, "This trace cannot be shown"),
        h("p", {}, errorMessage(error)),
      ),
    );
  }
}

void begin();
