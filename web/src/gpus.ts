// Selection of the GPU that the step is predicted for, among those known to the program that serves the page.

import { read, type Data } from "./data";
import { h } from "./dom";
import { post } from "./served";

/** Names of GPUs, `null` for the recorded one, and the index of the GPU that the page first shows. */
export interface Devices { all: (string | null)[]; chosen: number }

export class GpuChooser {
  readonly element: HTMLElement;
  private readonly select: HTMLSelectElement;
  private readonly progress = h("span", { role: "status", class: "quiet" });
  private readonly refusal = h("p", { role: "alert", class: "doubts", hidden: true });
  private shown: number;
  private loading = false;

  /** `show` shows the step for a GPU. */
  constructor(private readonly devices: Devices, private readonly show: (data: Data, device: string | null) => void) {
    this.shown = devices.chosen;
    const options = devices.all.map((_, at) => h("option", { value: at, selected: at === this.shown }, this.label(at)));
    this.select = h("select", { change: () => void this.follow() }, ...options);
    this.element = h("div", {}, h("div", { class: "tools" }, h("label", {}, "GPU ", this.select), this.progress), this.refusal);
    this.reopen();
  }

  private label(at: number): string {
    return this.devices.all[at] ?? "as recorded";
  }

  /** Selects the GPU in the page's address, which is set after a reload. */
  private reopen(): void {
    const named = new URLSearchParams(location.search).get("device");
    if (named === null) return;
    const at = this.devices.all.indexOf(named || null);
    if (at < 0) return this.refuse(named || "as recorded", "it is none of those to choose from");
    this.select.selectedIndex = at;
    void this.follow();
  }

  /** Shows the selected GPU, then a GPU that was selected in the meantime: one request at a time. */
  private async follow(): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    this.refusal.hidden = true;
    while (this.select.selectedIndex !== this.shown) {
      const at = this.select.selectedIndex;
      this.say(`Predicting for ${this.label(at)} ...`, "quiet");
      try {
        await this.load(at);
        this.say(`${this.label(at)} is shown`, "hidden");
      } catch (error) {
        this.say("", "hidden");
        // A GPU that was selected in the meantime is requested next.
        if (this.select.selectedIndex === at) this.refuse(this.label(at), (error as Error).message);
      }
    }
    this.loading = false;
  }

  private async load(at: number): Promise<void> {
    const device = this.devices.all[at] ?? null;
    const data = await read((await (await post("data", { device })).text()).split("\n"));
    this.shown = at;
    history.replaceState(null, "", `?device=${encodeURIComponent(device ?? "")}${location.hash}`);
    this.show(data, device);
  }

  /** Shows why a GPU cannot be shown, and selects the displayed one again. */
  private refuse(name: string, words: string): void {
    this.select.selectedIndex = this.shown;
    this.refusal.textContent = `Not shown for ${name}: ${words}`;
    this.refusal.hidden = false;
  }

  private say(words: string, look: string): void {
    this.progress.textContent = words;
    this.progress.className = look;
  }
}
