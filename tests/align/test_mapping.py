"""The mapping file: written, read back, corrected, and refused with the line where something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.align.alignment import ROOT
from reconcile.align.automatic import align_layers, alignment
from reconcile.align.mapping import format_mapping, read_mapping
from reconcile.core.errors import UsageError
from reconcile.core.records import Layer
from tests.align.models import pair

TF = [("stem", 4, 5), ("mha.query", 5, 5), ("mha.value", 5, 5), ('a, "b"', 5, 6), ("extra", 0, 9), ("", 0, 3)]
TORCH = [("stem", 4, 5), ("mha", 5, 10), ("b", 5, 6), ("block.0.fc", 9, 9), ("", 0, 4)]
TRACES = pair(TF, TORCH)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(*lines: str, header: str = "tf,torch") -> Path:
        path = tmp_path / "map.csv"
        path.write_text("\n".join(["# a comment", header, *lines]) + "\n", encoding="utf-8")
        return path

    return write


def test_what_is_written_says_what_matched_and_what_did_not() -> None:
    text = format_mapping(align_layers(*TRACES), "nets.tf+nets.torch")
    assert text.splitlines()[0] == (
        "# The matched layers of nets.tf and nets.torch. Lines with the same name in the first column are one row of the report;"
    )
    assert text.splitlines()[3:] == [
        "layer,tf,torch,by,comment",
        "stem,stem,stem,name+work,",
        "mha,mha.query,mha,name+together+work,",
        "mha,mha.value,,,",
        'b,"a, ""b""",b,order+shape+work,',
        "tf:extra,extra,,,no layer of the other model fits",
        "torch:block.0.fc,,block.0.fc,,no layer of the other model fits",
        f"{ROOT},{ROOT},{ROOT},name,",
    ]


def test_read_back_it_is_the_same_alignment(tmp_path: Path) -> None:
    rows = align_layers(*TRACES)
    path = tmp_path / "map.csv"
    path.write_text(format_mapping(rows, "a+b"), encoding="utf-8")
    again = align_layers(*TRACES, read_mapping(path, TRACES))
    assert [(row.layer, row.paths) for row in again] == [(row.layer, row.paths) for row in rows]
    assert {row.by for row in again if row.by} == {"mapping"}


def test_what_it_lists_is_settled_and_the_rest_is_aligned(file: Callable[..., Path]) -> None:
    rows = align_layers(*TRACES, read_mapping(file("extra,block", "stem,"), TRACES))
    by = {row.layer: row.by for row in rows}
    assert by["block"] == "mapping"
    assert next(tuple(row.paths.values()) for row in rows if row.layer == "block") == (("extra",), ("block",))
    assert by["tf:stem"] == ""
    assert by["mha"] == "name+together+work"
    assert by["torch:stem"] == ""
    assert [row for row in rows if "block.0.fc" in row.paths["torch"]] == []


WRONG = [
    (("stem,stme",), 3, "the PyTorch model has no layer 'stme'. Did you mean stem?"),
    (
        ("nothing.like.it,stem",),
        3,
        "the TensorFlow model has no layer 'nothing.like.it'. To list all layers, write the file with --write-mapping.",
    ),
    (
        ("stem,stem", "", "extra,stem"),
        5,
        "the PyTorch layer 'stem' is already in line 3; a layer can be in only one row.",
    ),
    (("stem,b", "stem,"), 4, "the TensorFlow layer 'stem' is already in line 3"),
    ((",",), None, None),
    (("stem,stem,stem",), 3, "has 3 cells under 2 columns; quote cells that contain commas."),
    (('"stem', "stem"), 4, None),
]


@pytest.mark.parametrize(("lines", "number", "said"), WRONG)
def test_what_is_wrong_is_said_with_its_line(
    file: Callable[..., Path], lines: tuple[str, ...], number: int | None, said: str | None
) -> None:
    path = file(*lines)
    if number is None:
        assert read_mapping(path, TRACES) == ()  # an empty line of a spreadsheet
        return
    with pytest.raises(UsageError) as error:
        read_mapping(path, TRACES)
    assert str(error.value).startswith(f"the mapping file {path}, line {number}")
    assert said is None or said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty; the columns are layer, tf, torch, by, comment, of which tf and torch are needed."),
        (b"layer,tf\n", "line 1 is not the header of a mapping file"),
        (b"tf,torch,tf\n", "line 1 is not the header of a mapping file"),
        (b"\xff\xfe\x00", "is not text in UTF-8."),
        (b"tf,torch\nstem,\x00\n", "map.csv"),
    ],
)
def test_what_is_no_mapping_file(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "map.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="mapping file") as error:
        read_mapping(path, TRACES)
    assert said in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot read the mapping file .*none.csv: No such file or directory\.$"):
        read_mapping(tmp_path / "none.csv", TRACES)


def test_a_layer_without_any_name_in_its_line(file: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="line 3 names no layer; give one in the column tf, torch or both"):
        read_mapping(file("x,,", header="layer,tf,torch"), TRACES)


def test_a_pair_that_says_its_layers_takes_no_file(file: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="a pair already declares"):
        alignment([Layer("stem", "stem", "stem")], TRACES, file())
    assert alignment([Layer("stem", "stem", "stem")], TRACES)[1] == ()
    assert alignment([], TRACES[:1])[1] == ()


@settings(max_examples=40)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("maps") / "map.csv"
    path.write_bytes(b"tf,torch\n" + content)
    said = ""
    try:
        read_mapping(path, TRACES)
    except UsageError as error:
        said = str(error)
    assert "\n" not in said
