"""What the frameworks share. Python 3.6."""
