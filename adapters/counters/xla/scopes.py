"""The name-scope path of an HLO instruction, parsed from the op_name that JAX gave it."""

from __future__ import annotations

import re

PROGRAM_NAME = "reconciled"
"""The name under which JAX compiles the program that XLA counts."""
PROGRAM = f"jit({PROGRAM_NAME})"
"""Prefix of an op_name that is relative to the whole program."""
_NOT_SCOPES = re.compile(
    r"^$|^(while|body|cond|closed_call|core_call|eval_jaxpr|checkpoint|remat2?|rematted_computation|custom_[jv][vj]p_call|shard_map|"
    r"branch_\d+_fun|(p?jit|jvp|transpose|vmap)(\(.*)?|.*:)$"
)
_TRANSFORMED = re.compile(r"^(?:vmap|jvp|transpose)\((.*)\)$")


def scopes_of(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes of an instruction with this op_name, in a computation that is called within the scopes ``names``.

    An op_name has the scopes and the primitive, from the program's own name on or from the call on.
    """
    *parts, last = name.split("/")
    if _NOT_SCOPES.match(last):
        parts.append(last)
    own = tuple(part for part in map(unwrap_scope, parts) if not _NOT_SCOPES.match(part))
    return own if parts and parts[0] == PROGRAM else names + own


def unwrap_scope(part: str) -> str:
    """The scope inside of transformations: ``vmap(first)`` is ``first``."""
    found = _TRANSFORMED.match(part)
    return unwrap_scope(found[1]) if found else part
