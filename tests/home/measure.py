"""How heavy the house is, in numbers: ``python -m tests.home.measure`` prints them.

Lines of the product by ring, lines of tests, generated lines that are committed, imports across the rings, files that serve one
importer, functions that are named by a bare participle, and records whose fields are not described. A test holds the two counts
that may only fall (test_house.py).
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter

from tests.home.modules import MODULES, ROOT, WIDE, facts, links
from tests.home.rings import CORE, owner, seams, strings

SMALL = 60
"""Lines of a file below which it has to serve more than one importer."""
OURS = [m for m in MODULES if not m.startswith("reconcile.model_zoo.")]
"""A row of the gallery has the hash of its pair."""
PROSE = frozenset(("a", "an", "the", "of", "it", "its", "is", "are", "was", "that", "which", "only", "by"))
"""Words of which a sentence has at least one."""
GENERATED = ("reports/", "model_zoo/gallery.json", "model_zoo/steps.json", "model_zoo/scorecard.json", "docs/causes/")
IRREGULAR = re.compile(
    r"read|told|said|made|given|taken|shown|known|seen|done|found|held|kept|put|set|cut|lent|left|met|sent|"
    r"built|bound|brought|caught|chosen|drawn|driven|fed|felt|fitted|forgotten|got|gone|grown|heard|hidden|"
    r"hit|laid|led|lost|meant|paid|run|sold|spent|split|spread|stood|stuck|struck|thought|thrown|torn|"
    r"understood|won|worn|written|wound"
)


def is_participle(name: str) -> bool:
    """Whether a function's name is one bare participle: ``told``, ``asked``, ``_named``, ``counting``. A heuristic."""
    word = name.strip("_")
    if not word.isalpha() or not word.islower():
        return False
    regular = re.fullmatch(r"[a-z]{2,}(?:ed|ing)", word) and word not in {"string", "ring", "need", "feed"}
    return bool(regular or IRREGULAR.fullmatch(word))


def participles() -> dict[str, list[str]]:
    """The functions of each module that are named by a bare participle."""
    found = {module: [name for name in facts(module).functions if is_participle(name)] for module in MODULES}
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


def sentences() -> list[str]:
    """Constants of one word that hold a sentence."""
    return [f"{m}.{name}" for m in OURS for name, text in facts(m).constants if is_sentence(text)]


def undescribed_records() -> list[str]:
    """Records of ``WIDE`` fields and more with a field that has no line: in the docstring, or in a string below it."""
    return [f"{m}.{record}" for m in OURS for record in facts(m).silent]


def lonely_files() -> list[str]:
    """Files of fewer than ``SMALL`` lines that a single file imports.

    Those apart that something loads by their name (a counter's ``rules``, its ``program``), and the tables of formulas that a
    package loads for what they register.
    """
    importers = Counter(imported for found in links().values() for imported in found)
    loaded = loaded_by_name()
    for module, path in MODULES.items():
        if path.name == "__init__.py":
            loaded |= {f"{module}.{name}" for name in facts(module).registered}
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
    texts = {text for module in MODULES for text in facts(module).templates}
    names = {match[1] for text in texts if (match := re.fullmatch(r"\{\}\.(\w+)", text))}
    counters = "reconcile.adapters.counters."
    return {m for m in MODULES if m.startswith(counters) and m.count(".") == 4 and m.rpartition(".")[2] in names}


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
    number = sum(len(facts(module).functions) for module in MODULES)
    print(f"product: {sum(rings.values()):,} lines in {len(MODULES)} modules")
    print(
        f"  core without the zoo: {rings[CORE]:,}; zoo: {rings['zoo']:,}; what can be taken away: {sum(outer.values()):,}"
    )
    print("  " + ", ".join(f"{name} {size:,}" for name, size in sorted(outer.items(), key=lambda item: -item[1])))
    print(f"tests: {committed('tests/*.py'):,} lines")
    print(f"generated and committed: {committed(*GENERATED):,} lines")
    print(f"imports across the rings: {len(seams(links()))}; strings: {len(strings(MODULES))}")
    print(f"files below {SMALL} lines with one importer: {len(lonely_files())}")
    print(f"functions named by a bare participle: {sum(map(len, participles().values()))} of {number:,}")
    print(f"sentences under a one-word constant: {len(sentences())}")
    print(f"records of {WIDE} fields and more with one that is not described: {len(undescribed_records())}")


if __name__ == "__main__":
    main()
