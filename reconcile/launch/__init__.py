"""Home's side of the processes: starts workers, supervises them, and collects their traces and ledgers."""
