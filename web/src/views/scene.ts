// Contents and positions of a drawn timeline.

import type { Row, Side } from "../rows";
import type { Theme } from "../theme";

/** Width of the names of lanes, and height of a row. */
export const HEADER = 168;
export const ROW = 17;
export const RULER = 26;

/** A row on the canvas: slices, waits or the critical path. */
export interface Place {
  side: Side;
  kind: "title" | "waits" | "path" | "slices";
  y: number;
  height: number;
  title: string;
  /** Whether its title is written. */
  first: boolean;
  lane: number;
  row?: Row;
  words?: (tick: number, causes: { name: string }[]) => string;
}

/** A slice that matches the search. */
export interface Found { place: Place; row: Row; slice: number }

export interface Scene {
  width: number; height: number; top: number; from: number; to: number; colours: Theme; places: Place[];
  selected: Found | null; searching: boolean;
}
