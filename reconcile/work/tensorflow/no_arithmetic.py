"""TensorFlow op types whose work is 0, because they do no floating-point arithmetic, each with the reason.

The last list names ops that run code or graphs of their own: their work is not 0, but unknown.
"""

from __future__ import annotations

from ...core.work import CONTROL_FLOW, no_arithmetic, opaque

_MOVES = {
    "another shape on the same values": "Reshape Squeeze ExpandDims EnsureShape Bitcast",
    "copies or moves values": """
    Identity IdentityN Snapshot StopGradient PreventGradient DeepCopy Cast Transpose ConjugateTranspose Concat ConcatV2 Pack
    Unpack Split SplitV StridedSlice Slice Tile BroadcastTo Pad PadV2 MirrorPad Reverse ReverseV2 ReverseSequence Roll
    SpaceToBatch SpaceToBatchND BatchToSpace BatchToSpaceND SpaceToDepth DepthToSpace MatrixDiag MatrixDiagPart MatrixDiagV3
    MatrixDiagPartV3 Diag DiagPart MatrixBandPart MatrixSetDiagV3 ExtractImagePatches InvertPermutation ParallelConcat
    DynamicStitch DynamicPartition DataFormatVecPermute DataFormatDimMap ResizeNearestNeighbor _Arg _Retval _DeviceArg
    _DeviceRetval""",
    "looks values up by index or mask; no arithmetic on the values": """
    LookupTableFind LookupTableFindV2 LookupTableSizeV2 HashTable HashTableV2 AnonymousHashTable Gather GatherV2 GatherNd
    ResourceGather ResourceGatherNd OneHot Where Select SelectV2 TensorScatterUpdate ScatterNdUpdate ScatterUpdate
    ResourceScatterUpdate TensorStridedSliceUpdate""",
    "makes a constant": """
    Const Fill ZerosLike OnesLike Range LinSpace Empty EmptyTensorList TensorListReserve Placeholder PlaceholderV2
    PlaceholderWithDefault ImmutableConst""",
    "reads or writes a variable": """
    Variable VariableV2 VarHandleOp _VarHandlesOp ReadVariableOp _ReadVariablesOp Assign AssignVariableOp VarIsInitializedOp
    IsVariableInitialized DestroyResourceOp ResourceStridedSliceAssign""",
    "keeps a list of tensors; moves values": """
    TensorListStack TensorListFromTensor TensorListGetItem TensorListSetItem TensorListPushBack TensorListPopBack
    TensorListElementShape TensorListLength TensorListGather TensorListScatter TensorListScatterV2
    TensorListScatterIntoExistingList TensorListConcat TensorListConcatV2 TensorListConcatLists TensorListSplit TensorListResize
    TensorArrayV3 TensorArrayReadV3 TensorArrayWriteV3 TensorArrayGatherV3 TensorArrayScatterV3 TensorArraySizeV3
    TensorArrayCloseV3 TensorArrayConcatV3 TensorArraySplitV3""",
    CONTROL_FLOW: """
    NoOp ControlTrigger Enter Exit RefEnter RefExit Switch RefSwitch Merge RefMerge NextIteration RefNextIteration LoopCond
    While StatelessWhile If StatelessIf Case StatelessCase PartitionedCall StatefulPartitionedCall FakeParam""",
    "reads a property or checks it; no arithmetic": """
    Shape ShapeN Size Rank VariableShape BroadcastArgs BroadcastGradientArgs Assert CheckNumerics Print PrintV2 GuaranteeConst
    StringFormat ConcatOffset""",
    "logic on booleans": "LogicalAnd LogicalOr LogicalNot All Any",
    "random bits; a generator has no agreed count": """
    RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal ParameterizedTruncatedNormal RandomGamma RandomPoissonV2
    RandomShuffle Multinomial StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformInt
    StatelessRandomUniformIntV2 StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomNormal
    StatelessRandomNormalV2 StatelessTruncatedNormal StatelessTruncatedNormalV2 StatelessRandomGetKeyCounter
    StatelessRandomGetKeyCounterAlg StatelessRandomGetAlg StatelessMultinomial RngReadAndSkip StatefulUniform
    StatefulStandardNormalV2 StatefulUniformFullInt""",
    "keeps a value for a gradient, or says that there is none":
        "OptionalFromValue OptionalNone OptionalGetValue OptionalHasValue",
}  # fmt: skip
"""Why these ops do no arithmetic -> their names."""
for _reason, _names in _MOVES.items():
    no_arithmetic(_reason, *_names.split())
_CODE = """PyFunc PyFuncStateless EagerPyFunc For _While _If RemoteCall SymbolicGradient BatchFunction MapDefun OneShotIterator
    RpcServerRegister Risc* Xla* _Xla* TPU* _TPU*"""
opaque(*_CODE.split())
