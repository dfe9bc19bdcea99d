"""Counters in the environments that they need, on small networks: what each reports, what ran, and the causes between the two."""

from __future__ import annotations

import pytest

import reconcile
from reconcile.core.causes import Cause, State
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from tests.adapters.counters.in_environment import closes, settled

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks]

FIRST, OUTSIDE, DIFFERS = Cause.FIRST_ADD, Cause.OUTSIDE_CONVENTION, Cause.FORMULA_DIFFERS
MISSED, UNSEEN, ONCE = Cause.OP_NOT_COUNTED, Cause.CALL_NOT_SEEN, Cause.LOOP_COUNTED_ONCE
EXTRAPOLATED = Cause.EXTRAPOLATED

DENSE = 4 * 3
"""Products of a linear layer from 3 to 4, of each row."""
ENCODER = 5 * 2 * (4 * 4 * 4 + 2 * 4 * 8) + 2 * 5 * 5 * 2 * 4
"""Four projections and two linear layers of 5 tokens, and both products of 2 heads of 2."""

WIDE = 10 * 6 * 3 * 2
"""Of each of 10 positions of the output 6 channels, which take 3 channels x 2: 5 positions of the input have these products."""
LINEAR = 4 * 5 * 4 * (2 * 4 - 1 + 1)
SCORES, OUT = 2 * 5 * 5, 5 * 4
ATTENTION = LINEAR + SCORES * (2 * 2 - 1) + OUT * (2 * 5 - 1) + (1 + OUT) + (3 * SCORES - 2 * 5) + 2 * SCORES
"""Four projections with biases, both products, the scale, the softmax, a mask and a mean over heads."""
ATTENDED = 4 * 2 * 5 * 4 * 4 + 2 * 2 * SCORES * 2
BESIDE = 2 * 2 * DENSE + 2 * 2 * 5 * 4

OUTPUTS = 4 * 7 * 5
"""Of a convolution of 3 x 3 on 4 channels, of one sample."""
INPUTS = 6 * 5 * 4
"""Of a transposed convolution of 2 x 2, each of which meets 4 / 2 channels."""
REUSED = 2 * 2 * (3 * OUTPUTS * 4 * 9 + 4 * 7 * 5 * 6)

PROJECTIONS = 2 * 10 * 4 * (3 * 4 + 4)
"""Of attention 4 wide on 2 x 5 positions."""

LENET_OUT = (6 * 28 * 28, 16 * 10 * 10)
LENET = LENET_OUT[0] * 3 * 3 + LENET_OUT[1] * 6 * 5 * 5
LENET_LINEAR = 400 * 120 + 120 * 84 + 84 * 10
STRIDED = 6 * 10 * 6
"""Outputs of a transposed convolution of 2 x 2 and stride 2, each of which one of 4 x (5 x 3) inputs reaches by channel."""
GRU = 2 * 5 * 3 * 4 * (3 + 4)
"""Multiply-adds of a GRU of 4 units on 3 inputs, for 2 samples of 5 steps: 3 gates."""

STEP, GATES = 3 * 4 * (3 + 4), 7 * 4
"""Of a GRU from 3 to 4: multiply-adds of a step, and what ultralytics-thop adds for it."""
HEADS = 2 * (4 * 5 * 8 * 8 + 2 * 5 * 5 * 8)
"""Four projections and two products of 5 positions of width 8, twice."""
SOFTMAX = 2 * 4 * 5 * (3 * 5 - 1)
AREA = 64 * 128
CONV = AREA // 4 * 4 * 3 * 3 * 3
"""Half as high and half as wide: 4 channels of 3 x 3 x 3 products each."""

CLOSED = {
    # counter: network: (what it reports in its unit, FLOPs of the products that ran, causes)
    "mmengine": {
        "vectors": (2 * 3 + 2 * 3 + 3, 2 * (2 * 3 + 2 * 3 + 3), set()),  # at which fvcore stops
        "same": (0, 2 * 4 * 5 * 3 * 3, {MISSED}),
    },
    "pthflops": {
        "biased": (2 * DENSE + 4 + 2 * 8, 2 * 2 * DENSE, {OUTSIDE}),
        # 10 positions of the output instead of 5 of the input
        "turned": (10 * 2 * 6 * 3, 2 * 5 * 2 * 6 * 3, {DIFFERS}),
        "two": (2 * DENSE + 4 + 2 * 8, 2 * 2 * DENSE, {OUTSIDE}),
    },
    "torchprofile": {
        "some_products": (2 * 3, 2 * (2 * 3 * 5 + 2 * 3), {MISSED}),
        "in_place": (2 * DENSE + 2 * 4, 2 * 2 * DENSE, {OUTSIDE}),  # one of two activations: 2 rows of 4
        "turned": (10 * 6 * 3 * 2, 2 * 5 * 6 * 3 * 2, {DIFFERS}),
    },
    "torch_flops": {
        "biased": (2 * 4 * (2 * 3 - 1) + 8 + 8, 2 * 2 * DENSE, {FIRST, OUTSIDE}),
        "numbers": (
            2 * 4 * (2 * 3 - 1) + 1,
            2 * 2 * DENSE,
            {FIRST, Cause.INTEGER_OP},
        ),  # one of the product of two sizes
        "on_weights": (2 * 4 * (2 * 3 - 1) + 8 + 8, 2 * 2 * DENSE, {FIRST, OUTSIDE}),
        "many": (2 * 4 * (2 * 3 - 1) + 8 + 8, 2 * 2 * DENSE, {FIRST, OUTSIDE}),
        # the layer of attention counts nothing; the head takes 2 * 4 - 1 and a bias of each of 5 tokens
        "encoded": (5 * 8, ENCODER + 5 * 8, {MISSED, FIRST, OUTSIDE}),
    },
    "torchscan": {
        "beside": (2 * 4 * (2 * 3 - 1 + 1) + 8, BESIDE, {UNSEEN, FIRST, OUTSIDE}),
        "turned": (8 + 10 * 6 * (2 * 3 * 2 - 1), WIDE, {FIRST, DIFFERS, OUTSIDE}),
        "parametrized": (0, 2 * 2 * DENSE, {MISSED}),
        "masked": (ATTENTION, ATTENDED, {FIRST, OUTSIDE}),
    },
    "torchscan@macs": {
        "beside": (2 * DENSE, BESIDE, {UNSEEN}),
        "turned": (4 + WIDE, WIDE, {DIFFERS, OUTSIDE}),
        "masked": (0, ATTENDED, {MISSED}),
    },
    "torchstat": {
        "reused": (2 * OUTPUTS * (4 * 9 + 1), REUSED, {ONCE, UNSEEN, OUTSIDE}),  # three calls of one layer are its last
        "bilinear": (0, 2 * 2 * 5 * (3 * 4 + 4), {MISSED}),
        "raised": (2 * 10 * 8, 0, {OUTSIDE}),  # and not for each of 6 channels
        "turned_images": (0, 2 * 2 * INPUTS * 2 * 4, {MISSED}),
        "dense": (2 * DENSE, 2 * 2 * DENSE, set()),
        "mine": (2 * 3 * 16 * (3 + 1), 2 * 2 * 3 * 16 * 3, {OUTSIDE}),  # it goes by isinstance
    },
    "torchstat@madd": {
        "reused": (OUTPUTS * (2 * 4 * 9 - 1 + 1), REUSED, {ONCE, UNSEEN, FIRST, OUTSIDE, DIFFERS}),
        "bilinear": (5 * (2 * (3 * 4 + 4) - 1), 2 * 2 * 5 * (3 * 4 + 4), {FIRST, DIFFERS}),
        "raised": (0, 0, set()),
        "turned_images": (5 * 4 * 4 * (2 * 3 * 4 - 1 + 1), 2 * 2 * INPUTS * 2 * 4, {FIRST, DIFFERS, OUTSIDE}),
        "dense": (4 * (2 * 3 - 1), 2 * 2 * DENSE, {FIRST, DIFFERS}),
    },
    "xformers": {
        "broadcast": (3, 0, {OUTSIDE}),
        "of_whole_numbers": (0, 0, set()),  # torch.profiler counts 6 here
        "products_of_whole_numbers": (0, 2 * 24, {MISSED}),
        "half": (2 * 24, 2 * 24, set()),  # of bfloat16
        "attends": (6 * 400, 6 * 400, set()),
        "causal": (6 * 200, 6 * 400, {DIFFERS}),
        # 2 queries, 5 keys: 2 * 2 * 3 * 4 + 2 * 3 * 3 * 4 of the keys before, and half of 2 * 2 * 2 * 8
        "causal_of_more": (6 * (48 + 72 + 32), 6 * 2 * 2 * 5 * 8, {DIFFERS}),
        "causal_of_one": (5 * 5 * 7, 2 * 5 * 5 * 7, {DIFFERS, OUTSIDE}),
        "grouped": (6 * 400, 12 * 400, {DIFFERS}),
        "wide": (6 * 2 * 25 * 11, 6 * 2 * 25 * 11, set()),
        # the scores of 2 heads of 2, scaled before their product
        "in_inference": (PROJECTIONS + 2 * 2 * 2 * 25 * 4 + 2 * 5 * 4, PROJECTIONS + 2 * 2 * 2 * 25 * 4, {OUTSIDE}),
    },
    "paddle": {
        # its linear layers are functions
        "lenet": (LENET + sum(LENET_OUT), 2 * (LENET + LENET_LINEAR), {UNSEEN, OUTSIDE}),
        "reused": (3 * 2 * OUTPUTS * (4 * 9 + 1), 2 * (3 * 2 * OUTPUTS * 4 * 9 + 2 * OUTPUTS * 6), {UNSEEN, OUTSIDE}),
        "nested": (4 * 7 * 5 * (4 + 4 * 9 + 4), 2 * 4 * 7 * 5 * (4 + 4 * 9 + 4), set()),
        "turned_whole": (STRIDED * (4 * 4 + 1), 2 * (4 * 5 * 3) * 6 * 4, {DIFFERS, OUTSIDE}),
        # By sample and channel: 3 for each of 10 x 10 elements; 5 x 5 averages; 2 x 2 of windows of 5 // 2, squared, and 1;
        # one of 2 x 2, and 1.
        "elementwise": (2 * 3 * (3 * 10 * 10 + 5 * 5 + 2 * 2 * (2 * 2 + 1) + (2 * 2 + 1)), 0, {OUTSIDE}),
        "batch_first": (0, 2 * GRU, {MISSED}),
    },
    "ultralytics-thop": {
        "twice": (2 * 2 * 3 * 4, 2 * 2 * 2 * 3 * 4, set()),
        "transposed": (4 * 25 * 3 * 9, 2 * 4 * 25 * 3 * 9, set()),
        "products": (2 * 2 * 3 * 5, 2 * (3 * 2 * 3 * 5 + 2 * 5), {UNSEEN}),
        "named": (10 * (STEP + GATES), 2 * 10 * STEP, {OUTSIDE}),
        "packed": ((5 + 3 + 1) * (STEP + GATES), 2 * (5 + 3 + 1) * STEP, {OUTSIDE}),
        "doubled": (2 * 3 * 4, 2 * (2 * 2 * 3 * 4 + 2 * 4 * 4), {DIFFERS}),
        "attention": (HEADS + SOFTMAX, 2 * HEADS, {OUTSIDE}),
        "attention_function": (HEADS + SOFTMAX, 2 * HEADS, {OUTSIDE}),
        "like_products": (2 * 2 * 3 * 5, 2 * 2 * 2 * 3 * 5, set()),
        "integers": (2 * 3 * 5, 2 * 2 * 3 * 5, set()),
        "gelu": (2 * 3 * 4, 2 * 2 * 3 * 4, set()),
    },
    "ultralytics-thop@get_flops": {
        # An image of 32 x 32 and 8 times its count, with the last layer's 4 x 5 products 8 times.
        "images": (CONV + 8 * 4 * 5, 2 * (CONV + 4 * 5), {EXTRAPOLATED}),
        # An image of 64 x 64, the largest stride, and twice its count.
        "with_stride": (CONV + 2 * 4 * 5, 2 * (CONV + 4 * 5), {EXTRAPOLATED}),
        # 16 positions at 32 x 32, and 64 at 64 x 64.
        "pixels": (64 * 4 * 192 + 4 * 16 * 16 * 4, 2 * (64 * 4 * 192 + 64 * 64 * 4), {EXTRAPOLATED}),
        "one_size": (64 * 4 * 192 + 256 * 5, 2 * (64 * 4 * 192 + 256 * 5), set()),
    },
}

REASONS = {
    # counter: network: what its own reason says
    "pthflops": {"sized": "takes a tuple"},
    "torch_flops": {
        "without_weights": "it takes the device from the first weight",
        "plain_norm": "'BatchNorm1d' object has no attribute 'elementwise_affine'",
        "branching": "symbolically traced variables cannot be used as inputs to control flow",
    },
    "torchscan": {"whole": "put it into a module"},
    "torchstat": {
        "shrinking": "it keeps the last call of each module, and torch.nn.modules.conv.Conv2d is called on several shapes",
        "of_steps": "compute_madd.py:117",
        "derived": "which calls itself without end",
        "recurrent": "one here returns a tuple",
    },
    "paddle": {
        "paired": "one input of random floats (paddle/hapi/dynamic_flops.py:133), and this model takes 2",
        "tokens": "this model takes no floats",
        "dense": "X2Paddle cannot convert this model (SyntaxError: invalid decimal literal",
        "unknown": "X2Paddle cannot convert this model (it knows no aten::movedim)",
    },
    "ultralytics-thop@get_flops": {"uneven": "not a whole number", "two_images": "one image", "twice": "one image"},
}


def network(counter: str, name: str) -> tuple[str, str, str]:
    """The counter's environment, the counter, and the factory of one of its networks."""
    return counter.partition("@")[0], counter, f"tests.adapters.counters.small_nets:{name}"


@pytest.mark.parametrize(("counter", "name"), [(counter, name) for counter, nets in CLOSED.items() for name in nets])
def test_it_reports_what_the_rules_say_and_closes(counter: str, name: str) -> None:
    closes(*network(counter, name), CLOSED[counter][name])


@pytest.mark.parametrize(("counter", "name"), [(counter, name) for counter, nets in REASONS.items() for name in nets])
def test_a_model_that_it_cannot_count_has_its_reason(counter: str, name: str) -> None:
    ledger, _ = settled(*network(counter, name))
    assert ledger.state is State.NOT_COMPARABLE
    assert REASONS[counter][name] in ledger.reason


@pytest.mark.parametrize("convention", ["all", "textbook"])
@pytest.mark.parametrize("name", ["products", "like_products", "attention_function"])
def test_ultralytics_closes_under_every_convention(name: str, convention: str) -> None:
    environment, counter, factory = network("ultralytics-thop", name)
    python = str(ensure(load()[environment]))
    run = reconcile.run(torch=factory, python=python, counters=(counter,), convention=convention)
    assert [statement.residual for statement in run.result.statements] == [0]
