"""Home's side of the processes: who starts a worker, watches it and collects what it found."""
