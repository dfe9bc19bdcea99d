"""The terminal view: readable at 80 columns, plain when piped, the answer first."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from reconcile.core.records import AS_WITH_THESE
from reconcile.core.results import Unknown
from reconcile.core.work import Work
from reconcile.engine.answer import Answer
from reconcile.report.terminal import screen as terminal
from reconcile.report.terminal.layers import folded_table
from reconcile.report.terminal.screen import LINES_PER_CAUSE, MAX_SCREEN_LINES
from tests.report import samples

SAMPLES = samples.SAMPLES


def shown(result: Answer, width: int = 80, color: bool = False, **options: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, color_system="standard" if color else None)
    terminal.print_run(result, console, **options)  # type: ignore[arg-type]
    return out.getvalue()


def joined(result: Answer, **options: object) -> str:
    """The output with its line breaks folded into blanks."""
    return " ".join(shown(result, **options).split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_counters_and_states_are_unbroken_long_names_indented(width: int) -> None:
    result = samples.renamed(samples.unexplained(), "loop", "block." * 30 + "end")
    text = shown(result, width)
    block = text[text.index("counter ") : text.index("From ")]
    assert re.search(r"^tf\.profiler@frozen .* explained *$", block, re.M)
    assert re.search(r"^thop .* unexplained *$", block, re.M)
    assert ("229 MAC" in block, "458 FLOP" in block) == (width > 60, width > 100)
    statement = text[text.index("From ") : text.index("Layer by layer")]
    assert [line for line in statement.splitlines() if line.startswith(("block.", ".", "end"))] == []


def test_work_that_is_not_wholly_known_is_not_shown_as_known() -> None:
    text = shown(samples.incomplete())
    block = text[text.index("Layer by layer") :]
    loop = replace(samples.incomplete().layers[1], work={"torch": 8})
    torch_only = shown(replace(samples.incomplete(), layers=(loop,)))
    assert re.search(r"^loop +320 ", block, re.M)
    assert re.search(r"^loop +unknown", torch_only, re.M)
    assert re.search(r"^  thop +400 +not compared", torch_only, re.M)
    assert "thop: not comparable: trace@torch is incomplete." in text


def test_every_counter_gets_a_closing_line() -> None:
    text = joined(samples.full())
    assert "flop_counter: exact." in text
    assert (
        "tf.profiler@frozen: 67.4 % below the work that ran; to add: loop-counted-once +256, outside-convention -8."
        in text
    )
    assert "thop: 21.7 % above the work that ran; to add: outside-convention -80." in text
    assert "tf.profiler@function: failed: the worker was killed after 600 s." in text
    assert "It says it did not support aten::gru, aten::tanh." in text


def test_an_op_without_a_formula_is_named_once_wherever_it_is() -> None:
    result = samples.incomplete()
    tf, torch = result.traces
    holes = [Unknown(f"layers.{i}", "aten.bucketize", f"op{i}", "no work formula") for i in range(96)]
    row = replace(tf.rows[0], work=Work(mac=50))
    torch = replace(torch, unknown=(*torch.unknown, *holes), rows=(row,))
    text = joined(replace(result, traces=(tf, torch)), quiet=True)
    assert text.count("aten.bucketize") == 1
    assert "aten.bucketize at layer layers.0 (op0): no work formula (and at 95 more)" in text
    assert "trace@torch: 100 FLOP known + 97 ops unknown" in text


def test_verbose_adds_every_counters_own_statement() -> None:
    assert f"From fvcore to {samples.TORCH}" not in shown(samples.full())
    assert f"From fvcore to {samples.TORCH}" in shown(samples.full(), verbose=True)


def test_a_long_model_is_cut_short_without_losing_an_amount() -> None:
    result = samples.grown(LINES_PER_CAUSE + 40, samples.letters)
    text = shown(result)
    assert re.search(rf"40 more lines, see the files or --verbose +-{40 * samples.BIAS}\b", text)
    table = text[text.index("Layer by layer") :].partition("\n\n")[0].splitlines()
    rows = [line.split() for line in table[3:-1]]
    assert sum(int(row[-1].replace(",", "")) for row in rows) == -(LINES_PER_CAUSE + 40) * samples.BIAS
    assert rows[-1][1:3] == ["more", "(--verbose)"]
    assert table[-1].split()[-1] == f"-{(LINES_PER_CAUSE + 40) * samples.BIAS}"
    assert samples.letters(LINES_PER_CAUSE + 39) not in text
    assert "more" not in shown(result, verbose=True)
    assert samples.letters(LINES_PER_CAUSE + 39) in shown(result, verbose=True)


def test_layers_that_are_alike_share_a_line_with_their_sum() -> None:
    """Those that are not stay; --verbose shows each."""
    result = samples.grown(64)
    text = shown(result)
    assert re.search(rf"block0\.\.63 \(64 × -{samples.BIAS}\)  BiasAdd +-{64 * samples.BIAS}\b", text)
    assert re.search(rf"^block0\.\.63 × 64 +{64 * samples.MM_DENSE:,} +-{64 * samples.BIAS}\b", text, re.M)
    assert "more" not in text
    assert "block63" in shown(result, verbose=True)
    assert "block0.." not in shown(result, verbose=True)


def test_a_residual_in_one_of_many_layers_is_named() -> None:
    result = samples.grown(40, samples.letters)
    rest = replace(result.layers[30], causes={}, residuals={samples.FROZEN: -samples.BIAS})
    text = shown(replace(result, layers=(*result.layers[:30], rest, *result.layers[31:])))
    table = text[text.index("Layer by layer") :].partition("\n\n")[0]
    assert re.search(rf"^  {re.escape(samples.FROZEN)} .* -{samples.BIAS} +residual", table, re.M)
    assert samples.letters(30) in table


@pytest.mark.parametrize("layers", [32, 126])
def test_a_large_model_fits_a_screen(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more tables are tried for it than the screen has lines, however many layers there are."""
    tried: list[int] = []
    monkeypatch.setattr(terminal, "folded_table", lambda *given: (tried.append(given[1]), folded_table(*given))[1])
    for name in ("layers.{}.mlp".format, samples.letters):
        tried.clear()
        assert len(shown(samples.grown(layers, name)).splitlines()) <= MAX_SCREEN_LINES
        assert 0 < len(tried) < MAX_SCREEN_LINES


def test_notes_that_have_no_room_are_counted() -> None:
    result = samples.grown(64)
    noted = replace(result.traces[0], notes=tuple(f"Note {i} " + "on what was done " * 20 for i in range(9)))
    result = replace(result, traces=(noted, *result.traces[1:]))
    assert "9 notes on how this was counted: see the files or --verbose" in shown(result)
    assert "Note 8" in joined(result, verbose=True)


def test_a_name_that_is_too_long_is_broken_after_a_dot() -> None:
    parts = [f"{word}_{word}" for word in ("encoder", "layers", "attention", "projection", "convolution", "output")]
    result = samples.renamed(samples.full(), "loop", ".".join(parts))
    text = shown(result)
    table = text[text.index("Layer by layer") :].partition("\n\n")[0]
    broken = [line.split()[0] for line in table.splitlines() if "_" in line.split(" ")[0]]
    assert "".join(broken) == ".".join(parts)
    assert len(broken) > 1
    assert [line for line in broken[:-1] if not line.endswith(".")] == []


def test_colour_only_where_the_console_has_colour() -> None:
    assert "\x1b[" not in shown(samples.full())
    assert "\x1b[" in shown(samples.full(), color=True)


def test_no_color_leaves_bold_and_takes_the_colours() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard", _environ={"NO_COLOR": "1"})
    terminal.print_run(samples.unexplained(), console)
    codes = {code for found in re.findall(r"\x1b\[([\d;]*)m", out.getvalue()) for code in found.split(";")}
    assert codes <= {"0", "1", "2"}
    assert "1" in codes


def test_hostile_names_do_not_reach_the_terminal_raw() -> None:
    text = shown(samples.renamed(samples.unexplained(), "loop", samples.NASTY + "[red]"))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]" in text.replace("\n", "") or "[re" in text


def test_that_values_matter_is_said_beside_the_number_to_publish() -> None:
    """Once, and not among the notes, which a large model has no room for."""
    result = samples.clean()
    note = f"values decide a size, and the work {AS_WITH_THESE}"
    noted = replace(result, traces=tuple(replace(trace, notes=(note,)) for trace in result.traces))
    said = joined(noted)
    assert said.count(AS_WITH_THESE) == len(noted.traces)
    assert said.index("To publish") < said.index(AS_WITH_THESE)
