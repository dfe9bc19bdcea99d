"""Reports: pure functions of an ``Answer``. They show the amounts that the engine computed and compute none.

`json` and `csv` are for programs, `markdown` for pull requests, `terminal` for the screen; `reports` makes those asked for.
"""
