"""Which TensorFlow ops a graph from a file may hold: none that touches files, processes, other machines or Python.

Ops without state compute on their inputs and nothing else, but for the few named here.  Of those with state
(``OpDef.is_stateful``), the ones named here keep it in memory; every other one is refused until somebody trusts the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

REACHING_OUT = re.compile(
    r"File|Dataset|Reader|PyFunc|Debug|DecodeProto|EncodeProto|XlaCustomCall|Iterator|Tpu|TPU|Rpc|Collective|^BatchFunction$"
)
"""Ops without state that read or write files, run Python or libraries, or name a server all the same."""

IN_MEMORY = re.compile(
    r"""
    (Stateful|Stateless|RemoteFused)?(While|If|Case|PartitionedCall) | _?(VarHandlesOp|ReadVariablesOp)
    | (Read|Assign|AssignAdd|AssignSub)VariableOp | VarHandleOp | VarIsInitializedOp | VariableShape | Variable(V2)?
    | TemporaryVariable | DestroyTemporaryVariable | DestroyResourceOp | DisableCopyOnRead | DeepCopy | Empty | GuaranteeConst
    | Resource(Gather|GatherNd|StridedSliceAssign|Scatter\w+|Apply\w+|SparseApply\w+)
    | Random\w+ | TruncatedNormal | ParameterizedTruncatedNormal | Multinomial | Stateful(Uniform|StandardNormal|Truncated)\w*
    | StatefulRandomBinomial | RngSkip | RngReadAndSkip | StatelessRandomGetAlg | NonDeterministicInts
    | TensorArray\w* | Stack(V2|Push|Pop|Close|PushV2|PopV2|CloseV2)? | _?(Arg|Retval|DeviceArg|DeviceRetval)
    | (Anonymous)?(Mutable)?(Dense)?HashTable(OfTensors)?(V2)? | LookupTable\w+ | InitializeTable(V2)?
    | CudnnRNN\w* | Assert | CheckNumerics(V2)? | Print | SampleDistortedBoundingBox(V2)? | \w*UnigramCandidateSampler
    | (Uniform|LogUniform|All)CandidateSampler | DeviceIndex | XlaDequantize
    """,
    re.VERBOSE,
)

SAVERS = frozenset(["SaveV2", "RestoreV2", "MergeV2Checkpoints", "Save", "SaveSlices", "Restore", "RestoreSlice"])
"""What a SavedModel stores and restores its own variables with, in a part of its graph that no signature runs."""


def forbidden(op: str, functions: frozenset[str] = frozenset()) -> str | None:
    """Why an op of this type is not run, or None. ``functions`` are those of the graph, which may be called by type."""
    from tensorflow.python.framework import op_def_registry

    if op in functions or op == "SymbolicGradient":
        return None
    definition = op_def_registry.get(op)
    if definition is None:
        return f"holds the op {op}, which this TensorFlow does not have: it comes from a library that a factory can load first"
    if REACHING_OUT.search(op) or op in SAVERS or (definition.is_stateful and not IN_MEMORY.fullmatch(op)):
        return f"holds the op {op}, which may touch files, processes or other machines; --trust-file lets it"
    return None


def first_forbidden(
    nodes: Iterable[Any], functions: frozenset[str], allowed: frozenset[str] = frozenset()
) -> str | None:
    """What is wrong with the first of these NodeDefs that must not run, None if all may."""
    known = {}
    for node in nodes:
        if node.op not in known:
            known[node.op] = None if node.op in allowed else forbidden(node.op, functions)
        if known[node.op]:
            return known[node.op]
    return None
