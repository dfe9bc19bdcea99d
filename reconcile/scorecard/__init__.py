"""Every counter on every layer of the zoo's families: the runs, the cells, the pages."""
