"""ATen operators that PyTorch tags as pointwise (torch.Tag.pointwise, aten/src/ATen/native/tags.yaml), in any of its overloads.

An op of the list without a formula has no multiply-adds; the rest of its work is unknown. An op of ``higher_order`` runs code
of its own: without a formula its work is unknown, also on integers.
"""

from __future__ import annotations

from ...core.work import opaque, pointwise

_ATEN = """__ilshift__ __ixor__ __lshift__ __rshift__ __xor__ _conj_physical abs acos acosh add addcdiv addcmul angle asin asinh
    atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
    clamp_max clamp_min clip clone conj_physical copysign cos cosh deg2rad digamma div elu eq equal erf erfc erfinv exp
    exp2 expm1 float_power floor fmax fmin fmod frac frexp gcd ge gelu gelu_backward gt hardshrink hardsigmoid hardtanh
    heaviside hypot i0 igamma igammac isfinite isinf isnan isneginf isposinf lcm ldexp le leaky_relu lerp lgamma log log10
    log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit logit_backward lt masked_fill max
    maximum min minimum mish mul mvlgamma nan_to_num native_dropout_backward ne neg nextafter polygamma positive pow
    rad2deg reciprocal relu relu6 remainder round rrelu rsqrt rsub selu sgn sigmoid sigmoid_backward sign signbit silu
    silu_backward sin sinc sinh softplus softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0
    special_bessel_y1 special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_entr special_erfcx special_hermite_polynomial_h special_hermite_polynomial_he
    special_i0e special_i1 special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p special_log_ndtr
    special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1
    special_ndtri special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0 special_xlog1py special_zeta sqrt square sub tan
    tanh tanh_backward threshold threshold_backward true_divide trunc where xlogy"""
_PRIMS = """abs bitwise_not conj_physical convert_element_type digamma exp2 fma fmax fmin hypot igamma igammac log2 maximum
    minimum nextafter reciprocal rsqrt sign signbit trunc"""

pointwise(*(f"aten.{name}" for name in _ATEN.split()), *(f"prims.{name}" for name in _PRIMS.split()))
opaque("higher_order.*")
