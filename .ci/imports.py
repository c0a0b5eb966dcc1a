#!/usr/bin/env python3
"""Checks who imports whom: no circle of files within a crate, and no arrow upward between crates.

An import is a `use`, or a path in the code, that begins with `crate`, `self`, `super` or a child module's name. Names
that a module gives away with `pub use` count as those of the file that defines them. Tests may import what they like.

A file and the files of its own folder may import each other: a module and its children are one thing. Any other
circle is an error.

The modules at the top of a crate, each with everything below it as one, have no circle either, except those listed in
`KNOWN`. That list may only shrink: a circle in it that is gone, or that has become another, is an error too.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ["testing", "read", "model", "operators", "top"]
"""The folders under crates/, lowest first. A crate depends on its own floor and on those beneath."""

GROUND = "steptime-launch"
"""The crate that is below all others: operators launch by it, models predict by it. It depends on none of ours."""

KNOWN: dict[str, list[set[str]]] = {}
"""Circles of the top modules of a crate that remain, each with the reason."""

PATH = re.compile(r"(?<![\w:$])(?:crate|self|super)(?:::\w+)+")
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
MODULE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)


def code(text: str) -> str:
    """The text without comments, strings and tests."""
    text = re.sub(r'//[^\n]*|r(#*)"(?:.|\n)*?"\1|"(?:\\.|[^"\\])*"', " ", text)
    while (start := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?(mod|use|fn)\b", text)):
        at = start.end()
        while at < len(text) and text[at] not in "{;":
            at += 1
        if start[1] != "use" and at < len(text) and text[at] == "{":
            depth = 0
            while at < len(text):
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
                if depth == 0:
                    break
        else:
            at = text.find(";", at) + 1 or len(text)
        text = text[: start.start()] + text[at:]
    return text


def leaves(tree: str, prefix: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """The paths of a use, each with the name it has here."""
    tree = tree.strip()
    if "{" in tree:
        head, body = tree.split("{", 1)
        head_path = tuple(part.strip() for part in head.split("::") if part.strip())
        parts, depth, last = [], 0, ""
        for letter in body[: body.rindex("}")]:
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append(last)
                last = ""
            else:
                last += letter
        return [leaf for part in [*parts, last] if part.strip() for leaf in leaves(part, prefix + head_path)]
    path, _, alias = tree.partition(" as ")
    full = prefix + tuple(part.strip() for part in path.split("::"))
    if full[-1] == "self":
        full = full[:-1]
    return [(full, alias.strip() or full[-1])]


class Crate:
    """The modules of a crate, each with its file, and what it imports."""

    def __init__(self, folder: Path):
        self.files: dict[tuple[str, ...], Path] = {}
        self.texts: dict[tuple[str, ...], str] = {}
        self.given: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
        root = next((root for root in (folder / "src/lib.rs", folder / "src/main.rs") if root.exists()), None)
        if root:
            self.read(root, ())
        for module, text in self.texts.items():
            self.given[module] = {}
            for public, tree in USE.findall(text):
                if public:
                    for path, name in leaves(tree):
                        self.given[module][name] = self.absolute(module, path)

    def read(self, file: Path, module: tuple[str, ...]) -> None:
        """Reads a file and those of its child modules."""
        self.files[module] = file
        self.texts[module] = text = code(file.read_text())
        folder = file.parent if file.name in ("mod.rs", "lib.rs", "main.rs") else file.with_suffix("")
        for child in MODULE.findall(text):
            for place in (folder / f"{child}.rs", folder / child / "mod.rs"):
                if place.exists():
                    self.read(place, (*module, child))

    def absolute(self, module: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
        """A path as seen from the crate's root; empty for one of another crate."""
        if path[0] == "crate":
            return path[1:] or ("self",)
        at = module
        if path[0] == "self":
            path = path[1:]
        elif path[0] == "super":
            while path and path[0] == "super":
                at, path = at[:-1], path[1:]
        elif (*module, path[0]) not in self.files:
            return ()
        return (*at, *path) or ("self",)

    def owner(self, path: tuple[str, ...], seen: frozenset = frozenset()) -> tuple[str, ...]:
        """The module that defines what a path names."""
        module: tuple[str, ...] = ()
        for at, name in enumerate(path):
            if (*module, name) in self.files:
                module = (*module, name)
                continue
            other = self.given[module].get(name)
            if other and (module, name) not in seen:
                return self.owner((*other, *path[at + 1 :]), seen | {(module, name)})
            break
        return module

    def imports(self, module: tuple[str, ...]) -> set[tuple[str, ...]]:
        """The modules that a module imports."""
        text, paths = self.texts[module], []
        for public, tree in USE.findall(text):
            paths += [path for path, _ in leaves(tree)]
        paths += [tuple(path.split("::")) for path in PATH.findall(USE.sub(" ", text))]
        found = {self.owner(path) for path in (self.absolute(module, path) for path in paths) if path}
        return found - {module}


def circles(edges: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    """Groups of modules that import each other, directly or not."""
    order, low, stack, found = {}, {}, [], []

    def visit(node: tuple[str, ...]) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(group)

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return found


def inside(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """Whether a module is a child of another, or a child of a child."""
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def within(folder: Path) -> list[str]:
    """The circles of a crate."""
    crate = Crate(folder)
    edges = {module: crate.imports(module) for module in crate.files}
    down = {a: {b for b in others if not inside(a, b)} for a, others in edges.items()}
    up = {a: {b for b in others if not inside(b, a)} for a, others in edges.items()}
    found = {}
    for group in circles(down) + circles(up):
        arrows = [
            f"    {crate.files[a].relative_to(ROOT)} -> {crate.files[b].relative_to(ROOT)}"
            for a in sorted(group)
            for b in sorted(edges[a] & set(group))
        ]
        found[frozenset(group)] = "\n".join([f"{len(group)} files import each other in a circle:", *arrows])
    return list(found.values())


def tops(folder: Path) -> list[str]:
    """The circles of a crate's top modules, each with everything below it as one."""
    crate = Crate(folder)
    edges: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    arrows: dict[tuple[str, str], list[str]] = {}
    for module in crate.files:
        for other in crate.imports(module):
            if module and other and module[0] != other[0]:
                edges.setdefault(module[:1], set()).add(other[:1])
                arrow = f"    {crate.files[module].relative_to(ROOT)} -> {crate.files[other].relative_to(ROOT)}"
                arrows.setdefault((module[0], other[0]), []).append(arrow)
    name = str(folder.relative_to(ROOT))
    known = list(KNOWN.get(name, []))
    errors = []
    for group in circles(edges):
        names = {module[0] for module in group}
        if names in known:
            known.remove(names)
            continue
        lines = [line for ends in sorted(arrows) if names.issuperset(ends) for line in sorted(arrows[ends])]
        errors.append("\n".join([f"{name}: modules {', '.join(sorted(names))} import each other in a circle:", *lines]))
    return errors + [f"{name}: {', '.join(sorted(names))} is no circle any more: take it off KNOWN" for names in known]


def between(folders: list[Path]) -> list[str]:
    """Crates that depend on one of a floor above."""
    floors = {}
    for folder in folders:
        name = tomllib.loads((folder / "Cargo.toml").read_text())["package"]["name"]
        floors[name] = folder.parent.name
    errors = []
    for folder in folders:
        for name in tomllib.loads((folder / "Cargo.toml").read_text()).get("dependencies", {}):
            own, other = folder.parent.name, floors.get(name)
            if other and folder.name == GROUND.removeprefix("steptime-"):
                errors.append(f"{folder.relative_to(ROOT)} depends on {name}, but lies below all crates")
            elif other and name != GROUND and FLOORS.index(other) > FLOORS.index(own):
                errors.append(f"{folder.relative_to(ROOT)} depends on {name}, which is on a floor above ({other})")
    return errors


def main() -> None:
    """Prints what is wrong, and fails where anything is."""
    folders = sorted(file.parent for file in (ROOT / "crates").glob("*/*/Cargo.toml"))
    errors = between(folders)
    errors += [error for folder in folders for error in within(folder) + tops(folder)]
    left = sum(map(len, KNOWN.values()))
    print("\n".join(errors) or f"{len(folders)} crates: no circle of files or modules ({left} known), no arrow upward")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
