#!/usr/bin/env python3
"""Checks the documentation: the file of every relative link exists, and so does its heading if the link has one.

Paths of the repository that a page mentions without a link must exist, too, and so must source files that it names as code. Also checks the book: each page is in
SUMMARY.md, and book.toml is valid. Uses the standard library only.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "docs"
SUMMARY = BOOK / "src/SUMMARY.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")),
    *(ROOT / folder / "README.md" for folder in ("profiles", "python", "examples")),
    *sorted(ROOT.glob("lab/**/*.md")),
    *sorted(ROOT.glob("crates/*/*/README.md")),
    *sorted((BOOK / "src").glob("**/*.md")),
]
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")
PATH = re.compile(r"(?<![\w./-])(?:crates|benches|lab|\.ci)/[\w./-]*\w")
SOURCE = re.compile(r"`((?:[\w-]+/)*(?:\w+|\{[\w,]+\})\.(?:rs|cu|ts))`")
CODE = re.compile(r"`[^`\n]*`")


def text(path: Path) -> str:
    """Text of a page without its code blocks; line numbers stay the same."""
    lines, fence, after_blank = [], False, True
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.lstrip().startswith("```"):
            fence, line = not fence, ""
        block = fence or (line.startswith("    ") and after_blank)
        # A code block continues over indented lines.
        after_blank = block or not line.strip()
        lines.append("" if block else line)
    return "\n".join(lines)


def anchors(path: Path) -> set:
    """Anchors of the headings of a page, without their #."""
    found: dict = {}
    made = set()
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", text(path), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        made.add(f"{slug}-{count}" if count else slug)
    return made


def links(path: Path) -> list:
    """Relative links of a page, each with its line."""
    page = text(path)
    # The text of a link may be code; only its target counts.
    page = CODE.sub(lambda code: "`" * len(code.group()), page)
    found = []
    for match in LINK.finditer(page):
        target = match.group(1) or match.group(2)
        if not ELSEWHERE.match(target):
            found.append((page.count("\n", 0, match.start()) + 1, target))
    return found


def wrong(page: Path, target: str) -> str:
    """Error of a link; empty if it is correct."""
    name, _, fragment = target.partition("#")
    there = (page.parent / name).resolve() if name else page
    if not there.exists():
        return "leads nowhere"
    if not there.is_relative_to(ROOT):
        return "leads out of the repository"
    if fragment and there.suffix == ".md" and fragment not in anchors(there):
        return "names no heading"
    return ""


def sources() -> set:
    """Ends of the paths of all source files, at each folder: `c.rs` and `b/c.rs` of `a/b/c.rs`."""
    found = set()
    for folder in ("crates", "web/src", "web/tests", "fuzz", "lab"):
        for ending in ("rs", "cu", "ts"):
            for path in (ROOT / folder).rglob(f"*.{ending}"):
                parts = path.relative_to(ROOT).parts
                found.update("/".join(parts[at:]) for at in range(len(parts)))
    return found


def spelled(path: str) -> list:
    """Paths of a path with a list in braces, `a/{b,c}.rs`; itself without one."""
    begin, brace, rest = path.partition("{")
    names, _, end = rest.partition("}")
    return [f"{begin}{name}{end}" for name in names.split(",")] if brace else [path]


def book() -> list:
    """Errors of the book."""
    listed = {(SUMMARY.parent / target).resolve() for _, target in links(SUMMARY)}
    pages = {page for page in PAGES if SUMMARY.parent in page.parents and page != SUMMARY}
    found = [f"{page.relative_to(ROOT)}: not in SUMMARY.md" for page in sorted(pages - listed)]
    try:
        import tomllib
    except ImportError:
        return found
    try:
        tomllib.loads((BOOK / "book.toml").read_text(encoding="utf-8"))["book"]["title"]
    except (OSError, ValueError, KeyError) as error:
        found.append(f"docs/book.toml: {error}")
    return found


def main() -> int:
    found, count, known = book(), 0, sources()
    for page in PAGES:
        for line, target in links(page):
            count += 1
            problem = wrong(page, target)
            if problem:
                found.append(f"{page.relative_to(ROOT)}:{line}: {target} {problem}")
        for line, words in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
            missing = [path for path in PATH.findall(words) if not (ROOT / path).exists()]
            missing += [path for named in SOURCE.findall(words) for path in spelled(named) if path not in known]
            found += [f"{page.relative_to(ROOT)}:{line}: {path} is not there" for path in missing]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{count} links in {len(PAGES)} pages, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
