"""Models of a configuration alone: made on meta, with inputs of the sizes that it states."""
