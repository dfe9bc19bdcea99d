"""ONNX operators with no floating-point arithmetic, which count as 0, one by one, each with the reason."""

from __future__ import annotations

from ....core.work import CONTROL_FLOW, no_arithmetic, opaque


def _count_as_zero(reason: str, names: str) -> None:
    no_arithmetic(reason, *(f"onnx.{name}" for name in names.split()))


_count_as_zero("another shape, or another type, on the same bits", "Reshape Squeeze Unsqueeze Flatten BitCast")
_count_as_zero(
    "copies or moves values",
    """Identity Cast CastLike Transpose Concat Split Slice Tile Expand Pad ReverseSequence SpaceToDepth DepthToSpace
    Trilu Compress Dropout TensorScatter MaxUnpool""",
)
_count_as_zero(
    "looks values up by index or mask; no arithmetic on the values",
    "Gather GatherElements GatherND Where OneHot NonZero ScatterElements ScatterND Scatter Unique",
)
_count_as_zero(
    "keeps a list of tensors, or a tensor that may be missing; moves values",
    """ConcatFromSequence SplitToSequence SequenceConstruct SequenceEmpty SequenceInsert SequenceErase SequenceAt SequenceLength
    Optional OptionalGetElement OptionalHasElement""",
)
_count_as_zero("makes, splits or compares text", "StringConcat StringSplit StringNormalizer RegexFullMatch")
_count_as_zero("makes a constant", "Constant ConstantOfShape Range EyeLike")
_count_as_zero("reads a property; no arithmetic", "Shape Size")
_count_as_zero("logic on booleans and bits", "And Or Not Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift")
_count_as_zero(CONTROL_FLOW, "If Loop Scan SequenceMap")
_count_as_zero(
    "random bits; a generator has no agreed count",
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial",
)
opaque("com.microsoft.*")  # among them searches that hold a whole decoder, from integers to integers
