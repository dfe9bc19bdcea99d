"""One model in several environments: the run, its reports, its terminal."""
