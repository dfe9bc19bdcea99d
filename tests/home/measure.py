"""How heavy the house is, in numbers: ``python -m tests.home.measure`` prints them.

Lines of the product by ring, lines of tests, generated lines that are committed, imports across the rings, files that serve one
importer, functions that are named by a bare participle, and records whose fields are not described. A test holds the two counts
that may only fall (test_house.py).
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.home.modules import LINKS, MODULES, ROOT, parsed
from tests.home.rings import CORE, owner, seams, strings

SMALL = 60
"""Lines of a file below which it has to serve more than one importer."""
WIDE = 8
"""Fields of a record from which on each has its line."""
PROSE = frozenset(("a", "an", "the", "of", "it", "its", "is", "are", "was", "that", "which", "only", "by"))
"""Words of which a sentence has at least one."""
GENERATED = ("reports/", "model_zoo/gallery.json", "model_zoo/steps.json", "model_zoo/scorecard.json", "docs/causes/")
IRREGULAR = frozenset(
    [
        "read",
        "told",
        "said",
        "made",
        "given",
        "taken",
        "shown",
        "known",
        "seen",
        "done",
        "found",
        "held",
        "kept",
        "put",
        "set",
        "cut",
        "lent",
        "left",
        "met",
        "sent",
        "built",
        "bound",
        "brought",
        "caught",
        "chosen",
        "drawn",
        "driven",
        "fed",
        "felt",
        "fitted",
        "forgotten",
        "got",
        "gone",
        "grown",
        "heard",
        "hidden",
        "hit",
        "laid",
        "led",
        "lost",
        "meant",
        "paid",
        "run",
        "sold",
        "spent",
        "split",
        "spread",
        "stood",
        "stuck",
        "struck",
        "thought",
        "thrown",
        "torn",
        "understood",
        "won",
        "worn",
        "written",
        "wound",
    ]
)


def is_participle(name: str) -> bool:
    """Whether a function's name is one bare participle: ``told``, ``asked``, ``_named``, ``counting``. A heuristic."""
    word = name.strip("_")
    if not word.isalpha() or not word.islower():
        return False
    return word in IRREGULAR or (
        bool(re.fullmatch(r"[a-z]{2,}(?:ed|ing)", word)) and word not in {"string", "ring", "need", "feed"}
    )


def functions(module: str) -> Iterator[str]:
    """The names of the functions and methods of a module."""
    for node in ast.walk(parsed(module)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name


def participles() -> dict[str, list[str]]:
    """The functions of each module that are named by a bare participle."""
    found = {module: [name for name in functions(module) if is_participle(name)] for module in MODULES}
    return {module: names for module, names in found.items() if names}


def is_sentence(text: str) -> bool:
    """Whether a text is a sentence or a part of one: more than five words, some of them words that only prose has.

    A program, a formula and a list of names are none.
    """
    if len(text.split()) <= 5 or not PROSE & {word.strip(".,:;()") for word in text.split()}:
        return False
    try:
        return not ast.parse(text).body
    except SyntaxError:
        return True


def text_of(value: ast.expr | None) -> str:
    """The text that an expression is, as far as it stands in the source; '' if it is another one."""
    if isinstance(value, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in value.values)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def sentences(trees: Mapping[str, ast.Module] | None = None) -> list[str]:
    """Constants of one word that hold a sentence."""
    found = []
    ours = [
        m for m in MODULES if not m.startswith("reconcile.model_zoo.")
    ]  # a row of the gallery has the hash of its pair
    for module, tree in (trees or {module: parsed(module) for module in ours}).items():
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if (
                    isinstance(target, ast.Name)
                    and re.fullmatch(r"_?[A-Z]+", target.id)
                    and is_sentence(text_of(node.value))
                ):
                    found.append(f"{module}.{target.id}")
    return found


def lonely_files() -> list[str]:
    """Files of fewer than ``SMALL`` lines that a single file imports.

    Those apart that something loads by their name (a counter's ``rules``, its ``program``), and the tables of formulas that a
    package loads for what they register.
    """
    importers = Counter(imported for found in LINKS.values() for imported in found)
    loaded = loaded_by_name() | registered()
    return sorted(
        module
        for module, path in MODULES.items()
        if path.name != "__init__.py"
        and importers[module] == 1
        and len(path.read_text().splitlines()) < SMALL
        and module not in loaded
    )


def loaded_by_name() -> set[str]:
    """Modules beside a counter's declaration whose name stands in the product as ``f"{module}.rules"``."""
    texts = (n for module in MODULES for n in ast.walk(parsed(module)) if isinstance(n, ast.JoinedStr))
    names = {match[1] for text in texts if (match := re.fullmatch(r"\{\}\.(\w+)", text_of(text)))}
    counters = "reconcile.adapters.counters."
    return {m for m in MODULES if m.startswith(counters) and m.count(".") == 4 and m.rpartition(".")[2] in names}


def registered() -> set[str]:
    """Modules that their package's ``__init__`` imports as modules and uses no further."""
    found: set[str] = set()
    for module, path in MODULES.items():
        if path.name == "__init__.py":
            tree = parsed(module)
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module is None:
                    found |= {f"{module}.{alias.name}" for alias in node.names if alias.name not in used}
    return found


def undescribed_records(trees: Mapping[str, ast.Module] | None = None) -> list[str]:
    """Records of ``WIDE`` fields and more with a field that has no line: in the docstring, or in a string below it."""
    found = []
    ours = [
        m for m in MODULES if not m.startswith("reconcile.model_zoo.")
    ]  # a row of the gallery has the hash of its pair
    for module, tree in (trees or {module: parsed(module) for module in ours}).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                silent = undescribed_fields(node)
                if silent:
                    found.append(f"{module}.{node.name}: {', '.join(silent)}")
    return found


def undescribed_fields(record: ast.ClassDef) -> list[str]:
    """The fields of a wide record that have no line of their own; none of a record with fewer fields than ``WIDE``."""
    fields = [n.target.id for n in record.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    described = set(re.findall(r"^ *(\w+): \S", ast.get_docstring(record) or "", re.MULTILINE))
    for before, after in itertools.pairwise(record.body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and is_text(after):
            described.add(before.target.id)
    return [name for name in fields if name != "_" and name not in described] if len(fields) >= WIDE else []


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a bare string."""
    return isinstance(node, ast.Expr) and bool(text_of(node.value))


def lines_of(paths: Mapping[str, Path]) -> int:
    """The lines of these files."""
    return sum(len(path.read_text().splitlines()) for path in paths.values())


def committed(*patterns: str) -> int:
    """The lines of the committed files that match, pictures included."""
    names = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [ROOT / name for name in names.split("\0") if name]
    return sum(file.read_bytes().count(b"\n") for file in files if file.is_file() and not file.is_symlink())


def main() -> None:
    """Print the measurements."""
    rings: Counter[str] = Counter()
    for module, path in MODULES.items():
        rings["zoo" if module.startswith("reconcile.model_zoo") else owner(module)] += len(
            path.read_text().splitlines()
        )
    outer = {name: size for name, size in rings.items() if name not in (CORE, "zoo")}
    number = sum(len(list(functions(module))) for module in MODULES)
    print(f"product: {sum(rings.values()):,} lines in {len(MODULES)} modules")
    print(
        f"  core without the zoo: {rings[CORE]:,}; zoo: {rings['zoo']:,}; what can be taken away: {sum(outer.values()):,}"
    )
    print("  " + ", ".join(f"{name} {size:,}" for name, size in sorted(outer.items(), key=lambda item: -item[1])))
    print(f"tests: {committed('tests/*.py'):,} lines")
    print(f"generated and committed: {committed(*GENERATED):,} lines")
    print(f"imports across the rings: {len(seams(LINKS))}; strings: {len(strings(MODULES))}")
    print(f"files below {SMALL} lines with one importer: {len(lonely_files())}")
    print(f"functions named by a bare participle: {sum(map(len, participles().values()))} of {number:,}")
    print(f"sentences under a one-word constant: {len(sentences())}")
    print(f"records of {WIDE} fields and more with one that is not described: {len(undescribed_records())}")


if __name__ == "__main__":
    main()
