"""Causes: the closed list of named reasons why two FLOP counts may differ, in the order in which they are tried (booked).

An entry of a ledger (or one component of its work) is booked whole to the first cause that holds. ``State`` is here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(str, Enum):
    """The state of a trace, a ledger or a statement. Unknown is a state, never None, NaN or 0."""

    EQUAL = "equal"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    NOT_COMPARABLE = "not_comparable"
    FAILED = "failed"
    SKIPPED = "skipped"


class Setting(Enum):
    """Where a cause arises; each value says between what."""

    MODEL = "a counter and one model, which one process runs"
    TWO_MODELS = "the traces of two models"
    FORMULA = "a formula, which runs nothing, and a model"
    COMPILER = "a compiler's count of its own program and a model"
    RANKS = "processes that share a model and one that has all of it"
    KERNELS = "what a GPU counts by itself and a trace"


class Effect(Enum):
    """How a counter's count of multiply-adds treats the work of a cause."""

    LEFT_OUT = "It ran, and the counter leaves it out."
    NEVER_RAN = "It did not run, and the counter counts it."
    OTHERWISE = "The counter counts a wrong number of it: a formula, a weight, a repetition."


@dataclass(frozen=True, slots=True)
class CauseRecord:
    """All that is stated of a cause. Code, the JSON schema, lists, ``docs/`` and tests read it from here.

    Attributes:
        name: Its name in reports, commands and addresses of pages; ``reconcile/pages/causes/NAME.md`` is its page.
        meaning: One sentence for reports. It ends in a full stop.
        setting: Where it arises. Outside of ``MODEL``, no model that runs in one process shows it.
        effect: What its work is to a counter's count: the scorecard tells a counter that is blind to some work from one that
            counts it wrongly.
        not_shown: What the tool would need to book it for the program on its page, if the setting is ``MODEL`` and a run of one
            model does not have that; '' if the tool books it.
    """

    name: str
    meaning: str
    setting: Setting = Setting.MODEL
    effect: Effect = Effect.OTHERWISE
    not_shown: str = ""


class Cause(str, Enum):
    """The causes, each with its record. They stand in booking order; the value is the name used everywhere."""

    _value_: str
    record: CauseRecord

    def __new__(cls, record: CauseRecord) -> Cause:
        """The member of this record."""
        member = str.__new__(cls, record.name)
        member._value_ = record.name
        member.record = record
        return member

    DEAD_OP = CauseRecord("dead-op", "The counter counts an op that no output depends on.", effect=Effect.NEVER_RAN)
    UNTAKEN_BRANCH = CauseRecord(
        "untaken-branch", "The counter counts a branch that did not run.", effect=Effect.NEVER_RAN
    )
    INITIALIZER = CauseRecord(
        "initializer",
        "The counter counts the making of the weights as if it were inference.",
        effect=Effect.NEVER_RAN,
        not_shown="a graph of TensorFlow 1",
    )
    DUPLICATE_GRAPH = CauseRecord(
        "duplicate-graph",
        "The model stands in the graph a second time and is counted again.",
        effect=Effect.NEVER_RAN,
        not_shown="a graph of TensorFlow 1",
    )
    INTEGER_OP = CauseRecord(
        "integer-op",
        "The counter counts integer bookkeeping (loop counters, shapes) as floating-point work.",
        effect=Effect.NEVER_RAN,
    )
    BODY_NOT_ENTERED = CauseRecord(
        "body-not-entered",
        "The counter sees a call (While, If, PartitionedCall) and does not look inside.",
        effect=Effect.LEFT_OUT,
    )
    SHAPE_UNKNOWN = CauseRecord(
        "shape-unknown",
        "The counter knows the op but not its shapes, and silently counts 0.",
        effect=Effect.LEFT_OUT,
        not_shown="an open batch, while a run has inputs",
    )
    OP_NOT_COUNTED = CauseRecord(
        "op-not-counted", "The counter has no formula for this op, or ignores it.", effect=Effect.LEFT_OUT
    )
    PADDING_NOT_COUNTED = CauseRecord(
        "padding-not-counted",
        "The counter leaves out the products of a kernel with padding, which the model runs.",
        Setting.COMPILER,
    )
    CALL_NOT_SEEN = CauseRecord(
        "call-not-seen",
        "The work runs where the counter's hooks do not reach: a functional call, a subclass, a fused kernel.",
        effect=Effect.LEFT_OUT,
    )
    LOOP_COUNTED_ONCE = CauseRecord(
        "loop-counted-once", "A loop body is counted once, whatever the number of iterations.", effect=Effect.LEFT_OUT
    )
    RECOUNTED = CauseRecord("recounted", "One execution is counted several times (a shared module, a container).")
    GLOBAL_SHAPE = CauseRecord(
        "global-shape",
        "The counter counts the product of whole tensors on every rank; each rank multiplied its part of them.",
        Setting.RANKS,
    )
    LOCAL_PARAMETERS = CauseRecord(
        "local-parameters",
        "The formula counts the part of a parameter that this rank has; the rank multiplied by all of it.",
        Setting.RANKS,
    )
    TILE_PADDING = CauseRecord(
        "tile-padding",
        "A kernel multiplies whole tiles; what its tiles have beyond the tensors is padding.",
        Setting.KERNELS,
    )
    SCORES_AGAIN = CauseRecord(
        "scores-again",
        "The backward kernel of attention multiplies queries and keys once more, where the gradient needs them.",
        Setting.KERNELS,
    )
    SPLIT_PRECISION = CauseRecord(
        "split-precision", "The kernel makes one product of float32 out of several of a shorter type.", Setting.KERNELS
    )
    BLOCKS_SKIPPED = CauseRecord(
        "blocks-skipped",
        "A kernel or a ring of ranks leaves out blocks of scores that the mask discards whole; others do not.",
        Setting.KERNELS,
    )
    EXTRAPOLATED = CauseRecord(
        "extrapolated",
        "The counter ran a smaller input and multiplied by the area; this does not grow with the area.",
        not_shown="no model is left",
    )
    LOOKUP_AS_PRODUCT = CauseRecord(
        "lookup-as-product",
        "The formula counts a table from which rows are looked up as if it were multiplied.",
        Setting.FORMULA,
    )
    PARAMETERS_AS_PRODUCTS = CauseRecord(
        "parameters-as-products",
        "The formula counts parameters that stand in no product (norms, biases) as if they did.",
        Setting.FORMULA,
    )
    PARAMETERS_NOT_READ = CauseRecord(
        "parameters-not-read", "The formula counts parameters that no op of the step reads.", Setting.FORMULA
    )
    ATTENTION_LEFT_OUT = CauseRecord(
        "attention-left-out",
        "The formula has no term for the products of attention, which read no weight.",
        Setting.FORMULA,
    )
    ATTENTION_HALVED = CauseRecord(
        "attention-halved",
        "The formula counts attention on half the pairs, T^2 / 2 or T (T + 1) / 2; products on all T^2 ran.",
        Setting.FORMULA,
    )
    ATTENTION_WINDOWED = CauseRecord(
        "attention-windowed",
        "The formula counts the keys in a window, products on all keys ran; or the other way around.",
        Setting.FORMULA,
    )
    ATTENTION_SPARSE = CauseRecord(
        "attention-sparse",
        "The formula counts the keys that an indexer chooses; products on all keys ran.",
        Setting.FORMULA,
    )
    INDEXER_LEFT_OUT = CauseRecord(
        "indexer-left-out",
        "The formula has no term for the indexer, which scores all keys and chooses those of attention.",
        Setting.FORMULA,
    )
    ATTENTION_ACROSS_DOCUMENTS = CauseRecord(
        "attention-across-documents",
        "The formula counts one sequence; documents packed into it see only themselves.",
        Setting.FORMULA,
    )
    VISION_LEFT_OUT = CauseRecord(
        "vision-left-out",
        "The formula has no term for the encoder of images beside the language model.",
        Setting.FORMULA,
    )
    HEAD_LEFT_OUT = CauseRecord(
        "head-left-out", "The formula has no term for the product that turns states into logits.", Setting.FORMULA
    )
    WIDTH_ASSUMED = CauseRecord(
        "width-assumed",
        "The formula takes the heads together to be as wide as the model; this model's are not.",
        Setting.FORMULA,
    )
    ALL_EXPERTS_COUNTED = CauseRecord(
        "all-experts-counted",
        "The formula counts every expert for every token; each token ran through some of them.",
        Setting.FORMULA,
    )
    BALANCE_ASSUMED = CauseRecord(
        "balance-assumed",
        "The formula gives every expert the same share of the tokens; the router gave this one more or fewer.",
        Setting.FORMULA,
    )
    PREDICTION_LAYERS_COUNTED = CauseRecord(
        "prediction-layers-counted",
        "The formula counts layers that predict further tokens; the model that ran has none.",
        Setting.FORMULA,
    )
    TOKENS_ASSUMED = CauseRecord(
        "tokens-assumed",
        "The formula multiplies this weight by every token; its product ran for others, such as one per image.",
        Setting.FORMULA,
    )
    BACKWARD_ASSUMED = CauseRecord(
        "backward-assumed",
        "The formula takes the backward pass to be twice the forward pass; this gradient did not run.",
        Setting.FORMULA,
    )
    RECOMPUTATION_ASSUMED = CauseRecord(
        "recomputation-assumed",
        "The formula adds a forward pass that checkpoints compute again; nothing was computed again.",
        Setting.FORMULA,
    )
    FROZEN_NOT_DISCOUNTED = CauseRecord(
        "frozen-not-discounted", "The formula counts gradients of weights that are frozen.", Setting.FORMULA
    )
    NON_MAC_DOUBLED = CauseRecord(
        "non-mac-doubled", "The factor 2 of a MAC is applied to biases, gates and other single operations."
    )
    FORMULA_DIFFERS = CauseRecord(
        "formula-differs", "The counter's formula for this op differs from the work of the op."
    )
    FIRST_ADD = CauseRecord(
        "first-add",
        "A dot product of K terms needs K - 1 adds; the counter or the convention takes 2K - 1, the other 2K.",
        effect=Effect.LEFT_OUT,
    )
    WEIGHT_DIFFERS = CauseRecord(
        "weight-differs",
        "The convention weighs this component otherwise than the counter does.",
        not_shown="a convention of one's own",
    )
    OUTSIDE_CONVENTION = CauseRecord(
        "outside-convention", "The counter counts a component that the convention leaves out."
    )
    RUN_STATS_TRUNCATED = CauseRecord(
        "run-stats-truncated",
        "The run statistics stopped before the run did.",
        effect=Effect.LEFT_OUT,
        not_shown="2^20 records, which take a minute",
    )
    FLOAT32_ROUNDING = CauseRecord(
        "float32-rounding",
        "The counter adds in float32, which does not hold every whole number above 2^24.",
        not_shown="an old release of a counter",
    )
    AVERAGED_OVER_BATCH = CauseRecord(
        "averaged-over-batch",
        "The counter divides by the first dimension of the first input, which it takes for the batch.",
        not_shown="a counter that runs only if it is named",
    )
    OWN_BATCH = CauseRecord(
        "own-batch", "Ranks of data parallelism read another batch each; one device reads one.", Setting.RANKS
    )
    REPLICATED = CauseRecord(
        "replicated", "Ranks that share a batch do the whole of this each; one device does it once.", Setting.RANKS
    )
    RECOMPUTED = CauseRecord(
        "recomputed",
        "Activations are computed again in the backward pass; the other side has them once.",
        Setting.RANKS,
    )
    PADDED_SHARD = CauseRecord(
        "padded-shard",
        "A dimension is padded so that the ranks share it evenly; one device has no padding.",
        Setting.RANKS,
    )
    EXPERT_CAPACITY = CauseRecord(
        "expert-capacity",
        "Experts compute a row for each of their places; one device computes one for each choice of a token.",
        Setting.RANKS,
    )
    ADDED_BETWEEN_RANKS = CauseRecord(
        "added-between-ranks",
        "Ranks add what each of them has of a tensor; one device has the whole tensor.",
        Setting.RANKS,
    )
    MICRO_BATCHES = CauseRecord(
        "micro-batches",
        "A step cuts its batch, and adds and scales the gradients of the parts; one device has all of it.",
        Setting.RANKS,
    )
    ATTENTION_IN_BLOCKS = CauseRecord(
        "attention-in-blocks",
        "Ranks compute attention block by block and merge the blocks; one device computes it at once.",
        Setting.RANKS,
    )
    REAL_WORK_DIFFERS = CauseRecord(
        "real-work-differs", "The two models do different multiply-adds.", Setting.TWO_MODELS
    )
    COMPILER_REWROTE = CauseRecord(
        "compiler-rewrote",
        "The compiler merged, repeated or removed single operations; its program has others than the model.",
        Setting.COMPILER,
    )
    IMPLEMENTATION_DIFFERS = CauseRecord(
        "implementation-differs",
        "The frameworks compute the same layer by different elementary operations.",
        Setting.TWO_MODELS,
    )

    @property
    def meaning(self) -> str:
        """One sentence for reports."""
        return self.record.meaning


ORDER = {cause: index for index, cause in enumerate(Cause)}
"""The position of each cause in the booking order, from 0."""

CAUSES = {cause.value: cause for cause in Cause}
"""Every cause by its name."""
