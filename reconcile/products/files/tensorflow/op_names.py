"""Allowlist of the TensorFlow ops that a graph from a file may hold: they compute from their inputs, or keep state in memory.

Ops that can name a file, a server, a library, a device or a Python function are not here: we checked the attributes and
inputs of every op in the registry of TensorFlow 2.21.  ops.py restricts the attributes of some ops.
"""

from __future__ import annotations

CALLS = """
    Assert Case CheckNumerics CheckNumericsV2 ControlTrigger Enter Exit FakeParam If LoopCond Merge NextIteration
    NoOp PartitionedCall PreventGradient Print PrintV2 RefEnter RefExit RefMerge RefNextIteration RefSelect
    RefSwitch StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile StopGradient Switch SymbolicGradient
    While _Arg _DeviceArg _DeviceRetval _Retval _SwitchN
"""
"""Calls and control flow; the functions that they name are in the same file and are checked, too."""

COPIES = """
    Bitcast Cast Const DeepCopy DisableCopyOnRead Empty EnsureShape Fill GuaranteeConst Identity IdentityN LinSpace
    OnesLike OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone Placeholder PlaceholderV2
    PlaceholderWithDefault Range RefIdentity Snapshot ZerosLike _UnaryOpsComposition
"""
"""Constants, inputs, copies."""

VARIABLES = """
    Assign AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp AssignVariableOp CountUpTo DestroyResourceOp
    DestroyTemporaryVariable InplaceAdd InplaceSub InplaceUpdate IsVariableInitialized ReadVariableOp ResourceGather
    ResourceGatherNd ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul
    ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdSub ResourceScatterNdUpdate
    ResourceScatterSub ResourceScatterUpdate ResourceStridedSliceAssign ScatterAdd ScatterDiv ScatterMax ScatterMin
    ScatterMul ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdNonAliasingAdd ScatterNdSub ScatterNdUpdate
    ScatterSub ScatterUpdate StridedSliceAssign TemporaryVariable VarHandleOp VarIsInitializedOp Variable
    VariableShape VariableV2 _ReadVariablesOp _VarHandlesOp
"""
"""Variables in memory."""

OPTIMIZERS = """
    ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam ApplyAddSign ApplyCenteredRMSProp
    ApplyFtrl ApplyFtrlV2 ApplyGradientDescent ApplyMomentum ApplyPowerSign ApplyProximalAdagrad
    ApplyProximalGradientDescent ApplyRMSProp ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad
    ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam ResourceApplyAdamWithAmsgrad
    ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2
    ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign
    ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp
    ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2
    ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2
    ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyProximalAdagrad
    ResourceSparseApplyProximalGradientDescent ResourceSparseApplyRMSProp SparseApplyAdadelta SparseApplyAdagrad
    SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2
    SparseApplyMomentum SparseApplyProximalAdagrad SparseApplyProximalGradientDescent SparseApplyRMSProp
"""
"""Steps of optimizers, on variables in memory."""

LISTS = """
    EmptyTensorList EmptyTensorMap Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2
    TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat TensorArrayConcatV2
    TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2
    TensorArrayGradV3 TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayReadV3
    TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySize TensorArraySizeV2 TensorArraySizeV3
    TensorArraySplit TensorArraySplitV2 TensorArraySplitV3 TensorArrayUnpack TensorArrayV2 TensorArrayV3
    TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3 TensorListConcat TensorListConcatLists TensorListConcatV2
    TensorListElementShape TensorListFromTensor TensorListGather TensorListGetItem TensorListLength
    TensorListPopBack TensorListPushBack TensorListPushBackBatch TensorListReserve TensorListResize
    TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2 TensorListSetItem TensorListSplit
    TensorListStack TensorMapErase TensorMapHasKey TensorMapInsert TensorMapLookup TensorMapSize TensorMapStackKeys
"""
"""Tensor arrays, lists, maps and stacks in memory."""

TABLES = """
    AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors
    HashTable HashTableV2 InitializeTable InitializeTableV2 LookupTableExport LookupTableExportV2 LookupTableFind
    LookupTableFindV2 LookupTableImport LookupTableImportV2 LookupTableInsert LookupTableInsertV2
    LookupTableRemoveV2 LookupTableSize LookupTableSizeV2 MutableDenseHashTable MutableDenseHashTableV2
    MutableHashTable MutableHashTableOfTensors MutableHashTableOfTensorsV2 MutableHashTableV2
"""
"""Lookup tables in memory, filled from values and not from files."""

RANDOM = """
    AllCandidateSampler ComputeAccidentalHits FixedUnigramCandidateSampler KMC2ChainInitialization
    KmeansPlusPlusInitialization LearnedUnigramCandidateSampler LogUniformCandidateSampler Multinomial
    NearestNeighbors NonDeterministicInts ParameterizedTruncatedNormal RandomCrop RandomGamma RandomGammaGrad
    RandomIndexShuffle RandomPoisson RandomPoissonV2 RandomShuffle RandomStandardNormal RandomUniform
    RandomUniformInt RngReadAndSkip RngSkip SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 SobolSample
    StatefulRandomBinomial StatefulStandardNormal StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform
    StatefulUniformFullInt StatefulUniformInt StatelessMultinomial StatelessParameterizedTruncatedNormal
    StatelessRandomBinomial StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomGetAlg
    StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg StatelessRandomNormal StatelessRandomNormalV2
    StatelessRandomPoisson StatelessRandomUniform StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2
    StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2
    StatelessSampleDistortedBoundingBox StatelessShuffle StatelessTruncatedNormal StatelessTruncatedNormalV2
    ThreadUnsafeUnigramCandidateSampler TruncatedNormal UniformCandidateSampler
"""
"""Random numbers and samplers."""

SPARSE = """
    CSRSparseMatrixComponents CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor DenseCountSparseOutput
    DenseToCSRSparseMatrix DenseToDenseSetOperation DenseToSparseSetOperation DeserializeManySparse
    DeserializeSparse RaggedBincount RaggedCountSparseOutput RaggedCross RaggedFillEmptyRows RaggedFillEmptyRowsGrad
    RaggedGather RaggedRange RaggedTensorFromVariant RaggedTensorToSparse RaggedTensorToTensor RaggedTensorToVariant
    RaggedTensorToVariantGradient SerializeManySparse SerializeSparse SetSize SparseAdd SparseAddGrad SparseBincount
    SparseConcat SparseCountSparseOutput SparseCross SparseCrossHashed SparseCrossV2 SparseDenseCwiseAdd
    SparseDenseCwiseDiv SparseDenseCwiseMul SparseFillEmptyRows SparseFillEmptyRowsGrad SparseMatMul SparseMatrixAdd
    SparseMatrixMatMul SparseMatrixMul SparseMatrixNNZ SparseMatrixOrderingAMD SparseMatrixSoftmax
    SparseMatrixSoftmaxGrad SparseMatrixSparseCholesky SparseMatrixSparseMatMul SparseMatrixTranspose
    SparseMatrixZeros SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse SparseReorder
    SparseReshape SparseSegmentMean SparseSegmentMeanGrad SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments
    SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments
    SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumGradV2 SparseSegmentSumWithNumSegments SparseSlice
    SparseSliceGrad SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit SparseTensorDenseAdd
    SparseTensorDenseMatMul SparseTensorToCSRSparseMatrix SparseToDense SparseToSparseSetOperation
"""
"""Sparse, ragged and set tensors."""

QUANTIZED = """
    Dequantize FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars
    FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient
    QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4
    QuantizeAndDequantizeV4Grad QuantizeDownAndShrinkRange QuantizeV2 QuantizedAdd QuantizedAvgPool
    QuantizedBatchNormWithGlobalNormalization QuantizedBiasAdd QuantizedConcat QuantizedConcatV2 QuantizedConv2D
    QuantizedConv2DAndRelu QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize
    QuantizedConv2DPerChannel QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu
    QuantizedConv2DWithBiasAndReluAndRequantize QuantizedConv2DWithBiasAndRequantize
    QuantizedConv2DWithBiasSignedSumAndReluAndRequantize QuantizedConv2DWithBiasSumAndRelu
    QuantizedConv2DWithBiasSumAndReluAndRequantize QuantizedDepthwiseConv2D QuantizedDepthwiseConv2DWithBias
    QuantizedDepthwiseConv2DWithBiasAndRelu QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize
    QuantizedInstanceNorm QuantizedMatMul QuantizedMatMulWithBias QuantizedMatMulWithBiasAndDequantize
    QuantizedMatMulWithBiasAndRelu QuantizedMatMulWithBiasAndReluAndRequantize QuantizedMatMulWithBiasAndRequantize
    QuantizedMaxPool QuantizedMul QuantizedRelu QuantizedRelu6 QuantizedReluX QuantizedReshape
    QuantizedResizeBilinear RequantizationRange RequantizationRangePerChannel Requantize RequantizePerChannel
    UniformDequantize UniformQuantize UniformQuantizedAdd UniformQuantizedClipByValue UniformQuantizedConvolution
    UniformQuantizedConvolutionHybrid UniformQuantizedDot UniformQuantizedDotHybrid UniformRequantize
    _FusedQuantizedConv2D _FusedQuantizedDepthwiseConv2D _QuantizedMatMul _QuantizedMaxPool3D
"""
"""Quantized arithmetic."""

TEXT = """
    AsString DecodeAndCropJpeg DecodeBase64 DecodeBmp DecodeCSV DecodeCompressed DecodeGif DecodeImage
    DecodeJSONExample DecodeJpeg DecodePaddedRaw DecodePng DecodeRaw DecodeWav DecodeWebP EditDistance EncodeBase64
    EncodeJpeg EncodeJpegVariableQuality EncodePng EncodeWav ExtractJpegShape Fingerprint ParseExample
    ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample
    ParseTensor ReduceJoin RegexFullMatch RegexReplace SerializeTensor StaticRegexFullMatch StaticRegexReplace
    StringFormat StringJoin StringLength StringLower StringNGrams StringSplit StringSplitV2 StringStrip
    StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper Substr ToBool
    UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode UnsortedSegmentJoin
"""
"""Text, and formats decoded from memory."""

SUMMARIES = """
    AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary TensorSummary
    TensorSummaryV2
"""
"""Summaries, as values."""

IMAGES = """
    AdjustContrast AdjustContrastv2 AdjustHue AdjustSaturation AudioSpectrogram CombinedNonMaxSuppression
    CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage DrawBoundingBoxes DrawBoundingBoxesV2 ExtractGlimpse
    ExtractGlimpseV2 FusedPadConv2D FusedResizeAndPadConv2D GenerateBoundingBoxProposals HSVToRGB
    ImageProjectiveTransformV2 ImageProjectiveTransformV3 Mfcc NonMaxSuppression NonMaxSuppressionV2
    NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps RGBToHSV ResizeArea
    ResizeBicubic ResizeBicubicGrad ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor
    ResizeNearestNeighborGrad ScaleAndTranslate ScaleAndTranslateGrad
"""
"""Images, boxes and sound."""

LAYERS = """
    AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul BatchMatMulV2 BatchMatMulV3
    BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad BiasAdd BiasAddGrad BiasAddV1 BlockLSTM
    BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss CTCLossV2 Conv Conv2D
    Conv2DBackpropFilter Conv2DBackpropFilterV2 Conv2DBackpropInput Conv2DBackpropInputV2 Conv3D
    Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv3DBackpropInput Conv3DBackpropInputV2 CudnnRNN CudnnRNNBackprop
    CudnnRNNBackpropV2 CudnnRNNBackpropV3 CudnnRNNCanonicalToParams CudnnRNNCanonicalToParamsV2 CudnnRNNParamsSize
    CudnnRNNParamsToCanonical CudnnRNNParamsToCanonicalV2 CudnnRNNV2 CudnnRNNV3 DepthwiseConv2dNative
    DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Dilation2D Dilation2DBackpropFilter
    Dilation2DBackpropInput Einsum ExtractImagePatches ExtractVolumePatches FractionalAvgPool FractionalAvgPoolGrad
    FractionalMaxPool FractionalMaxPoolGrad FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2
    FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 GRUBlockCell GRUBlockCellGrad L2Loss LRN LRNGrad
    LSTMBlockCell LSTMBlockCellGrad LogSoftmax MatMul MaxPool MaxPool3D MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad
    MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradGradWithArgmax MaxPoolGradV2 MaxPoolGradWithArgmax MaxPoolV2
    MaxPoolWithArgmax Softmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits TridiagonalMatMul
    _FusedBatchNormEx _FusedBatchNormGradEx _FusedConv2D _FusedConv3D _FusedDepthwiseConv2dNative _FusedMatMul
"""
"""Products, convolutions and other layers."""

ALGEBRA = """
    BandedTriangularSolve BatchCholesky BatchCholeskyGrad BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D
    BatchIFFT3D BatchMatrixBandPart BatchMatrixDeterminant BatchMatrixDiag BatchMatrixDiagPart BatchMatrixInverse
    BatchMatrixSetDiag BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve BatchSelfAdjointEig
    BatchSelfAdjointEigV2 BatchSvd Cholesky CholeskyGrad Cross Diag DiagPart Eig FFT FFT2D FFT3D FFTND IFFT IFFT2D
    IFFT3D IFFTND IRFFT IRFFT2D IRFFT3D IRFFTND LogMatrixDeterminant Lu MatrixBandPart MatrixDeterminant MatrixDiag
    MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixExponential MatrixInverse
    MatrixLogarithm MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MatrixSolve MatrixSolveLs MatrixSquareRoot
    MatrixTriangularSolve Qr RFFT RFFT2D RFFT3D RFFTND SelfAdjointEig SelfAdjointEigV2 Svd TridiagonalSolve
"""
"""Linear algebra and transforms."""

XLA = """
    XlaBroadcastHelper XlaConv XlaConvV2 XlaDot XlaDotV2 XlaDynamicSlice XlaDynamicUpdateSlice XlaEinsum XlaGather
    XlaKeyValueSort XlaOptimizationBarrier XlaPad XlaReduce XlaReducePrecision XlaReduceWindow XlaRngBitGenerator
    XlaScatter XlaSelectAndScatter XlaSelfAdjointEig XlaSort XlaSvd XlaVariadicReduceV2 XlaVariadicSort
"""
"""XLA's arithmetic; not its sends, launches and custom calls."""

MOVES = """
    BatchToSpace BatchToSpaceND BroadcastArgs BroadcastGradientArgs BroadcastTo Concat ConcatOffset ConcatV2
    ConjugateTranspose DataFormatDimMap DataFormatVecPermute DepthToSpace DynamicPartition DynamicStitch ExpandDims
    Gather GatherNd GatherV2 InvertPermutation ListDiff MirrorPad MirrorPadGrad OneHot Pack Pad PadV2 ParallelConcat
    ParallelDynamicStitch Rank Reshape Reverse ReverseSequence ReverseV2 Roll ScatterNd Shape ShapeN Size Slice
    SpaceToBatch SpaceToBatchND SpaceToDepth Split SplitV Squeeze StridedSlice StridedSliceGrad TensorScatterAdd
    TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate TensorStridedSliceUpdate Tile TileGrad
    Transpose Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 Unpack UnravelIndex Where
"""
"""Shapes and moves."""

REDUCTIONS = """
    All Any ApproxTopK ArgMax ArgMin Bincount Bucketize Cumprod Cumsum CumulativeLogsumexp DenseBincount
    EuclideanNorm HistogramFixedWidth InTopK InTopKV2 IsotonicRegression KthOrderStatistic LowerBound MakeUnique Max
    Mean Min NthElement Prod SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd SegmentProdV2
    SegmentSum SegmentSumV2 Sum TopK TopKUnique TopKV2 TopKWithUnique UnsortedSegmentMax UnsortedSegmentMin
    UnsortedSegmentProd UnsortedSegmentSum UpperBound
"""
"""Reductions, sums and orders."""

ARITHMETIC = """
    Abs AccumulateNV2 Acos Acosh Add AddN AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BesselI0
    BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Betainc
    BitwiseAnd BitwiseOr BitwiseXor Ceil ClipByValue Complex ComplexAbs Conj Cos Cosh Dawsn Digamma Div DivNoNan Elu
    EluGrad Equal Erf Erfc Erfinv Exp Expint Expm1 Floor FloorDiv FloorMod FresnelCos FresnelSin Greater
    GreaterEqual Igamma IgammaGradA Igammac Imag Inv InvGrad Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad
    LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri
    Neg NextAfter NotEqual Polygamma PopulationCount Pow Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad
    ReluGrad RightShift Rint Round Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh
    Softplus SoftplusGrad Softsign SoftsignGrad Spence Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad
    TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
"""
"""Arithmetic element by element."""

COMPUTING = frozenset(
    (
        CALLS + COPIES + VARIABLES + OPTIMIZERS + LISTS + TABLES + RANDOM + SPARSE + QUANTIZED + TEXT + SUMMARIES + IMAGES
        + LAYERS + ALGEBRA + XLA + MOVES + REDUCTIONS + ARITHMETIC
    ).split()
)  # fmt: skip
"""All names of the lists above."""
