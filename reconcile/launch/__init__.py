"""The parent process ("home"): makes a request from options, runs workers, and collects their traces and ledgers."""
