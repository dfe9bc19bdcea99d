"""Language models: the published formulas of a training step beside the measured count."""
