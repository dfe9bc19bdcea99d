"""Traces and ledgers in, statements out."""
