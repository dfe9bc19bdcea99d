from .api import Run as Run
from .api import run as run

__version__: str
