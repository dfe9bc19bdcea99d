"""``reconcile matrix``: one model in several environments. The run, its reports and its terminal output."""
