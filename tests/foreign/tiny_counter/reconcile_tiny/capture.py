"""Runs tiny."""

from reconcile.adapters.counters.module_calls import module_ledger


def capture(counter, model):
    import tiny

    def run(module, inputs):
        counts = tiny.count(module, inputs)
        return sum(counts.values()), counts

    return module_ledger(counter, "MAC", model, {"tiny": tiny.__version__}, run)
