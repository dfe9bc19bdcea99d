"""The rule of tf_libraries: an op counts the multiply-adds that the lines of oneDNN's log state for it."""

from __future__ import annotations

from ..cpu_libraries.log_bridge import log_book
from .logged_products import products_of

BOOK = log_book("tf_libraries", "tensorflow", "oneDNN", products_of)
