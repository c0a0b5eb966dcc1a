#!/usr/bin/env python3
"""Checks that docs/src/dependencies.md lists each external crate of the Cargo.toml files, with its users and a reason.

With `--write` it updates the table, except for the reasons of new crates. Uses the standard library only.
"""

import re
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:
    sys.exit("Python 3.11 or newer is needed to read Cargo.toml")

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/src/dependencies.md"
MANIFESTS = [*sorted(ROOT.glob("crates/*/*/Cargo.toml")), *sorted(ROOT.glob("fuzz/Cargo.toml"))]
OURS = "steptime"


def needed() -> dict:
    """Users of each external crate; those that use it only in tests have a star."""
    found: dict = {}
    for path in MANIFESTS:
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        user = manifest["package"]["name"].removeprefix(OURS + "-")
        for part in [manifest, *manifest.get("target", {}).values()]:
            for kind, star in (("dependencies", ""), ("build-dependencies", ""), ("dev-dependencies", "*")):
                for name in part.get(kind, {}):
                    if name != OURS and not name.startswith(OURS + "-"):
                        found.setdefault(name, set()).add(user + star)
    # A crate that uses a dependency outside tests has no second entry with a star.
    return {
        name: {user for user in users if not user.endswith("*") or user[:-1] not in users}
        for name, users in found.items()
    }


def told() -> dict:
    """Rows of the table: users of each crate, and its reason."""
    rows = re.findall(r"^\| ([\w-]+) \| ([^|]+) \| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (set(users.split(", ")), reason.strip()) for name, users, reason in rows if name != "crate"}


def write() -> None:
    """Updates rows and users; keeps reasons."""
    page, reasons = PAGE.read_text(encoding="utf-8"), {name: reason for name, (_, reason) in told().items()}
    head = "| crate | used by | for |\n|---|---|---|\n"
    front, _, rest = page.partition(head)
    after = rest[len(re.match(r"(?:\|.*\n)*", rest).group()) :]
    rows = [f"| {name} | {', '.join(sorted(users))} | {reasons.get(name, '')} |\n" for name, users in sorted(needed().items())]
    PAGE.write_text(front + head + "".join(rows) + after, encoding="utf-8")


def main() -> int:
    if "--write" in sys.argv[1:]:
        write()
    needs, page, wrong = needed(), told(), []
    wrong += [f"{name} has no row: say what it is for" for name in sorted(needs.keys() - page.keys())]
    wrong += [f"{name} has a row, and nothing depends on it" for name in sorted(page.keys() - needs.keys())]
    for name in sorted(needs.keys() & page.keys()):
        users, reason = page[name]
        if users != needs[name]:
            wrong.append(f"{name} is used by {', '.join(sorted(needs[name]))}: bring it up to date with --write")
        if not reason:
            wrong.append(f"{name} has no reason")
    print(*(f"{PAGE.relative_to(ROOT)}: {problem}" for problem in wrong), sep="\n", end="\n" if wrong else "")
    print(f"{len(needs)} dependencies, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
