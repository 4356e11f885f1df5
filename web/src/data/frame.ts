// Frames: raw columns with a JSON header, as `crates/view/PROTOCOL.md` describes them. The bytes are `GSC1`, the
// header's length as u32, the header, and the columns at the offsets that it names.

import type { CounterHeader, FrameHeader, TrackHeader } from "../generated/protocol.ts";

export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** The header of a track's or a counter's frame. */
export type Header = FrameHeader & Partial<TrackHeader & CounterHeader>;

/** A header and the columns by name, each with `header.rows` values. */
export interface Frame {
  header: Header;
  columns: Map<string, Column>;
}

const MAGIC = "GSC1";

/**
 * Reads the header of a frame or container, and returns it with `at`, the offset of the contents. It throws for bytes
 * that are not a frame.
 */
export function readHeader<T>(buffer: ArrayBuffer): { header: T; at: number } {
  const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, Math.min(4, buffer.byteLength)));
  if (magic !== MAGIC || buffer.byteLength < 8) throw new Error("The answer is not a frame of columns: it was cut short or is of another version.");
  const length = new DataView(buffer).getUint32(4, true);
  if (8 + length > buffer.byteLength) throw new Error("The answer was cut short in its header.");
  return { header: JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as T, at: 8 + length };
}

/** Reads a frame without copying its columns. */
export function readFrame(buffer: ArrayBuffer): Frame {
  const { header, at } = readHeader<Header>(buffer);
  const columns = new Map<string, Column>();
  for (const { name, type, offset } of header.columns) columns.set(name, view(buffer, type, at + offset, header.rows, name));
  return { header, columns };
}

/** Returns a column as a view of the buffer; it throws where its type is unknown or its end is missing. */
function view(buffer: ArrayBuffer, type: string, offset: number, rows: number, name: string): Column {
  const kinds = { f64: Float64Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array } as const;
  const Kind = kinds[type as keyof typeof kinds];
  if (!Kind) throw new Error(`Column ${name} has the type ${type}, which this page does not know.`);
  if (offset + rows * Kind.BYTES_PER_ELEMENT > buffer.byteLength) throw new Error(`Column ${name} was cut short.`);
  return new Kind(buffer, offset, rows);
}

/** Returns a column that a frame must have; it throws where the frame lacks it. */
export function column(frame: Frame, name: string): Column {
  const found = frame.columns.get(name);
  if (!found) throw new Error(`The answer lacks the column ${name}.`);
  return found;
}
