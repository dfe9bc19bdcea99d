"""TensorFlow ops without multiply-adds: the other work of most is unknown, that of ``MOVES`` is 0.

It depends on the data or on an algorithm that a library chooses, or has no formula. For ATen's ops, see aten/no_products.py.

Left out on purpose, as they multiply matrices inside: LRN (by a band matrix), CholeskyGrad, Mfcc, the functions of matrices, the
quantized products, and MatrixSolveLs, which may.
"""

from __future__ import annotations

from ...core.work import no_arithmetic, pointwise
from ..common_formulas import register_unfixed

_UNFIXED = {
    "the library of transforms chooses the algorithm by the length (core/kernels/fft_ops.cc)": """
    FFT FFT2D FFT3D FFTND IFFT IFFT2D IFFT3D IFFTND RFFT RFFT2D RFFT3D RFFTND IRFFT IRFFT2D IRFFT3D IRFFTND BatchFFT BatchFFT2D
    BatchFFT3D BatchIFFT BatchIFFT2D BatchIFFT3D AudioSpectrogram""",
    "it iterates until it converges, as the data want it (core/kernels/linalg: BDCSVD, SelfAdjointEigenSolver)":
        "Svd SelfAdjointEig SelfAdjointEigV2 Eig BatchSvd BatchSelfAdjointEig BatchSelfAdjointEigV2",
    "Eigen blocks its reflections by the machine (core/kernels/linalg/qr_op_impl.h)": "Qr",
    "how often elements are compared depends on the data": """
    NthElement HistogramFixedWidth InTopK InTopKV2 NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4
    NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps CombinedNonMaxSuppression GenerateBoundingBoxProposals CTCLoss CTCLossV2
    CTCGreedyDecoder CTCBeamSearchDecoder EditDistance IsotonicRegression ApproxTopK""",
    "only what the places of the values ask for is computed (core/kernels/segment_reduction_ops_impl.h, sparse_*_op.cc)": """
    SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd SegmentProdV2 UnsortedSegmentMax UnsortedSegmentMin
    UnsortedSegmentProd SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments
    SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments SparseSegmentSumGrad SparseSegmentMeanGrad
    SparseSegmentSqrtNGrad SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2 SparseAdd SparseAddGrad
    SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMax SparseReduceMaxSparse SparseReduceSum
    SparseReduceSumSparse SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseTensorDenseAdd SparseSliceGrad
    SparseFillEmptyRowsGrad""",
    "its operations on single elements have no formula here": """
    TridiagonalSolve BandedTriangularSolve CumulativeLogsumexp SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
    HSVToRGB RGBToHSV AdjustContrast AdjustContrastv2 AdjustHue AdjustSaturation ResizeArea ResizeBicubic ResizeBicubicGrad
    CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ScaleAndTranslate ScaleAndTranslateGrad
    ImageProjectiveTransformV2 ImageProjectiveTransformV3 ExtractGlimpse ExtractGlimpseV2 MaxPoolV2 MaxPoolGradV2
    MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad MaxPoolGradGradWithArgmax FractionalAvgPool FractionalAvgPoolGrad
    FractionalMaxPool FractionalMaxPoolGrad Dilation2DBackpropFilter Dilation2DBackpropInput BatchNormWithGlobalNormalization
    BatchNormWithGlobalNormalizationGrad TileGrad Bucketize InplaceAdd InplaceSub FakeQuantWithMinMaxArgs
    FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel
    FakeQuantWithMinMaxVarsPerChannelGradient QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3
    QuantizeAndDequantizeV4 QuantizeAndDequantizeV4Grad QuantizeV2 Dequantize ResourceScatterDiv ResourceScatterMax
    ResourceScatterMin ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMax ResourceScatterNdMin
    ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMax ScatterMin ScatterNdAdd ScatterNdSub ScatterNdMax ScatterNdMin
    ScatterNdNonAliasingAdd TensorScatterMax TensorScatterMin""",
}  # fmt: skip
"""Why the work of these ops is not fixed -> their names."""
for _reason, _names in _UNFIXED.items():
    register_unfixed(_reason, _names)
ELEMENTWISE = """BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1
Betainc Dawsn Digamma Expint FresnelCos FresnelSin Igamma IgammaGradA Igammac Lgamma Ndtri NextAfter Polygamma
RandomGammaGrad Spence Xlog1py Zeta"""
STEPS = """ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2
ResourceApplyAdam ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl
ResourceApplyFtrlV2 ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign
ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp"""
"""The optimisers' steps: each element of a variable by those of its gradient and its slots."""
pointwise(*ELEMENTWISE.split(), *STEPS.split())

MOVES = """MatrixDiagV2 MatrixDiagPartV2 MatrixSetDiag MatrixSetDiagV2 ExtractVolumePatches SparseReorder SparseReshape
SparseSlice SparseConcat SparseSplit SparseToDense SparseFillEmptyRows ParallelDynamicStitch StridedSliceAssign
InplaceUpdate ResourceScatterNdUpdate RefIdentity RaggedGather RaggedTensorToTensor RaggedTensorToSparse
RaggedTensorToVariant RaggedTensorFromVariant"""
no_arithmetic("copies or moves values", *MOVES.split())
