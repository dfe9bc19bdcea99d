"""Two releases of a package, compared layer by layer before you upgrade."""
