// Numbers and names as text.

export function ms(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}
export function signed(value: number): string {
  return (value > 0 ? "+" : value < 0 ? "\u2212" : "") + ms(Math.abs(value));
}
export function percent(share: number): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "-";
}
export function count(value: number): string {
  return value.toLocaleString("en-US");
}
export function plural(value: number, one: string): string {
  return `${count(value)} ${value === 1 ? one : one.endsWith("y") ? `${one.slice(0, -1)}ies` : `${one}s`}`;
}
export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at++; }
  return `${at === 0 ? value : value.toPrecision(3)} ${units[at]}`;
}
/** A time as text, in a suitable unit. */
export function time(nanos: number): string {
  const size = Math.abs(nanos);
  if (size >= 1e9) return `${(nanos / 1e9).toFixed(3)} s`;
  if (size >= 1e6) return `${(nanos / 1e6).toFixed(3)} ms`;
  if (size >= 1e3) return `${(nanos / 1e3).toFixed(2)} \u00b5s`;
  return `${nanos.toFixed(0)} ns`;
}
/** A kernel's name without its templates and arguments. */
export function short(name: string): string {
  const plain = name.replace(/^void /, "").replaceAll("(anonymous namespace)::", "").replaceAll("at::native::", "");
  const ends = [plain.indexOf("<"), plain.search(/(?<! )\(/)].filter((at) => at > 0);
  const cut = ends.length > 0 ? plain.slice(0, Math.min(...ends)) : plain;
  return cut.replace(/^autograd::engine::evaluate_function: /, "");
}
