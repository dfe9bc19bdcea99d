"""The counter cpu_libraries: products that MKL and oneDNN, PyTorch's math libraries on the CPU, write into their logs."""

from ....core.counter import Counter
from ....core.records import MAC

COUNTERS = (
    Counter(
        name="cpu_libraries",
        module=__name__,
        framework="torch",
        unit=MAC,
        package="",
        distribution="",
        versions_key="torch",
        summary="the log of MKL and oneDNN: the products that they were asked for",
        default=False,
        blind="",
        title="log of MKL and oneDNN",
        leads=("witness",),
        nested=True,
    ),
)

PRODUCTS = "tag:products"
"""Attribute of an op: what the libraries wrote while it ran, as [routine, sizes by name, algorithm, data type]; sizes that
were not written are absent."""
