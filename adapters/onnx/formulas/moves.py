"""ONNX operators with no floating-point arithmetic, which count as 0, one by one, each with the reason."""

from __future__ import annotations

from ....core.work import CONTROL_FLOW, no_arithmetic, opaque


def _list(reason: str, names: str) -> None:
    no_arithmetic(reason, *(f"onnx.{name}" for name in names.split()))


_list("another shape, or another type, on the same bits", "Reshape Squeeze Unsqueeze Flatten BitCast")
_list(
    "copies or moves values",
    """Identity Cast CastLike Transpose Concat Split Slice Tile Expand Pad ReverseSequence SpaceToDepth DepthToSpace
    Trilu Compress Dropout TensorScatter MaxUnpool""",
)
_list(
    "looks values up by index or mask; no arithmetic on the values",
    "Gather GatherElements GatherND Where OneHot NonZero ScatterElements ScatterND Scatter Unique",
)
_list(
    "keeps a list of tensors, or a tensor that may be missing; moves values",
    """ConcatFromSequence SplitToSequence SequenceConstruct SequenceEmpty SequenceInsert SequenceErase SequenceAt SequenceLength
    Optional OptionalGetElement OptionalHasElement""",
)
_list("makes, splits or compares text", "StringConcat StringSplit StringNormalizer RegexFullMatch")
_list("makes a constant", "Constant ConstantOfShape Range EyeLike")
_list("reads a property; no arithmetic", "Shape Size")
_list("logic on booleans and bits", "And Or Not Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift")
_list(CONTROL_FLOW, "If Loop Scan SequenceMap")
_list(
    "random bits; a generator has no agreed count",
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial",
)
opaque("com.microsoft.*")  # among them searches that hold a whole decoder, from integers to integers
