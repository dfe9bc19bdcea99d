"""The table of peaks: one entry per product, form and dtype, names that find it, and arithmetic that holds its numbers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from reconcile.core.errors import UsageError
from reconcile.products.mfu.peaks import TERA, devices, find, find_devices

OTHERWISE = {"L40S": "printed as 362.05 and 733", "B300": "fp4", "GB300": "fp4", "Trainium 2": "sparsity of 4 in 16"}
"""Products whose datasheets do not print twice the dense peak with sparsity."""


def test_every_device_has_names_of_its_own_and_a_source() -> None:
    assert len(devices()) > 80
    titles = Counter(d.title for d in devices())
    assert [title for title, count in titles.items() if count > 1] == []
    assert [d.title for d in devices() if not d.names or not d.peaks] == []
    assert [d.title for d in devices() for p in d.peaks if not p.datasheet and not d.read] == []


def test_the_names_that_frameworks_print_find_their_device() -> None:
    lost = [(name, d.title) for d in devices() for name in d.names if d not in find_devices(name)]
    assert lost == []
    several = [name for d in devices() for name in d.names if len({f.names for f in find_devices(name)}) > 1]
    assert [name for name in several if not _refused(name)] == []


def _refused(name: str) -> bool:
    with pytest.raises(UsageError, match="is one of"):
        find(name)
    return True


def test_a_sparse_peak_is_two_dense_ones() -> None:
    """Datasheets round both."""
    off = {
        d.product
        for d in devices()
        for p in d.peaks
        if p.sparse is not None and abs(Fraction(p.sparse, p.dense) - 2) > Fraction(1, 50)
    }
    assert off == set(OTHERWISE)


def test_an_a100_by_its_clock_and_its_units() -> None:
    """108 SMs, 4 tensor cores of 256 FMA, 1.41 GHz; TF32 half of it, and shaders 64 FMA per SM."""
    a100 = find("NVIDIA A100-SXM4-80GB")
    for dtype, each in (("bf16", 4 * 256), ("tf32", 4 * 128), ("fp32", 64)):
        assert abs(Fraction(a100.peak(dtype).dense, 108 * each * 2 * 1_410_000_000) - 1) < Fraction(1, 100)


def test_a_processor_is_computed() -> None:
    cpu = find("cpu 64 cores 2.45 GHz 2 FMA 256 bit")
    assert cpu.peak("fp32").dense == 64 * 2 * 8 * 2 * 2_450_000_000
    assert cpu.peak("fp64").dense == cpu.peak("fp32").dense // 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("H1000", "is not in the table of peaks, so it has no peak and no MFU"),
        ("", "is not in the table of peaks"),
        ("H100", "is one of 3: .*SXM5.*PCIe.*NVL"),
        ("cpu 8 cores", "is a CPU, whose peak is computed"),
    ],
)
def test_a_name_of_none_or_several_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find(name)


def test_a_dtype_that_a_device_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="has no peak for 'bf16': its datasheet gives fp64, fp32, fp16"):
        find("Tesla V100-SXM2-16GB").peak("bf16")


def test_a_card_with_another_name_in_its_own_is_not_that_one() -> None:
    assert find("RTX 3090").title != find("RTX 3090 Ti").title
    assert find("RTX 3090 PCIe").title == find("RTX 3090").title
    assert find("NVIDIA B300").peak("bf16").dense != find("NVIDIA GB300").peak("bf16").dense


def test_a_peak_as_people_print_it() -> None:
    """989.4, half of 1,979, and 989."""
    peak = find("H100 SXM").peak("bf16")
    assert [value for value, _ in peak.prints] == [9894 * TERA // 10, 1979 * TERA // 2, 989 * TERA]
