"""A table of times for each op, with a column for each number of threads."""

import statistics

AFTER = "after PyTorch: "  # prefix of peers that were called right after PyTorch
SHARED = "ours on PyTorch's threads"


class Table:
    """Prints each shape when it is measured, and a summary at the end."""

    def __init__(self, op: str, threads: list) -> None:
        self.op, self.threads, self.shares = op, threads, {}

    def line(self, name: str, values, form: str = "{}") -> None:
        """A row of the table."""
        print(f"  {name:48}" + "".join(f"{form.format(value) if value is not None else '-':>12}" for value in values), flush=True)

    def add(self, title: str, times: dict, flops: int = 0) -> None:
        """Adds a shape. times: milliseconds by number of threads and peer."""
        if self.op:
            print(f"\n{self.op}, medians in microseconds")
            self.line("threads", self.threads)
            self.op = ""
        print(title)
        names = list(dict.fromkeys(name for of in times.values() for name in of))
        names.sort(key=lambda name: (name.startswith(AFTER), not name.removeprefix(AFTER).startswith("ours")))
        median = {name: [statistics.median(of[name]) * 1e3 if name in of else None for of in times.values()] for name in names}
        for name in names:
            self.line(name, median[name], "{:.1f}")
        ours = median.get("ours")
        if ours is None:
            return
        if flops:
            self.line("ours, GFLOP/s", [flops / each / 1e3 for each in ours], "{:.0f}")
        if self.threads[0] == 1 and len(ours) > 1:
            self.line("ours, times as fast as on 1", [ours[0] / each for each in ours], "{:.2f}")
        self.share("best peer / ours", times, "ours", "")
        if any(name.startswith(AFTER) for name in names):
            for name in ("ours", SHARED):
                if AFTER + name in names:
                    self.share(f"{AFTER}best peer / {name}", times, AFTER + name, AFTER)

    def share(self, what: str, times: dict, ours: str, prefix: str) -> None:
        """Prints the ratio of the best peer's time to ours."""
        shares = []
        for threads, of in times.items():
            peers = [name for name in of if name.startswith(AFTER) == bool(prefix) and not name.removeprefix(AFTER).startswith("ours")]
            known = ours in of and peers
            shares.append(min(statistics.median(of[name]) for name in peers) / statistics.median(of[ours]) if known else None)
            if known:
                self.shares.setdefault(what, {}).setdefault(threads, []).append(shares[-1])
        if any(share is not None for share in shares):
            self.line(what, shares, "{:.2f}")

    def close(self) -> None:
        """Prints the number of shapes, the geometric means and the minima."""
        for what, by_threads in self.shares.items():
            if max(len(shares) for shares in by_threads.values()) > 1:
                print(what)
                for name, value in (("shapes", len), ("geometric mean", statistics.geometric_mean), ("least", min)):
                    self.line(name, [value(by_threads[each]) if each in by_threads else None for each in self.threads], "{:.4g}")
