// Colours that colour-blind readers can distinguish (Okabe and Ito's, and Tol's muted ones), read from the style sheet, which
// has them for the light and the dark theme.

export interface Theme {
  phases: string[]; causes: string[]; families: string[]; text: string; quiet: string; line: string; ground: string;
  path: string; merged: string; match: string; dark: boolean;
}

export function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function theme(): Theme {
  const several = (name: string, many: number): string[] =>
    Array.from({ length: many }, (_, at) => variable(`--${name}-${at}`));
  return {
    phases: several("phase", 5), causes: several("cause", 7), families: several("family", 8),
    text: variable("--text"), quiet: variable("--quiet"), line: variable("--line"), ground: variable("--ground"),
    path: variable("--path"), merged: variable("--merged"), match: variable("--match"),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
}

/** Calls `then` when the browser changes to light or dark, until the signal is aborted. */
export function onTheme(then: () => void, signal: AbortSignal): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", then, { signal });
}
