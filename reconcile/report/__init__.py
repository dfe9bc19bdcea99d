"""Reports: pure functions of a RunResult. They show the amounts that the engine computed and compute none.

`json` and `csv` are for programs, `markdown` for pull requests, `terminal` for the screen; `write` puts files on disk.
"""
