"""A file per command, loaded when the command is called."""
