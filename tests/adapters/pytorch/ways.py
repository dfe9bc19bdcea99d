"""Ways to run a PyTorch model: small programs, each with the multiply-adds that it runs in closed form.

Each entry of ``WAYS`` is a factory, which returns (model, inputs), and its multiply-adds, in the order of docs/ways.md.
"""

from __future__ import annotations

from . import ways_compiled, ways_of_modules, ways_transformed

WAYS = {**ways_compiled.WAYS, **ways_transformed.WAYS, **ways_of_modules.WAYS}
