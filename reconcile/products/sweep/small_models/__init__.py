"""Small models for a sweep, of libraries whose models are made from a configuration (transformers, diffusers).

Each is the smallest that the model's own code allows, with inputs for it.
"""
