"""Code that the adapters of all frameworks share: the base adapter, arguments, Keras, errors. Python 3.6."""
