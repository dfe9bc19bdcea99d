"""The counter cpu_libraries: products that MKL and oneDNN, PyTorch's math libraries on the CPU, write into their logs."""

from ....core.records import MAC
from .. import framework_counter

COUNTERS = (
    framework_counter(
        "cpu_libraries",
        __name__,
        MAC,
        "the log of MKL and oneDNN: the products that they were asked for",
        title="log of MKL and oneDNN",
        leads=("witness",),
        nested=f"{__name__}.nested",
    ),
)

PRODUCTS = "tag:products"
"""Attribute of an op: what the libraries wrote while it ran, as [routine, sizes by name, algorithm, data type]; sizes that
were not written are absent."""
