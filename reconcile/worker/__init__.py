"""The code that runs beside a framework. Python 3.6."""
