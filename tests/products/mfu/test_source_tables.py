"""Tables of peaks in a trainer's source: read from the syntax, never run."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.mfu.peaks_report import describe_source
from reconcile.products.mfu.source_tables import Given, read_peaks
from reconcile.report.document.markdown import to_markdown

CHAIN = """
raise SystemExit("this file was run")

def get_peak_flops(device_name):
    if "A100" in device_name:
        return 312e12
    elif "H100" in device_name:
        if "NVL" in device_name:
            return 835e12
        elif not "PCIe" in device_name and "HBM3" in device_name:
            return 989e12
        return 756 * 10e11
    elif "B200" in device_name:
        return 4.5e15
    return 312e12
"""
TABLE = 'FLOPS = {"h100": 989e12, "h100 nvl": 1979e12, "l4": 121e12, "v100": 125 * 1e12, "name": "x", "few": 7}\n'


def given(folder: Path, text: str) -> dict[str, Given]:
    path = folder / "utils.py"
    path.write_text(text)
    return {one.device.title: one for one in read_peaks(path)}


def test_a_chain_gives_each_device_its_branch(tmp_path: Path) -> None:
    found = given(tmp_path, CHAIN)
    flops = {title: int(one.flops / 10**12) for title, one in found.items()}
    assert flops["NVIDIA A100 SXM4 80GB"] == 312
    assert flops["NVIDIA H100 SXM5 80GB"] == 989
    assert flops["NVIDIA H100 NVL 94GB (per GPU)"] == 835
    assert flops["NVIDIA H100 PCIe 80GB"] == 756
    assert {flops[title] for title in flops if "V100" in title} == {312}


def test_the_factor_is_their_number_over_the_datasheets(tmp_path: Path) -> None:
    """A GB200's name contains B200, and this B200 is with sparsity."""
    found = given(tmp_path, CHAIN)
    assert found["NVIDIA B200 HGX/DGX (per GPU)"].factor == 2
    assert found["NVIDIA GB200 NVL72 (per GPU)"].factor == Fraction(4500, 2500)
    assert found["NVIDIA A100 SXM4 80GB"].factor == 1


BY_DTYPE = """
PEAKS = {"h100 nvl": {torch.float32: 60e12, torch.bfloat16: 835e12}, "h100": {"fp16": 990e12, "bfloat16": 989e12},
         "v100 sxm": {torch.float32: 15.7e12, torch.float16: 125e12}}
"""
ROWS = 'PEAKS = ((["h100", "nvl"], 835e12), (["h100"], 989e12), ("a100", 312e12))\n'


@pytest.mark.parametrize("table", [BY_DTYPE, ROWS])
def test_tables_by_dtype_and_tables_of_rows_are_read(table: str, tmp_path: Path) -> None:
    flops = {title: int(one.flops / 10**12) for title, one in given(tmp_path, table).items()}
    assert flops["NVIDIA H100 NVL 94GB (per GPU)"] == 835
    assert flops["NVIDIA H100 SXM5 80GB"] == 989
    assert flops.get("NVIDIA A100 SXM4 80GB") == (312 if table == ROWS else None)


def test_the_first_row_wins_and_not_the_longest(tmp_path: Path) -> None:
    found = given(tmp_path, 'PEAKS = [("h100", 989e12), (["h100", "nvl"], 835e12)]\n')
    assert {int(one.flops / 10**12) for one in found.values()} == {989}


def test_the_longest_part_of_a_dict_wins(tmp_path: Path) -> None:
    found = given(tmp_path, TABLE)
    assert int(found["NVIDIA H100 NVL 94GB (per GPU)"].flops) == 1979 * 10**12
    assert int(found["NVIDIA H100 SXM5 80GB"].flops) == 989 * 10**12
    shadowed = [one.name for one in found.values() if "L40" in one.name]
    assert len(shadowed) >= 1


def test_the_page_lists_what_is_not_the_datasheets(tmp_path: Path) -> None:
    found = given(tmp_path, CHAIN)
    page = to_markdown(describe_source(list(found.values()), "utils.py"))
    assert "| NVIDIA B200 HGX/DGX (per GPU) |" in page
    assert "| NVIDIA A100 SXM4 80GB |" not in page
    wrong = sum(abs(one.factor - 1) > Fraction(1, 200) for one in found.values())
    assert f"{len(found)} devices get a number, {len(found) - wrong} of them the datasheet's" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "has no table of peaks"),
        ("def (:\n", "is not Python"),
        ("x = " + "(" * 500 + ")" * 500, "is not Python"),
        ('FLOPS = {"h100": 5}\n', "has no table of peaks"),
        ('FLOPS = {("h100", "bf16"): 989e12}\n', "a dict from parts of names to numbers of at least 1e12"),
        ('def f(n):\n if n.startswith("H100"):\n  return 989e12\n', '`if "H100" in name` that returns or assigns'),
    ],
)
def test_a_source_without_a_table_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        given(tmp_path, text)
