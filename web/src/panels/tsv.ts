// Writes tables as tab-separated text, which spreadsheets take.

/** Returns a cell in which no character ends the cell, and which a spreadsheet shows instead of computing it. */
function cell(text: string): string {
  const plain = text.replace(/\s+/g, " ").trim();
  return /^[=+\-@]/.test(plain) && !/^-?[\d.,]+( |$)/.test(plain) ? `'${plain}` : plain;
}

/** Returns rows of cells as text: a line for each row. */
export function tsv(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(cell).join("\t")}\n`).join("");
}
