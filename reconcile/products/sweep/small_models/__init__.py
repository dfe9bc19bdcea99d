"""Small models for a sweep, of libraries whose models are made from a configuration (transformers, diffusers).

Each library has a table, one class a line: a configuration as small as the class's own code allows, and inputs for it. A program
outside the package writes these tables (tools/small_models).
"""
