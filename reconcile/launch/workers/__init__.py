"""Worker processes: what starts, supervises, confines and ends them, and the files that they write."""
