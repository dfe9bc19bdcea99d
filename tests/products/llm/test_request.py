"""``reconcile.llm`` and ``reconcile llm``: one page from either, of a function, of a model at hand, and of a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import reconcile
from reconcile.cli import cli
from reconcile.products.llm import report, request
from tests.adapters.counters.test_formulas import FULL, LAYER, NORM, TOKENS, B, Decoder, F, H, L, T, V

torch = pytest.importorskip("torch")
from reconcile.adapters.counters.formulas.configured import factories  # noqa: E402
from reconcile.adapters.counters.formulas.configured.config_source import Lora, Sizes  # noqa: E402
from reconcile.adapters.counters.formulas.configured.described_model import pack_documents  # noqa: E402

pytestmark = pytest.mark.frameworks

RAN = 6 * (L * (LAYER * TOKENS + FULL) + H * V * TOKENS)
SIX_N = 6 * (L * (LAYER + NORM) + 2 * V * H) * TOKENS
IDS = torch.zeros(B, T, dtype=torch.int64)


def make() -> Any:
    """The decoder with its token ids."""
    return Decoder(), (IDS,)


@pytest.fixture(scope="module")
def found() -> Any:
    return reconcile.llm(make)


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """A model that stands for the one that transformers makes of a configuration, and what was asked."""

    def stand_in(made: Callable[[], Any]) -> list[Any]:
        given = list[Any]()

        def configure(*words: Any) -> Any:
            given.append(words)
            return made

        monkeypatch.setattr(factories, "factory", configure)
        return given

    return stand_in


EXACT = ("nanochat", "olmo-core")
"""Those that leave out the table and the norms of the layers, and count attention whole."""


def test_the_command_and_the_function_agree(found: Any, configured: Callable[..., list[Any]], tmp_path: Path) -> None:
    """On a configuration."""
    given = configured(make)
    file = tmp_path / "config.json"
    file.write_text("{}")
    done = CliRunner().invoke(cli, ["llm", str(tmp_path), "--seq", "6", "--batch", "2", "--format", "json"])
    again = reconcile.llm(file, seq=6, batch=2)
    assert given == [(file, Sizes(2, 6), None)] * 2
    assert done.exit_code == again.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(report.data(again.result)) == json.loads(report.data(found.result))
    assert (again.mfu_flops, again.hfu_flops, again.result.tokens) == (RAN, RAN, TOKENS)


@pytest.mark.slow
def test_of_a_named_function_they_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    name = f"{__name__}:make"
    done = CliRunner().invoke(cli, ["llm", name, "--format", "json"])
    assert done.exit_code == 0, done.output
    found = reconcile.llm(name)
    assert json.loads(done.stdout) == json.loads(report.data(found.result))
    assert (found.mfu_flops, found.hfu_flops, found.result.tokens, found.exit_code) == (RAN, RAN, TOKENS, 0)


def test_a_model_at_hand_has_the_same_numbers(found: Any) -> None:
    again = reconcile.llm(Decoder(), inputs=IDS)
    assert (found.result.model, again.result.model) == ("make", "Decoder")
    assert found.result.quotes == again.result.quotes
    table = found.table
    assert (table.loc["6n", "FLOP"], table.loc["6n", "of what ran"]) == (SIX_N, Fraction(SIX_N, RAN))
    causes = table.loc["6n", "why"].split("; ")
    assert SIX_N + sum(int(cause.split()[1].replace(",", "")) for cause in causes) == RAN
    assert found.exact == tuple(name for name, row in table.iterrows() if row["FLOP"] == RAN) == EXACT
    assert {table.loc[name, "why"] for name in found.exact} == {"exact"}


def test_a_forward_pass_has_no_utilisation() -> None:
    found = reconcile.llm(make, pass_="forward")
    assert found.result.ran_once == RAN // 3
    with pytest.raises(reconcile.NotInResult, match="MFU is of a training step"):
        _ = found.mfu_flops


def test_it_is_written_and_printed(found: Any, tmp_path: Path) -> None:
    files = found.write(tmp_path)
    assert [file.name for file in files] == ["make-training.md", "make-training.json"]
    assert json.loads(files[1].read_text())["ran"] == RAN
    assert files[0].read_text() == found._repr_markdown_()
    for text in (str(found), repr(found)):
        assert report.choice(found.result) in text.replace("\n", " ")
    assert f"{RAN // TOKENS:,} FLOPs per token" in found.cite()
    with pytest.raises(reconcile.UsageError, match="unknown format 'htm'"):
        found.write(tmp_path, ["htm"])


def test_lengths_of_documents(configured: Callable[..., list[Any]]) -> None:
    """B documents of T tokens in one sequence: what ran is a batch of them, and a formula of one sequence counts all pairs."""
    lengths = (T,) * B
    given = configured(lambda: (pack_documents(Decoder(), lengths), torch.zeros(1, B * T, dtype=torch.int64)))
    packed = reconcile.llm("net.json", lengths=lengths)
    text = ",".join(map(str, lengths))
    done = CliRunner().invoke(cli, ["llm", "net.json", "--lengths", text, "--format", "json"])
    assert given == [(Path("net.json"), Sizes(1, B * T, lengths), None)] * 2
    data = json.loads(done.stdout)
    assert (packed.mfu_flops, packed.exact, data["ran"], data["lengths"]) == (RAN, (), RAN, list(lengths))
    across = 6 * L * 2 * H * ((B * T) ** 2 - B * T * T)
    assert packed.table.loc["nanochat", "why"] == f"attention-across-documents -{across:,}"
    assert f"1 x {B * T} tokens in documents of {B} x {T}" in packed.cite()
    assert "leave --lengths out to count these" in " ".join(str(packed).split())
    assert [line for line in str(packed).splitlines() if len(line) > 80] == []


def test_frozen_weights_are_said(found: Any) -> None:
    frozen = Decoder(frozen=True)
    total, up = L * (LAYER + NORM) + 2 * V * H, H * F
    page = reconcile.llm(frozen, inputs=IDS)
    assert (found.result.parameters, found.result.trained) == (total, total)
    assert (page.result.parameters, page.result.trained) == (total, total - up)
    assert page.mfu_flops == RAN - 2 * up * TOKENS
    assert f"trains {total - up:,} of {total:,} parameters" in page.cite()


@pytest.mark.parametrize(
    ("lengths", "told"),
    [((2048,) * 4, "4 x 2,048"), ((5, 3, 5), "2 x 5 + 1 x 3"), (range(1, 9), "8 of 1 to 8"), ((), "")],
)
def test_documents_in_words(found: Any, lengths: Any, told: str) -> None:
    assert replace(found.result, lengths=tuple(lengths)).documents == told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["net.json", "--lengths", "8,8", "--seq", "16"], "leave --seq or --lengths out"),
        (["net.json", "--lora", "16", "--pass", "forward"], "adapters are trained: leave --lora or --pass out"),
        (["net.json", "--lora", "q_proj"], "--lora takes a rank, such as 16 or 16:q_proj,v_proj, not q_proj"),
        (["net:make", "--lora", "8"], "net:make is counted as it is: leave --lora out"),
        (["net.json", "--lengths", "8,0"], "numbers of tokens, such as 2048,2048, not '8,0'"),
        (["net:make", "--lengths", "8,8"], "net:make has inputs of its own: leave --lengths out"),
        (["gru_demo", "--seq", "8"], "gru_demo has inputs of its own: leave --seq and --batch out"),
        (["gru_demo", "--input", "1,8"], "gru_demo has inputs of its own: leave --input out"),
        (["net.json", "--input", "1,8"], "give --batch and --seq in place of --input"),
        (["gru_dmo"], "gru_dmo"),
        (["net:make", "--image-size", "32"], "net:make has inputs of its own: leave --images and --image-size out"),
        (["net.json", "--image-size", "32x48x3"], "height and width in pixels, such as 448x672, not '32x48x3'"),
    ],
)
def test_wrong_sizes_are_one_sentence(words: list[str], why: str) -> None:
    done = CliRunner().invoke(cli, ["llm", *words])
    assert (done.exit_code, why in done.stderr, "Traceback" in done.output) == (2, True, False), done.output


@pytest.mark.parametrize(
    ("model", "options", "why"),
    [
        ({"hidden_size": 8}, {}, "the mapping has no model_type"),
        ({"model_type": "llama"}, {"inputs": "1,8"}, "a configuration is called with token ids"),
        (Decoder(), {"seq": 8}, "a model has inputs of its own"),
        ({"model_type": "llama"}, {"lengths": [8, True]}, r"numbers of tokens, such as 2048,2048, not \[8, True\]"),
        ({"model_type": "llama"}, {"image_size": 448}, "height and width in pixels, such as 448x672, not 448"),
        (make, {"pass_": "backward"}, "unknown pass 'backward'"),
        (Path("no_such.json"), {}, "cannot read the configuration no_such.json: No such file or directory"),
        (7, {}, "torch= is an int"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(model: Any, options: dict[str, Any], why: str) -> None:
    with pytest.raises(reconcile.UsageError, match=why):
        reconcile.llm(model, **options)


def test_a_function_gets_the_inputs_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def compare(request: Any, *_others: Any) -> Any:
        asked.extend(input_.shape for input_ in request.inputs)
        raise reconcile.NotInResult("")

    monkeypatch.setattr(request, "make_comparison", compare)
    CliRunner().invoke(cli, ["llm", "net:make", "--input", "2,8"])
    assert asked == [(2, 8)]


def test_what_ran_unknown_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def incomplete(*_args: Any, **_options: Any) -> Any:
        raise reconcile.NotInResult("net has no number: an op is not known")

    monkeypatch.setattr(request, "make_comparison", incomplete)
    done = CliRunner().invoke(cli, ["llm", "net:make"])
    assert (done.exit_code, done.stderr) == (3, "Error: net has no number: an op is not known\n")


def test_elsewhere_a_worker_makes_the_model_of_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """What home sends is what a factory beside transformers is given; nothing of transformers is needed at home."""
    settings = {"model_type": "llama", "num_hidden_layers": 2}

    def there(_request: Any, _tell: Any) -> Any:
        raise AssertionError("nothing runs yet")

    asked, name, take = request.read_request(settings, batch=2, lengths="3,4", lora="8:q", there=there)
    assert (name, take) == ("llama", there)
    assert list(asked.factories) == ["torch"]
    module, _, function = asked.factories["torch"].rpartition(":")
    assert factories.__name__.endswith(module)
    given: list[Any] = []
    monkeypatch.setattr(factories, "factory", lambda *args: given.extend(args) or make)
    sent = json.loads(json.dumps(asked.arguments))
    assert isinstance(getattr(factories, function)(**sent)[0], Decoder)
    assert given == [settings, Sizes(2, 7, (3, 4)), Lora(8, ("q",))]


def test_a_configuration_is_a_file_or_its_folder(tmp_path: Path) -> None:
    """A text that names neither is that of a model."""
    named, within = tmp_path / "blob", tmp_path / "config.json"
    assert request.find_source(tmp_path) == within
    assert request.find_source(str(tmp_path)) is None
    for file in (named, within):
        file.write_text("{}")
    assert [request.find_source(given) for given in (named, str(tmp_path), "net.json", "gru_demo")] == [
        named,
        within,
        Path("net.json"),
        None,
    ]


def test_a_function_of_ones_own_is_not_called_elsewhere(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    words = ["llm", str(config), "--formula", "a:b", "--with", "transformers==5.0.0"]
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, "--formula" in done.stderr) == (2, True)


def test_attention_alone_has_a_row_where_its_products_are_known(found: Any) -> None:
    """Two products of B x T x T x H each, forward and twice that backward, in each layer."""
    products = 3 * L * 2 * 2 * B * T * T * H
    held = replace(found.result, attention=products)
    (row,) = (
        r
        for r in report.describe_comparison(held, brief=True).blocks[2].rows
        if getattr(r[0], "text", "") == "attention alone"
    )
    assert row[1] == f"{products // held.tokens:,}"
