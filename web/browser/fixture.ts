// Serves traces and opens pages for the tests of one file. Closes each page after its test, and the browser and the servers at the end.

import type { Page } from "playwright-core";
import { afterAll, afterEach, expect } from "vitest";
import { closeBrowser, type Opened, openPage, openTrace, view, type Viewer } from "./product.ts";

type Options = Parameters<typeof openPage>[1];

export interface Fixture {
  /** The page that was opened last. */
  readonly opened: Opened;
  /** Serves traces. */
  serve(...traces: string[]): Promise<Viewer>;
  /** Stops a server at the end. */
  stopLater(viewer: Promise<Viewer>): Promise<Viewer>;
  /** Opens the page of a trace, and waits until its work and its findings are loaded. */
  open(url: string, options?: Options): Promise<Page>;
  /** Opens any page. */
  openPage(url: string, options?: Options): Promise<Page>;
}

/** Registers the hooks of a test file. Pages may log no errors but those that match `expected`. */
export function fixture(expected?: RegExp): Fixture {
  const viewers: Viewer[] = [];
  const pages: Opened[] = [];
  const closeLater = (opened: Opened): Page => {
    pages.push(opened);
    return opened.page;
  };
  const stopLater = async (started: Promise<Viewer>): Promise<Viewer> => {
    const viewer = await started;
    viewers.push(viewer);
    return viewer;
  };
  afterEach(async () => {
    for (const { page, foreign, errors } of pages.splice(0)) {
      // Whatever a test does, nothing leaves the machine and nothing breaks.
      expect(foreign).toEqual([]);
      expect(errors.filter((error) => !expected?.test(error))).toEqual([]);
      await page.close();
    }
  });
  afterAll(async () => {
    await closeBrowser();
    for (const viewer of viewers) await viewer.stop();
  });
  return {
    get opened() {
      const last = pages.at(-1);
      if (!last) throw new Error("no page is open");
      return last;
    },
    serve: (...traces) => stopLater(view(...traces)),
    stopLater,
    open: async (url, options) => closeLater(await openTrace(url, options)),
    openPage: async (url, options) => closeLater(await openPage(url, options)),
  };
}
