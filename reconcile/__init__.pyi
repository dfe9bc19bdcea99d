from .api import run as run
from .api.results import Run as Run
from .core.errors import NotInResult as NotInResult
from .core.errors import PackageMissing as PackageMissing
from .core.errors import ReconcileError as ReconcileError
from .core.errors import UsageError as UsageError
from .products.formula.api import Formula as Formula
from .products.formula.api import polynomials as polynomials
from .products.llm.api import LanguageModel as LanguageModel
from .products.llm.api import llm as llm
from .products.steps.count import Step as Step
from .products.steps.count import count as count

__version__: str
