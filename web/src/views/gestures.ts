// Mouse, touch and keyboard control of a timeline.

import { ROW } from "./scene";

export interface Gestures {
  /** Multiplies the visible range by a factor, around a position if one is given. */
  zoom: (by: number, x?: number) => void;
  /** Moves by a share of the visible range. */
  move: (by: number) => void;
  /** Moves the view, which began at time `from`, by a number of pixels. */
  drag: (from: number, pixels: number) => void;
  begin: () => number;
  pick: (x: number, y: number) => void;
  hover: (event: PointerEvent) => void;
  leave: () => void;
  redraw: () => void;
  fit: () => void;
  search: () => void;
  release: () => void;
  next: (step: number) => void;
}

export function listen(element: HTMLElement, scroller: HTMLElement, canvas: HTMLCanvasElement, to: Gestures, signal: AbortSignal): void {
  scroller.addEventListener("scroll", to.redraw);
  scroller.addEventListener("wheel", (event) => {
    const zooms = event.ctrlKey || event.metaKey;
    if (!zooms && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (zooms) to.zoom(Math.exp(event.deltaY * 0.004), event.offsetX);
    else to.move(event.deltaX / scroller.clientWidth);
  }, { passive: false });
  pointer(scroller, canvas, to);
  new ResizeObserver(to.redraw).observe(scroller);
  addEventListener("keydown", (event) => key(element, scroller, to, event), { signal });
}

function pointer(scroller: HTMLElement, canvas: HTMLCanvasElement, to: Gestures): void {
  let drag: { x: number; y: number; from: number; top: number; moved: boolean } | null = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, from: to.begin(), top: scroller.scrollTop, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return to.hover(event);
    drag.moved ||= Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 4;
    if (!drag.moved) return;
    scroller.scrollTop = drag.top - (event.clientY - drag.y);
    to.drag(drag.from, event.clientX - drag.x);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      const box = canvas.getBoundingClientRect();
      to.pick(event.clientX - box.left, event.clientY - box.top + scroller.scrollTop);
    }
    drag = null;
  });
  canvas.addEventListener("pointerleave", to.leave);
  canvas.addEventListener("dblclick", (event) => to.zoom(0.4, event.offsetX));
}

function key(element: HTMLElement, scroller: HTMLElement, to: Gestures, event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target.getAttribute("role") === "tab";
  if (element.offsetParent === null || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const [nearer, farther, back, on] = [() => to.zoom(1 / 1.4), () => to.zoom(1.4), () => to.move(-0.15), () => to.move(0.15)];
  const actions: Record<string, () => void> = {
    w: nearer, s: farther, a: back, d: on, "+": nearer, "=": nearer, "-": farther, "0": to.fit, Home: to.fit, ArrowLeft: back, ArrowRight: on,
    ArrowUp: () => { scroller.scrollTop -= 3 * ROW; }, ArrowDown: () => { scroller.scrollTop += 3 * ROW; },
    "/": to.search, Escape: to.release, n: () => to.next(1), N: () => to.next(-1),
  };
  const action = actions[event.key.length === 1 && event.key !== "N" ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
