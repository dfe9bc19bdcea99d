from .api import polynomials as polynomials
from .api import run as run
from .api.language import LanguageModel as LanguageModel
from .api.language import llm as llm
from .api.results import Formula as Formula
from .api.results import Run as Run
from .core.errors import NotInResult as NotInResult
from .core.errors import PackageMissing as PackageMissing
from .core.errors import ReconcileError as ReconcileError
from .core.errors import UsageError as UsageError
from .steps.count import Step as Step
from .steps.count import count as count

__version__: str
