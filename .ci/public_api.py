#!/usr/bin/env python3
"""Lists every public item of the library and of the operators, one per line: python .ci/public_api.py [--write]

An item that the library takes from a crate below is listed with its fields and functions. A whole crate that it takes is one line:
the crates below are used by name and may change.

Makes rustdoc's JSON of all crates (warnings are errors, so this also checks the documentation) and compares the listing
with docs/public-api/CRATE.txt; --write updates these files. Exit code 1 if they differ.
"""
import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTINGS = ROOT / "docs" / "public-api"
FORMAT = 57  # of rustdoc's JSON, Rust 1.95
RECEIVERS = {("self", "Self"): "self", ("self", "&Self"): "&self", ("self", "&mut Self"): "&mut self"}
CRATES = ["tensor", "ops", "cuda"]


def main():
    names = ["steptime", *(f"steptime_{name}" for name in CRATES)]
    folder = made()
    stale = 0
    for name in names:
        crate = read(folder, name)
        if crate["format_version"] != FORMAT:
            print(f"rustdoc writes format {crate['format_version']}, {FORMAT} is read here: the public API is not compared")
            return 0
        text = "".join(f"{line}\n" for line in Listing(crate, folder).lines())
        path = LISTINGS / f"{name}.txt"
        if "--write" in sys.argv[1:]:
            LISTINGS.mkdir(exist_ok=True)
            path.write_text(text)
            continue
        kept = path.read_text() if path.exists() else ""
        if kept != text:
            stale += 1
            shown = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), str(path.relative_to(ROOT)), "now", lineterm="", n=0))
            print("\n".join(shown[:20]))
    if stale:
        print(f"{stale} listings of the public API are not those in the tree: python3 .ci/public_api.py --write")
    return 1 if stale else 0


def made():
    """Makes rustdoc's JSON of every library crate. The flag is unstable, but works with a stable toolchain."""
    flags = "-D warnings -Z unstable-options --output-format json"
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = ["cargo", "doc", "--workspace", "--no-deps", "--locked", "--quiet", "--lib", "--features", "steptime/cuda"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "RUSTDOCFLAGS": flags, "RUSTDOC": str(ROOT / ".ci" / "rustdoc")}, check=True)
    return target / "doc"


def read(folder, name):
    """The JSON of one crate."""
    return json.loads((folder / f"{name}.json").read_text())


class Listing:
    """The public items of one crate."""

    def __init__(self, crate, folder):
        self.index, self.root, self.folder = crate["index"], str(crate["root"]), folder
        self.out, self.traits = set(), {}

    def lines(self):
        """One line per item, by path; the traits of a type are one line."""
        self.module(self.index[self.root], [self.index[self.root]["name"]], set())
        for path, traits in self.traits.items():
            self.put("impl", path, ": " + ", ".join(sorted(traits)))
        return [line for _, line in sorted(self.out)]

    def module(self, item, path, seen):
        for each in item["inner"]["module"]["items"]:
            found = self.index.get(str(each))
            if found and found["visibility"] == "public":
                self.item(found, path, seen)

    def item(self, item, path, seen):
        kind, inner = next(iter(item["inner"].items()))
        if kind == "use":
            return self.use(inner, path, seen)
        here = [*path, item["name"]]
        if kind == "module":
            self.put("mod", here)
            return self.module(item, here, seen)
        if kind in ("struct", "union"):
            self.put(f"{kind}", here, generics(inner))
            self.fields(inner.get("kind", inner), here)
        elif kind == "enum":
            self.put("enum", here, generics(inner))
            for each in inner["variants"]:
                self.variant(self.index[str(each)], here)
        elif kind == "trait":
            self.put("trait", here, generics(inner))
            for each in inner["items"]:
                self.member(self.index[str(each)], here)
        elif kind == "function":
            self.put("fn", here, signature(inner))
        elif kind in ("constant", "static"):
            self.put("const" if kind == "constant" else kind, here, ": " + type_text(inner["type"]))
        elif kind == "type_alias":
            self.put("type", here, generics(inner) + " = " + type_text(inner["type"]))
        elif kind == "macro":
            self.put("macro", here)
        for each in inner.get("impls", []) if isinstance(inner, dict) else []:
            self.impl(self.index.get(str(each)), here)

    def use(self, use, path, seen):
        target = self.index.get(str(use["id"]))
        if target is None:
            return self.foreign(use, path)
        if use["is_glob"]:
            return self.module(target, path, seen) if "module" in target["inner"] else None
        key = (tuple(path), use["name"], use["id"])
        if key not in seen:
            self.item({**target, "name": use["name"]}, path, seen | {key})

    def foreign(self, use, path):
        """An item of another crate of ours, or a whole crate."""
        crate, _, inner = use["source"].partition("::")
        if not inner or not (self.folder / f"{crate}.json").exists():
            return self.put("use", [*path, use["name"]], f" = {use['source']}")
        other = Listing(read(self.folder, crate), self.folder)
        found = other.named(inner.split("::"))
        if found is None:
            return self.put("use", [*path, use["name"]], f" = {use['source']}")
        other.item({**found, "name": use["name"]}, path, set())
        self.out |= other.out
        self.traits |= other.traits

    def named(self, path):
        """The item of a path from the root of the crate; `None` where it is of another crate."""
        item = self.index[self.root]
        for name in path:
            children = [self.index.get(str(each)) for each in item["inner"]["module"]["items"]]
            for child in filter(None, children):
                use = child["inner"].get("use")
                if (use["name"] if use else child["name"]) == name:
                    item = self.index.get(str(use["id"])) if use else child
                    break
            else:
                return None
            if item is None:
                return None
        return item

    def fields(self, kind, path):
        plain = kind.get("plain", kind) if isinstance(kind, dict) else {}
        for each in plain.get("fields", []):
            field = self.index.get(str(each))
            if field and field["visibility"] == "public":
                self.put("field", [*path, field["name"]], ": " + type_text(field["inner"]["struct_field"]))
        for at, each in enumerate(kind.get("tuple", []) if isinstance(kind, dict) else []):
            field = self.index.get(str(each)) if each is not None else None
            if field and field["visibility"] == "public":
                self.put("field", [*path, str(at)], ": " + type_text(field["inner"]["struct_field"]))

    def variant(self, variant, path):
        kind = variant["inner"]["variant"]["kind"]
        text = ""
        if isinstance(kind, dict) and "tuple" in kind:
            text = "(" + ", ".join(self.type_of(each) for each in kind["tuple"]) + ")"
        elif isinstance(kind, dict):
            fields = [self.index[str(each)] for each in kind["struct"]["fields"]]
            text = " { " + ", ".join(f"{f['name']}: {type_text(f['inner']['struct_field'])}" for f in fields) + " }"
        self.put("variant", [*path, variant["name"]], text)

    def type_of(self, field):
        return "_" if field is None else type_text(self.index[str(field)]["inner"]["struct_field"])

    def impl(self, item, path):
        if item is None:
            return
        impl = item["inner"]["impl"]
        if impl["is_synthetic"] or impl["blanket_impl"] is not None:
            return
        if impl["trait"] is not None:
            if impl["trait"]["path"] != "StructuralPartialEq":
                self.traits.setdefault(tuple(path), set()).add(path_text(impl["trait"]))
            return
        for each in impl["items"]:
            member = self.index.get(str(each))
            if member and member["visibility"] == "public":
                self.member(member, path)

    def member(self, item, path):
        kind, inner = next(iter(item["inner"].items()))
        here = [*path, item["name"]]
        if kind == "function":
            self.put("fn", here, signature(inner))
        elif kind == "assoc_const":
            self.put("const", here, ": " + type_text(inner["type"]))
        elif kind == "assoc_type":
            self.put("type", here)

    def put(self, kind, path, text=""):
        self.out.add(("::".join(path), f"{kind} {'::'.join(path)}{text}"))


def generics(inner):
    names = [p["name"] for p in inner.get("generics", {}).get("params", []) if not p["name"].startswith("impl ")]
    return f"<{', '.join(names)}>" if names else ""


def signature(function):
    sig, header = function["sig"], function["header"]
    inputs = ", ".join(RECEIVERS.get((name, type_text(kind)), f"{name}: {type_text(kind)}") for name, kind in sig["inputs"])
    output = f" -> {type_text(sig['output'])}" if sig["output"] else ""
    words = "".join(f" {word}" for word in ("const", "unsafe", "async") if header[f"is_{word}"])
    return f"{generics(function)}({inputs}){output}{'  [' + words.strip() + ']' if words else ''}"


def path_text(path):
    return path["path"].split("::")[-1] + args_text(path["args"])


def args_text(args):
    if not args:
        return ""
    if "parenthesized" in args:
        inside = args["parenthesized"]
        output = f" -> {type_text(inside['output'])}" if inside["output"] else ""
        return "(" + ", ".join(map(type_text, inside["inputs"])) + ")" + output
    parts = []
    for each in args["angle_bracketed"]["args"]:
        kind, value = next(iter(each.items())) if isinstance(each, dict) else (each, None)
        parts.append(type_text(value) if kind == "type" else value if kind == "lifetime" else value["expr"] if kind == "const" else "_")
    for each in args["angle_bracketed"]["constraints"]:
        kind, value = next(iter(each["binding"].items()))
        term = value.get("type") if kind == "equality" else None
        parts.append(f"{each['name']} = {type_text(term)}" if term else f"{each['name']}: {bounds(value) if kind == 'constraint' else '_'}")
    return f"<{', '.join(parts)}>" if parts else ""


def bounds(found):
    texts = []
    for each in found:
        kind, value = next(iter(each.items()))
        texts.append(path_text(value["trait"]) if kind == "trait_bound" else value if kind == "outlives" else "use")
    return " + ".join(texts)


def type_text(found):
    if found is None:
        return "()"
    kind, value = next(iter(found.items())) if isinstance(found, dict) else (found, None)
    if kind == "resolved_path":
        return path_text(value)
    if kind in ("generic", "primitive"):
        return value
    if kind == "borrowed_ref":
        lifetime = value["lifetime"] + " " if value["lifetime"] else ""
        return f"&{lifetime}{'mut ' if value['is_mutable'] else ''}{type_text(value['type'])}"
    if kind == "raw_pointer":
        return f"*{'mut' if value['is_mutable'] else 'const'} {type_text(value['type'])}"
    if kind == "tuple":
        return "(" + ", ".join(map(type_text, value)) + ")"
    if kind == "slice":
        return f"[{type_text(value)}]"
    if kind == "array":
        return f"[{type_text(value['type'])}; {value['len']}]"
    if kind == "impl_trait":
        return f"impl {bounds(value)}"
    if kind == "dyn_trait":
        return "dyn " + " + ".join([path_text(each["trait"]) for each in value["traits"]] + ([value["lifetime"]] if value["lifetime"] else []))
    if kind == "qualified_path":
        of = f" as {path_text(value['trait'])}" if value["trait"] and value["trait"]["path"] else ""
        return f"<{type_text(value['self_type'])}{of}>::{value['name']}" if of else f"{type_text(value['self_type'])}::{value['name']}"
    if kind == "function_pointer":
        sig = value["sig"]
        output = f" -> {type_text(sig['output'])}" if sig["output"] else ""
        return "fn(" + ", ".join(type_text(each) for _, each in sig["inputs"]) + ")" + output
    return "_"


if __name__ == "__main__":
    sys.exit(main())
