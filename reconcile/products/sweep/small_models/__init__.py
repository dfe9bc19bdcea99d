"""Models of a library that are made from a configuration: the smallest one that a model's code allows, and inputs for it."""
