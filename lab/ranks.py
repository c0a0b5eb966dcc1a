"""Makes the traces of a large job from that of one rank: python lab/ranks.py TRACE FOLDER MEGABYTES RANKS

The events of a Kineto trace are repeated, with later times and new ids, until the plain JSON has this size; each rank gets a copy
with its number. For measurements of `steptime ingest`:

    python lab/ranks.py .../rank0/kineto.json.gz ranks 50 100
    /usr/bin/time -v steptime ingest ranks -o lake --workers 2
"""

import gzip
import json
import sys
from pathlib import Path

IDS = ("External id", "correlation", "Record function id")
MARK = "ProfilerStep#"


def later(event: dict, copy: int, span: float, steps: int, ids: int) -> dict:
    """An event of a copy of the trace, with shifted time, step and ids."""
    moved = dict(event)
    if "ts" in moved and moved.get("ph") != "M":
        moved["ts"] = round(moved["ts"] + copy * span, 3)
    if moved.get("name", "").startswith(MARK):
        moved["name"] = f"{MARK}{int(moved['name'].removeprefix(MARK)) + copy * steps}"
    if "args" in moved:
        moved["args"] = {key: value + copy * ids if key in IDS and value else value for key, value in moved["args"].items()}
    if isinstance(moved.get("id"), int):
        moved["id"] += copy * ids
    return moved


def written(event: dict) -> str:
    """An event as text, with the line breaks of Kineto."""
    args = event.pop("args", None)
    inner = json.dumps(event)[1:-1]
    last = "" if args is None else f',\n    "args": {{\n      {json.dumps(args)[1:-1]}\n    }}'
    return f"  {{\n    {inner}{last}\n  }}"


def repeated(events: list, size: float) -> str:
    """The events as text, repeated until it has `size` bytes."""
    timed = [event for event in events if event.get("ph") == "X" and "ts" in event]
    span = max(event["ts"] + event.get("dur", 0) for event in timed) - min(event["ts"] for event in timed) + 1000
    steps = sorted(int(event["name"].removeprefix(MARK)) for event in timed if event["name"].startswith(MARK))
    count = steps[-1] - steps[0] + 1 if steps else 0
    ids = max((event.get("args", {}).get(key, 0) for event in timed for key in IDS), default=1)
    parts, length, copy = [], 0, 0
    while length < size:
        kept = (event for event in events if not (copy and event.get("ph") == "M"))
        parts.append(",\n".join(written(later(event, copy, span, count, ids)) for event in kept))
        length += len(parts[-1])
        copy += 1
    return ",\n".join(parts)


def main() -> None:
    """Writes the traces."""
    source, folder, megabytes, ranks = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    with gzip.open(source, "rt", encoding="utf-8") as text:
        trace = json.load(text)
    events = repeated(trace.pop("traceEvents"), megabytes * 1e6)
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        trace["distributedInfo"] = {**trace.get("distributedInfo", {"backend": "nccl"}), "rank": rank, "world_size": ranks}
        head = json.dumps(trace, indent=2)[:-2]
        (folder / f"rank{rank}.json").write_text(f'{head},\n"traceEvents": [\n{events}\n]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
