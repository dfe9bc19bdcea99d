"""What goes beyond the core: a folder per product, each of which can be taken away (core/product.py)."""
