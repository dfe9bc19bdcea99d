"""One rank of a program that many processes share, on a process group that sends nothing."""
