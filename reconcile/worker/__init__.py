"""What runs beside a framework. Python 3.6."""
