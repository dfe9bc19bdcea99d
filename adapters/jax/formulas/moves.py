"""JAX's primitives with no floating-point arithmetic, which count as 0, one by one, each with the reason."""

from __future__ import annotations

from ....core.work import no_arithmetic, opaque


def _list(reason: str, names: str) -> None:
    no_arithmetic(reason, *(f"lax.{name}" for name in names.split()))


_list("another shape on the same values", "reshape squeeze expand_dims bitcast_convert_type")
_list(
    "copies or moves values",
    """broadcast broadcast_in_dim concatenate convert_element_type copy copy_p device_put dynamic_slice dynamic_update_slice pad
    reduce_precision rev slice split stack tile transpose unstack optimization_barrier stop_gradient real imag complex conj""",
)
_list("looks values up by index or mask; no arithmetic on the values", "gather scatter select_n")
_list("makes a constant", "iota empty empty2 zeros_like create_token after_all")
_list("logic on booleans and bits", "and or xor not reduce_and reduce_or reduce_xor shift_left shift_right_logical")
_list("logic on bits", "shift_right_arithmetic population_count clz")
_list(
    "random bits; a generator has no agreed count",
    """random_bits random_clone random_fold_in random_gamma random_seed random_split random_unwrap random_wrap rng_bit_generator
    rng_uniform threefry2x32 philox2x32 philox4x32 threefry4x32 prng_seed prng_random_bits prng_split prng_join""",
)
_list(
    "moves values between devices",
    """all_gather all_gather_invariant all_gather_reduced all_to_all ppermute pbroadcast pvary pcast axis_index ragged_all_to_all
    sharding_constraint layout_constraint reshard mesh_cast pbroadcast_dynamic relayout reduced_vary_cast vary_unreduced_cast""",
)
_list("says something about values and changes none", "name debug_callback debug_print check sow")
_list(
    "reads or writes a mutable array",
    "new_ref empty_ref free_ref freeze get swap ref_get ref_swap masked_load masked_swap load",
)
_list("says where in its grid a kernel of Pallas runs, or how large that is", "program_id num_programs")
_list(
    "moves values between the memories of a device, or waits for that",
    """dma_start dma_wait copy_gmem_to_smem copy_smem_to_gmem wait_smem_to_gmem async_prefetch commit_group commit_smem
    commit_tmem with_memory_space_constraint roll repeat broadcast_to bitcast""",
)
_list(
    "waits for other programs, or lets them go on",
    """semaphore_read semaphore_signal semaphore_wait get_barrier_semaphore barrier_arrive barrier_test barrier_wait delay
    debug_barrier_p wgmma_wait""",
)
_list("says something to the compiler and changes no value", "multiple_of max_contiguous")
_list("the permutation that pivots stand for", "lu_pivots_to_permutation")
opaque("lax.pure_callback", "lax.io_callback", "lax.ffi_call", "lax.while", "lax.cond", "lax.scan", "lax.call_exported")
opaque("lax.pallas_call", "lax.custom_call", "lax.run_state", "lax.core_map")
