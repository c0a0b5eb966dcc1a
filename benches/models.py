"""Scores `examples/models/*.toml` against recordings of the models that they describe: python benches/models.py RECORDINGS

RECORDINGS is a folder of recordings `NAME_BATCH` of one host; those named after a description are scored at every batch
size. For each description, a host profile is fitted on the folder's recordings of other models.
Prints a line per recording, and the mean absolute errors of step and active time.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def asked(program: Path, *arguments: object) -> dict:
    """JSON answer of the program."""
    command = [str(program), *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def fitted(program: Path, recordings: list[Path], name: str, folder: Path) -> Path:
    """A host profile fitted on all recordings except those of a model."""
    others = [path for path in recordings if not path.name.startswith(f"{name}_")]
    profile = folder / f"{name}-host.toml"
    subprocess.run([program, "host", "fit", *others, "-o", profile], check=True, capture_output=True)
    return profile


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/steptime")
    parser.add_argument("--device", default="h200")
    options = parser.parse_args()
    recordings = sorted(path.parent for path in options.recordings.glob("*/meta.json"))
    errors = []
    print("| recording | step ms, measured | from model.toml | error | active ms, measured | from model.toml | error |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for description in sorted((ROOT / "examples/models").glob("*.toml")):
            name = description.stem
            own = [path for path in recordings if re.fullmatch(rf"{name}_\d+", path.name)]
            host = fitted(options.program, recordings, name, Path(scratch)) if own else None
            for path in sorted(own, key=lambda path: int(path.name.rsplit("_", 1)[1])):
                batch = path.name.rsplit("_", 1)[1]
                text = re.sub(r"(?m)^batch = .*$", f"batch = {batch}", description.read_text())
                model = Path(scratch) / f"{path.name}.toml"
                model.write_text(text)
                meta = json.loads((path / "meta.json").read_text())
                process = meta.get("process", "profiled")
                answer = asked(options.program, "predict", model, "--device", options.device, "--host", host, "--process", process)
                measured = asked(options.program, "predict", path)
                step = answer["step_ms"] / meta["step_ms"] - 1
                active = answer["active_ms"] / measured["active_ms"] - 1
                errors.append((abs(step), abs(active)))
                print(
                    f"| {path.name} | {meta['step_ms']:.3f} | {answer['step_ms']:.3f} | {step:+.1%} | "
                    f"{measured['active_ms']:.3f} | {answer['active_ms']:.3f} | {active:+.1%} |"
                )
    if errors:
        step, active = (sum(column) / len(errors) for column in zip(*errors))
        print(f"\nmean error: step {step:.1%}, active {active:.1%}")


if __name__ == "__main__":
    main()
