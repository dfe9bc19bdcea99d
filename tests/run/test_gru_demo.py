"""The main job, from real TensorFlow, real PyTorch and real counters; every expected number from its closed form."""

from __future__ import annotations

from itertools import combinations

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, MATMUL, Conventions
from reconcile.engine.reconcile import End, reconcile_runs
from reconcile.engine.settle import settle
from reconcile.engine.statements import statement_between
from tests.zoo.choice import REPORTED

pytestmark = pytest.mark.frameworks

# The network: Conv2D 4x4 with stride (1, 2) on (1, 1, 100, 256), GRU(96) over 97 steps, Dense(256) on each step.
FILTERS, KERNEL = 32, 4 * 4
STEPS, COLUMNS = 100 - 4 + 1, (256 - 4) // 2 + 1
UNITS, CLASSES, FEATURES = 96, 256, FILTERS * COLUMNS
CONV_BIAS = FILTERS * STEPS * COLUMNS
CONV = 2 * CONV_BIAS * KERNEL
STEP_X, STEP_H = 2 * 3 * UNITS * FEATURES, 2 * 3 * UNITS * UNITS
GRU = STEPS * (STEP_X + STEP_H)
DENSE_BIAS = STEPS * CLASSES
DENSE = 2 * DENSE_BIAS * UNITS
TRUE = CONV + GRU + DENSE
# Keras' GRU step beside its products: BiasAdd 3H, the recurrent bias 3H, 4 gate adds, 3 gate products, 1 - z.
GATES = 3 * UNITS + 3 * UNITS + 4 * UNITS + 3 * UNITS + UNITS
PROBE = STEP_X + STEP_H + GATES  # the step Keras runs once to learn shapes, and throws away
LOOP_INTEGERS = 2 * STEPS + 2 * (STEPS + 1)  # two counters, two comparisons, one comparison more at the end
THOP_GATES = 2 * STEPS * 13 * UNITS  # 3H + 6H bias + H + 3H per step, doubled

NORMALISED = {
    "tf.profiler@function": CONV + CONV_BIAS + PROBE + DENSE + DENSE_BIAS,
    "tf.profiler@frozen": CONV + CONV_BIAS + STEP_X + 3 * UNITS + DENSE + DENSE_BIAS,
    "tf.profiler@runmeta": TRUE + CONV_BIAS + DENSE_BIAS + PROBE + STEPS * GATES + LOOP_INTEGERS,
    "thop": TRUE + THOP_GATES,
    "fvcore": CONV + DENSE,
    "flop_counter": TRUE,
}

TO_TRACE = {
    "tf.profiler@function": {
        Cause.DEAD_OP: -PROBE,
        Cause.BODY_NOT_ENTERED: GRU,
        Cause.OUTSIDE_CONVENTION: -CONV_BIAS - DENSE_BIAS,
    },
    "tf.profiler@frozen": {
        Cause.SHAPE_UNKNOWN: STEPS * STEP_H,
        Cause.LOOP_COUNTED_ONCE: (STEPS - 1) * STEP_X,
        Cause.OUTSIDE_CONVENTION: -CONV_BIAS - DENSE_BIAS - 3 * UNITS,
    },
    "tf.profiler@runmeta": {
        Cause.DEAD_OP: -PROBE,
        Cause.INTEGER_OP: -LOOP_INTEGERS,
        Cause.OUTSIDE_CONVENTION: -CONV_BIAS - DENSE_BIAS - STEPS * GATES,
    },
    "thop": {Cause.OUTSIDE_CONVENTION: -THOP_GATES},
    "fvcore": {Cause.OP_NOT_COUNTED: GRU},
    "flop_counter": {},
}


@pytest.fixture(scope="module")
def collected(collecting):
    return collecting("gru_demo")


def test_closed_forms_are_the_published_numbers():
    """The issue's own digits, so that a slip in a closed form above shows here."""
    assert TRUE == 249_809_920
    assert list(NORMALISED.values()) == [20_198_944, 20_142_592, 252_757_222, 250_052_032, 17_382_400, 249_809_920]


@pytest.mark.skipif(
    not REPORTED, reason="the numbers of the releases in print: Keras 3.16 has the convolution in a function"
)
@pytest.mark.parametrize("counter", NORMALISED)
def test_totals_and_statement_to_the_trace(collected, counter):
    result = settle(collected, Conventions(MATMUL))
    ledger = next(led for led in result.ledgers if led.counter == counter)
    assert ledger.normalised_total == NORMALISED[counter]
    assert (ledger.unchecked, ledger.mismatches) == (0, ())
    assert ledger.checked == len(ledger.entries) > 0
    statement = result.statement(counter, f"trace@{ledger.framework}")
    assert statement.by_cause() == TO_TRACE[counter]
    assert statement.state is (State.EXPLAINED if TO_TRACE[counter] else State.EQUAL)
    assert (statement.to_total, statement.residual) == (TRUE, 0)


@pytest.mark.parametrize("convention", BUILT_IN)
def test_every_statement_has_residual_zero(collected, convention):
    result = settle(collected, Conventions(BUILT_IN[convention]))
    assert len(result.statements) == 6 + 1 + 3 * 3
    for statement in result.statements:
        assert statement.residual == 0, (statement.from_, statement.to, statement.residuals)
        assert statement.from_total + sum(a.amount for a in statement.adjustments) == statement.to_total
    assert result.exit_code == 0


def test_tensorflow_runs_one_product_more_per_gate_step(collected):
    result = settle(collected, Conventions(BUILT_IN["all"]))
    (line,) = result.statement("trace@tf", "trace@torch").adjustments
    assert (line.cause, line.layer, line.op) == (Cause.IMPLEMENTATION_DIFFERS, "gru", "mul")
    assert line.amount == -STEPS * UNITS
    assert sum(id.startswith("tf:") for id in line.evidence[0].ops) == 3


def test_between_two_runs_it_is_the_statement_of_one(collected):
    """What a matrix shows of two environments, of counters whose traces are here those of one run."""
    align = collected.declared_layers
    traces = {trace.framework: trace for trace in collected.traces}
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        for ends in combinations(collected.ledgers, 2):
            found = reconcile_runs(*(End(x.counter, x, traces[x.framework]) for x in ends), align, convention)
            own = statement_between(result, *(x.counter for x in ends))
            assert {(a.cause, a.layer): a.amount for a in found.adjustments} == {
                (a.cause, a.layer): a.amount for a in own.adjustments
            }
            assert (found.residual, own.residual) == (0, 0)
