"""Operators of ATen and bitsandbytes without multiply-adds, whose other work depends on the data or a chosen algorithm, or has no
formula here.

Under the convention `matmul` their work is known; under others the trace names them as unknown.
"""

from __future__ import annotations

from ..common_formulas import register_unfixed

_UNFIXED = {
    "the library of transforms chooses the algorithm by the length (ATen native/mkl/SpectralOps.cpp, native/SpectralOps.cpp)": """
    _fft_r2c _fft_c2c _fft_c2r fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2
    fft_fftn fft_ifftn fft_rfftn fft_irfftn""",
    "it iterates until it converges, as the data want it (LAPACK GESDD, SYEVD, GEEV)": """
    _linalg_svd linalg_svd linalg_svdvals svd _linalg_eigh linalg_eigh linalg_eigvalsh linalg_eig linalg_eigvals
    _linalg_eigvals""",
    "LAPACK scales its reflections by the data, and blocks them by the machine (GEQRF, ORGQR, ORMQR, GELSY, SYTRF)": """
    linalg_qr geqrf linalg_householder_product orgqr ormqr linalg_lstsq linalg_ldl_factor_ex linalg_ldl_factor
    linalg_ldl_solve""",
    "how often elements are compared depends on the data (ATen native/Sorting.cpp, native/Unique.cpp, native/Histogram.cpp)": """
    nanmedian mode unique_dim unique_consecutive histogram histogramdd _histogramdd_from_bin_cts _histogramdd_from_bin_tensors
    _histogramdd_bin_edges""",
    "only what the values ask for is computed (ATen native/Embedding.cpp, native/LossCTC.cpp, native/SegmentReduce.cpp)":
        "renorm embedding_renorm _ctc_loss _ctc_loss_backward ctc_loss _segment_reduce_backward _coalesce coalesce",
    "its operations on single elements have no formula here": """
    logcumsumexp _logcumsumexp allclose _standard_gamma_grad _dirichlet_grad kaiser_window bartlett_window blackman_window
    multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward
    quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel dequantize fake_quantize_per_tensor_affine_cachemask
    fake_quantize_per_channel_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    _fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine fused_moving_avg_obs_fake_quant
    _fused_moving_avg_obs_fq_helper""",
}  # fmt: skip
"""Why the work of these operators is not fixed -> their names, without the prefix."""
for _reason, _names in _UNFIXED.items():
    register_unfixed(_reason, _names, "aten.")

register_unfixed(
    "it rounds or scales single elements, by a table and block by block (bitsandbytes/_ops.py)",
    """quantize_4bit dequantize_4bit quantize_blockwise dequantize_blockwise int8_vectorwise_quant int8_vectorwise_dequant
    int8_double_quant int8_mm_dequant optimizer_update_32bit optimizer_update_8bit_blockwise""",
    "bitsandbytes.",
)
