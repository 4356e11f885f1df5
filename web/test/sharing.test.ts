// Tests the command and the file that show a view again.

import { describe, expect, test } from "vitest";
import { commandOf, savedView } from "../src/sharing.ts";

const shared = { opened: ["/data/my run.gapscope"], state: "t=5-9&q=a+b", address: "http://127.0.0.1:1/x/#t=5-9&q=a+b" };

describe("a view", () => {
  test("is shown again by a command that a shell takes", () => {
    expect(commandOf(shared)).toBe("gapscope view '/data/my run.gapscope#t=5-9&q=a+b'");
    expect(commandOf({ ...shared, opened: ["/a/it's.gapscope", "/b.gapscope"], state: "" })).toBe("gapscope view '/a/it'\\''s.gapscope' /b.gapscope");
  });

  test("is saved as a file with its traces and its state", () => {
    const { name, text } = savedView(shared, "0.1.0");
    expect(name).toBe("my run.view.json");
    expect(JSON.parse(text)).toEqual({ gapscope_view: 1, gapscope: "0.1.0", traces: ["/data/my run.gapscope"], state: "t=5-9&q=a+b" });
    expect(savedView({ ...shared, opened: ["/"] }, "0.1.0").name).toBe("gapscope.view.json");
  });
});
