// The colour theme: the reader's stored choice, or else that of the system.

import type { Theme } from "./draw/palette.ts";

const STORAGE_KEY = "gapscope-theme";

export function storedTheme(): Theme {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(STORAGE_KEY);
  } catch {
    // A saved page may have no storage.
  }
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function keepTheme(theme: Theme): void {
  try {
    localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
