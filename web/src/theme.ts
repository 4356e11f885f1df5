// Light or dark: as this reader chose before, else as the system has it.

import type { Theme } from "./draw/palette.ts";

const STORAGE_KEY = "gapscope-theme";

export function storedTheme(): Theme {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(STORAGE_KEY);
  } catch {
    // A file may have no storage.
  }
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function keepTheme(theme: Theme): void {
  try {
    localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // It holds until the page is closed.
  }
}
