"""Models of transformers and diffusers from a config.json alone, on the meta device, with inputs, for ``reconcile llm``."""
