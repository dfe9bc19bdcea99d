"""Small models for a sweep, of libraries whose models are made from a configuration (transformers, diffusers).

Each library has a table, one class a line: a configuration as small as the class's own code allows, and inputs for it. A program
outside the package writes these tables (tools/small_models).
"""

OF_CONFIGURATION, HEADLESS = " of the configuration ", "; its class without a head is "
"""What a note has between the class that was made and its configuration, and before the class that has no head."""
