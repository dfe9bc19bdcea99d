"""ATen operators whose work is 0, because they do no floating-point arithmetic, each with the reason."""

from __future__ import annotations

from ...core.work import no_arithmetic

no_arithmetic("reads a property; no arithmetic", "prim.layout", "prim.device", "prim.dtype", "aten.sym_is_contiguous")


_MOVES = {
    "a view: another shape or stride on the same data": """
    alias as_strided broadcast_tensors broadcast_to chunk contiguous detach diagonal expand expand_as flatten movedim moveaxis
    mT mH narrow permute ravel real reshape reshape_as select slice split split_with_sizes squeeze swapaxes swapdims t
    tensor_split transpose unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view view_as
    _reshape_alias _unsafe_view lift lift_fresh adjoint hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d requires_grad conj
    resolve_conj resolve_neg _reshape_copy view_copy expand_copy _nested_view_from_buffer _nested_view_from_jagged
    _nested_get_values _nested_get_offsets _nested_get_lengths _nested_get_ragged_idx _nested_get_min_seqlen
    _nested_get_max_seqlen _nested_get_jagged_dummy""",
    "reads or wraps the indices and values of a sparse tensor": """
    _indices indices _values values _nnz sparse_dim _dimI dense_dim _dimV is_coalesced _coalesced crow_indices col_indices
    ccol_indices row_indices sparse_mask sparse_resize sparse_resize_and_clear _sparse_coo_tensor_unsafe
    _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors sparse_coo_tensor _sparse_csr_tensor_unsafe
    _sparse_csc_tensor_unsafe _sparse_compressed_tensor_unsafe sparse_csr_tensor sparse_csc_tensor sparse_compressed_tensor
    _validate_sparse_coo_tensor_args _validate_sparse_csr_tensor_args _validate_sparse_compressed_tensor_args
    _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _to_sparse to_sparse _to_sparse_csr to_sparse_csr
    _to_sparse_csc to_sparse_csc _to_sparse_bsr to_sparse_bsr _to_sparse_bsc to_sparse_bsc""",
    "copies or moves values": """
    cat concat concatenate stack hstack vstack dstack clone copy _to_copy to type_as cpu cuda repeat repeat_interleave tile roll
    flip fliplr flipud rot90 pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle constant_pad_nd pad
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d im2col meshgrid
    block_diag _pad_packed_sequence _pack_padded_sequence pad_sequence select_scatter slice_scatter diagonal_scatter diag
    diag_embed _copy_from _copy_from_and_resize to_mkldnn _mkldnn_reshape _mkldnn_transpose to_dense _to_dense max_unpool2d
    max_unpool3d lift_fresh_copy _nested_tensor_from_mask to_padded_tensor nested_to_padded_tensor _nested_from_padded
    _nested_from_padded_and_nested_example _nested_tensor_from_tensor_list _jagged_to_padded_dense_forward
    _padded_dense_to_jagged_forward _chunk_cat lu_unpack split_copy unbind_copy split_with_sizes_copy select_copy slice_copy
    squeeze_copy transpose_copy t_copy unsqueeze_copy view_as_real_copy view_as_complex_copy alias_copy as_strided_copy
    as_strided_scatter detach_copy diagonal_copy narrow_copy permute_copy unfold_copy _reshape_alias_copy _stack _pin_memory
    pin_memory _lazy_clone mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight empty_permuted slice_inverse _spdiags set""",
    "looks values up by index; no arithmetic on the values": """
    embedding gather take take_along_dim index index_select masked_select _unsafe_index index_copy masked_scatter nonzero
    nonzero_static argwhere one_hot""",
    "selects between values by a mask that exists already":
        "where masked_fill index_fill tril triu tril_indices triu_indices",
    "nearest neighbour: copies one value per output element": """
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d""",
    "makes a constant or uninitialised tensor": """
    arange empty empty_like empty_strided new_empty new_empty_strided new_full new_ones new_zeros full full_like fill zero zeros
    zeros_like ones ones_like eye linspace range scalar_tensor tensor resize resize_as _efficientzerotensor
    _new_zeros_with_same_feature_meta""",
    "random bits; a generator has no agreed count": """
    rand rand_like randn randn_like randint randint_like randperm uniform normal normal_functional bernoulli exponential
    log_normal geometric cauchy random multinomial poisson binomial _standard_gamma _sample_dirichlet""",
    "reads a property or checks it; no arithmetic": """
    size sym_size sym_numel sym_stride sym_storage_offset stride numel dim is_floating_point is_complex is_nonzero is_same_size
    is_pinned
    _has_same_storage_numel _fused_sdp_choice _local_scalar_dense item _assert_async _assert_scalar _assert_tensor_metadata
    _shape_as_tensor _has_compatible_shallow_copy_type _nnpack_available ScalarImplicit IntImplicit FloatImplicit Int Float Bool
    result_type promote_types can_cast _nested_tensor_from_mask_left_aligned _nested_tensor_size""",
    "logic on booleans and bits": """
    any all bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__
    __lshift__ __rshift__ isin bincount""",
    "identity: the values pass unchanged": "positive",
    "raises if a solver said that it failed": "_linalg_check_errors",
    "complex numbers read as pairs of real ones, or the other way round":
        "view_as_real view_as_complex complex imag _conj _neg_view",
}  # fmt: skip
"""Why these operators do no arithmetic -> their names, without the prefix."""
for _reason, _names in _MOVES.items():
    no_arithmetic(_reason, *(f"aten.{name}" for name in _names.split()))
