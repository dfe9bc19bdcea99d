"""Reports: pure functions of an ``Answer``. They show the amounts that the engine computed and compute none.

`json` and `csv` are for programs, `markdown` for pull requests, `page` for browsers, `terminal` for the screen, `notebook` and
`frames` for the Python interface; `reports` makes the files that are asked for.
"""
