"""Causes: the closed list of named reasons why two numbers may differ, in booking order.

An entry (or one component of it) is booked whole to the first cause that holds.
"""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """The state of a ledger or statement. Unknown is a state, never None, NaN or 0."""

    EQUAL = "equal"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    NOT_COMPARABLE = "not_comparable"
    FAILED = "failed"
    SKIPPED = "skipped"


class Cause(str, Enum):
    """Members are in booking order; the value is the name used everywhere."""

    DEAD_OP = "dead-op"
    UNTAKEN_BRANCH = "untaken-branch"
    INITIALIZER = "initializer"
    DUPLICATE_GRAPH = "duplicate-graph"
    INTEGER_OP = "integer-op"
    BODY_NOT_ENTERED = "body-not-entered"
    SHAPE_UNKNOWN = "shape-unknown"
    OP_NOT_COUNTED = "op-not-counted"
    PADDING_NOT_COUNTED = "padding-not-counted"
    CALL_NOT_SEEN = "call-not-seen"
    LOOP_COUNTED_ONCE = "loop-counted-once"
    RECOUNTED = "recounted"
    GLOBAL_SHAPE = "global-shape"
    LOCAL_PARAMETERS = "local-parameters"
    TILE_PADDING = "tile-padding"
    SCORES_AGAIN = "scores-again"
    SPLIT_PRECISION = "split-precision"
    BLOCKS_SKIPPED = "blocks-skipped"
    EXTRAPOLATED = "extrapolated"
    LOOKUP_AS_PRODUCT = "lookup-as-product"
    PARAMETERS_AS_PRODUCTS = "parameters-as-products"
    PARAMETERS_NOT_READ = "parameters-not-read"
    ATTENTION_LEFT_OUT = "attention-left-out"
    ATTENTION_HALVED = "attention-halved"
    ATTENTION_WINDOWED = "attention-windowed"
    ATTENTION_SPARSE = "attention-sparse"
    INDEXER_LEFT_OUT = "indexer-left-out"
    ATTENTION_ACROSS_DOCUMENTS = "attention-across-documents"
    VISION_LEFT_OUT = "vision-left-out"
    HEAD_LEFT_OUT = "head-left-out"
    WIDTH_ASSUMED = "width-assumed"
    ALL_EXPERTS_COUNTED = "all-experts-counted"
    BALANCE_ASSUMED = "balance-assumed"
    PREDICTION_LAYERS_COUNTED = "prediction-layers-counted"
    TOKENS_ASSUMED = "tokens-assumed"
    BACKWARD_ASSUMED = "backward-assumed"
    RECOMPUTATION_ASSUMED = "recomputation-assumed"
    FROZEN_NOT_DISCOUNTED = "frozen-not-discounted"
    NON_MAC_DOUBLED = "non-mac-doubled"
    FORMULA_DIFFERS = "formula-differs"
    FIRST_ADD = "first-add"
    WEIGHT_DIFFERS = "weight-differs"
    OUTSIDE_CONVENTION = "outside-convention"
    RUN_STATS_TRUNCATED = "run-stats-truncated"
    FLOAT32_ROUNDING = "float32-rounding"
    AVERAGED_OVER_BATCH = "averaged-over-batch"
    OWN_BATCH = "own-batch"
    REPLICATED = "replicated"
    RECOMPUTED = "recomputed"
    PADDED_SHARD = "padded-shard"
    EXPERT_CAPACITY = "expert-capacity"
    ADDED_BETWEEN_RANKS = "added-between-ranks"
    MICRO_BATCHES = "micro-batches"
    ATTENTION_IN_BLOCKS = "attention-in-blocks"
    REAL_WORK_DIFFERS = "real-work-differs"
    COMPILER_REWROTE = "compiler-rewrote"
    IMPLEMENTATION_DIFFERS = "implementation-differs"

    @property
    def meaning(self) -> str:
        """One sentence for reports."""
        return _MEANING[self]


_MEANING = {
    Cause.DEAD_OP: "The counter counts an op that no output depends on.",
    Cause.UNTAKEN_BRANCH: "The counter counts a branch that did not run.",
    Cause.INITIALIZER: "The counter counts the making of the weights as if it were inference.",
    Cause.DUPLICATE_GRAPH: "The model stands in the graph a second time and is counted again.",
    Cause.INTEGER_OP: "The counter counts integer bookkeeping (loop counters, shapes) as floating-point work.",
    Cause.BODY_NOT_ENTERED: "The counter sees a call (While, If, PartitionedCall) and does not look inside.",
    Cause.SHAPE_UNKNOWN: "The counter knows the op but not its shapes, and silently counts 0.",
    Cause.OP_NOT_COUNTED: "The counter has no formula for this op, or ignores it.",
    Cause.PADDING_NOT_COUNTED: "The counter leaves out the products of a kernel with padding, which the model runs.",
    Cause.CALL_NOT_SEEN: "The work runs where the counter's hooks do not reach: a functional call, a subclass, a fused kernel.",
    Cause.LOOP_COUNTED_ONCE: "A loop body is counted once, whatever the number of iterations.",
    Cause.RECOUNTED: "One execution is counted several times (a shared module, a container).",
    Cause.GLOBAL_SHAPE: "The counter counts the product of whole tensors on every rank; each rank multiplied its part of them.",
    Cause.LOCAL_PARAMETERS: "The formula counts the part of a parameter that this rank has; the rank multiplied by all of it.",
    Cause.TILE_PADDING: "A kernel multiplies whole tiles; what its tiles have beyond the tensors is padding.",
    Cause.SCORES_AGAIN: "The backward kernel of attention multiplies queries and keys once more, where the gradient needs them.",
    Cause.SPLIT_PRECISION: "The kernel makes one product of float32 out of several of a shorter type.",
    Cause.BLOCKS_SKIPPED: "A kernel or a ring of ranks leaves out blocks of scores that the mask discards whole; others do not.",
    Cause.EXTRAPOLATED: "The counter ran a smaller input and multiplied by the area; this does not grow with the area.",
    Cause.LOOKUP_AS_PRODUCT: "The formula counts a table from which rows are looked up as if it were multiplied.",
    Cause.PARAMETERS_AS_PRODUCTS: "The formula counts parameters that stand in no product (norms, biases) as if they did.",
    Cause.PARAMETERS_NOT_READ: "The formula counts parameters that no op of the step reads.",
    Cause.ATTENTION_LEFT_OUT: "The formula has no term for the products of attention, which read no weight.",
    Cause.ATTENTION_HALVED: "The formula counts attention on half the pairs, T^2 / 2 or T (T + 1) / 2; products on all T^2 ran.",
    Cause.ATTENTION_WINDOWED: "The formula counts the keys in a window, products on all keys ran; or the other way around.",
    Cause.ATTENTION_SPARSE: "The formula counts the keys that an indexer chooses; products on all keys ran.",
    Cause.INDEXER_LEFT_OUT: "The formula has no term for the indexer, which scores all keys and chooses those of attention.",
    Cause.ATTENTION_ACROSS_DOCUMENTS: "The formula counts one sequence; documents packed into it see only themselves.",
    Cause.VISION_LEFT_OUT: "The formula has no term for the encoder of images beside the language model.",
    Cause.HEAD_LEFT_OUT: "The formula has no term for the product that turns states into logits.",
    Cause.WIDTH_ASSUMED: "The formula takes the heads together to be as wide as the model; this model's are not.",
    Cause.ALL_EXPERTS_COUNTED: "The formula counts every expert for every token; each token ran through some of them.",
    Cause.BALANCE_ASSUMED: "The formula gives every expert the same share of the tokens; the router gave this one more or fewer.",
    Cause.PREDICTION_LAYERS_COUNTED: "The formula counts layers that predict further tokens; the model that ran has none.",
    Cause.TOKENS_ASSUMED: "The formula multiplies this weight by every token; its product ran for others, such as one per image.",
    Cause.BACKWARD_ASSUMED: "The formula takes the backward pass to be twice the forward pass; this gradient did not run.",
    Cause.RECOMPUTATION_ASSUMED: "The formula adds a forward pass that checkpoints compute again; nothing was computed again.",
    Cause.FROZEN_NOT_DISCOUNTED: "The formula counts gradients of weights that are frozen.",
    Cause.NON_MAC_DOUBLED: "The factor 2 of a MAC is applied to biases, gates and other single operations.",
    Cause.FORMULA_DIFFERS: "The counter's formula for this op differs from the work of the op.",
    Cause.FIRST_ADD: "A dot product of K terms needs K - 1 adds; the counter or the convention takes 2K - 1, the other 2K.",
    Cause.WEIGHT_DIFFERS: "The convention weighs this component otherwise than the counter does.",
    Cause.OUTSIDE_CONVENTION: "The counter counts a component that the convention leaves out.",
    Cause.RUN_STATS_TRUNCATED: "The run statistics stopped before the run did.",
    Cause.FLOAT32_ROUNDING: "The counter adds in float32, which does not hold every whole number above 2^24.",
    Cause.AVERAGED_OVER_BATCH: "The counter divides by the first dimension of the first input, which it takes for the batch.",
    Cause.OWN_BATCH: "Ranks of data parallelism read another batch each; one device reads one.",
    Cause.REPLICATED: "Ranks that share a batch do the whole of this each; one device does it once.",
    Cause.RECOMPUTED: "Activations are computed again in the backward pass; the other side has them once.",
    Cause.PADDED_SHARD: "A dimension is padded so that the ranks share it evenly; one device has no padding.",
    Cause.EXPERT_CAPACITY: "Experts compute a row for each of their places; one device computes one for each choice of a token.",
    Cause.ADDED_BETWEEN_RANKS: "Ranks add what each of them has of a tensor; one device has the whole tensor.",
    Cause.MICRO_BATCHES: "A step cuts its batch, and adds and scales the gradients of the parts; one device has all of it.",
    Cause.ATTENTION_IN_BLOCKS: "Ranks compute attention block by block and merge the blocks; one device computes it at once.",
    Cause.REAL_WORK_DIFFERS: "The two models do different multiply-adds.",
    Cause.COMPILER_REWROTE: "The compiler merged, repeated or removed single operations; its program has others than the model.",
    Cause.IMPLEMENTATION_DIFFERS: "The frameworks compute the same layer by different elementary operations.",
}

ORDER = {cause: index for index, cause in enumerate(Cause)}
