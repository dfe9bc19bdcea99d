"""The models of libraries whose models are functions: their names, and inputs of the size that they were made for.

They run beside the framework, as ``small_models`` does, and need no weights.
"""
