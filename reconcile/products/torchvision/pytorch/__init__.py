"""Declares torchvision's operators where its compiled library cannot be loaded."""
