"""The engine: computes from traces and ledgers the statements, which explain each counter's total by causes and a residual."""
