"""The format of a pair: one model in several frameworks, meant to be equivalent.

A pair file states ``PAIR = Pair(name, params, ...)`` and defines, as functions of the module, the methods of :class:`Pair`
that its models need: ``inputs(p)``, ``build_torch(p)``, ``build_tf(p)`` (or ``build_keras(p, keras)``, for TensorFlow and
JAX at once) and, so that equivalence can be proved, ``copy_weights(tf_model, torch_model)``.  ``p`` holds the pair's
parameters as attributes.  The constants ``PROOF``, ``TRAINING``, ``NOT_EQUIVALENT`` and ``WITHOUT_EFFECT`` of the module are
the attributes of these names.  A pair file may also define a subclass, and state ``PAIR = ThatSubclass()``.  ``load_pair``
of :mod:`.loading` returns a :class:`Pair` for either.

Python 3.6 and standard library only: pair files are imported inside legacy environments.
"""

from types import MappingProxyType, ModuleType
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..core.records import Layer

__all__ = ["FromModule", "Input", "Layer", "Pair", "PairError", "Params", "Published"]

METHODS = ("inputs", "layers_for", "copy_weights", "arrays_for")
"""The methods that a pair file may define as functions, besides those whose names begin with ``BUILD``."""
BUILD = "build_"
CONSTANTS = ("PROOF", "TRAINING", "NOT_EQUIVALENT", "WITHOUT_EFFECT")
"""The attributes that a pair file may state as constants."""
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


class Input(NamedTuple):
    """One model input: shape with the batch, and dtype (``float32``, ``int64``, ...)."""

    name: str
    shape: Tuple[int, ...]
    dtype: str = "float32"


class Published(NamedTuple):
    """A published figure for this model: its digits as printed, what the source says that it is, and the source."""

    figure: str
    claim: str
    source: str


class PairError(Exception):
    """A pair file or an override that cannot be used; the message is one sentence for the user."""


class Params:
    """Parameters as attributes."""

    def __init__(self, values: Dict[str, Any]) -> None:
        self.__dict__.update(values)

    def replaced(self, **values: Any) -> "Params":
        """The same parameters, some with other values."""
        return Params(dict(self.__dict__, **values))


class Pair:
    """One model in several frameworks, every member with its default. ``p`` are its parameters, as attributes.

    The first group of members is stated by a pair, and the second is computed. The third is for models from a factory or a
    file, which have no pair file.
    """

    name = ""
    """The pair's name in reports. Every pair states it."""
    params = NO_SETTINGS
    """Parameters and their defaults; ``--set`` overrides them, keeping their types."""
    layers: Tuple[Layer, ...] = ()
    """Which layers of one model belong to which of the other; without any, layers are matched automatically."""
    notes: Tuple[str, ...] = ()
    """How the frameworks differ in this model, in sentences."""
    published: Tuple[Published, ...] = ()
    """Published figures for this model."""
    proof = NO_SETTINGS
    """Settings, as in ``--set``, at which the gallery compares the outputs if the defaults are unsuitable."""
    training = NO_SETTINGS
    """Settings that the gallery's training step needs; ``device`` is the device of PyTorch's counters."""
    not_equivalent = ""
    """Why the two models compute different outputs, if they are meant to."""
    without_effect: Tuple[str, ...] = ()
    """Suffixes of the names of weights that change no output."""
    module: Any = None
    """The module of the pair file, which ``load_pair`` sets."""

    def __init__(
        self,
        name: Optional[str] = None,
        params: Optional[Mapping[str, Any]] = None,
        layers: Optional[Sequence[Layer]] = None,
        notes: Optional[Sequence[str]] = None,
        published: Optional[Sequence[Published]] = None,
    ) -> None:
        stated = {"name": name, "params": params, "layers": layers, "notes": notes, "published": published}
        self.__dict__.update((member, value) for member, value in stated.items() if value is not None)

    build_tf: Any = None
    """``build_tf(p)`` returns the TensorFlow model; None if there is none."""
    build_keras: Any = None
    """``build_keras(p, keras)`` returns the model that this Keras makes: it is ``build_tf`` and ``build_jax`` of a pair which
    does not define these itself."""
    build_torch: Any = None
    """``build_torch(p)`` returns the PyTorch model; None if there is none. Any other framework's is ``build_NAME(p)``."""

    def build_tf_session(self, p: Params) -> Any:
        """The TensorFlow model as a published recipe built it into a graph of TensorFlow 1."""
        return self.build_tf(p)

    def builder(self, framework: str) -> Optional[Callable[[Params], Any]]:
        """The method that builds the model of the framework of that name; None if the pair has no such side."""
        return getattr(self, BUILD + framework, None)

    def frameworks(self, known: Sequence[str]) -> Tuple[str, ...]:
        """The frameworks, of these known ones and in their order, in which this pair has a model."""
        return tuple(framework for framework in known if self.builder(framework) is not None)

    def inputs(self, p: Params) -> Sequence[Input]:
        """The inputs of both models, in the order of the call. Every pair defines it."""
        raise PairError(f"{self.name} does not state its inputs: define inputs(p), which returns a list of Input.")

    def layers_for(self, p: Params) -> Sequence[Layer]:
        """The layers at these parameters. Define it if the number of layers depends on the parameters."""
        return self.layers

    def copy_weights(self, tf_model: Any, torch_model: Any) -> None:
        """Give the PyTorch model the TensorFlow model's weights, so that their outputs can be compared."""
        raise PairError(f"{self.name} does not copy weights: define copy_weights(tf_model, torch_model).")

    def arrays_for(self, weights: Mapping[str, Any], p: Params) -> Mapping[str, Any]:
        """The weights of the JAX model, by path, from those of the TensorFlow model. A pair whose JAX model is no Keras model
        defines it; each weight of the JAX model is named once."""
        raise PairError(f"{self.name} does not copy weights to JAX: define arrays_for(weights, p).")

    targets: Any = None
    """(y,) if the factory of a compiled Keras model gives ``y`` for its training step, (None,) if it says that there is none."""

    here = False
    """Whether the model is the caller's own, in their own process, which goes on after us; ``model`` is then what they gave."""

    user_model = False
    """Whether a user's factory or file makes the model. Its arguments may then have any structure, and its layers may make
    their weights at the first call."""

    def ready(self, lacking: str, doing: Callable[[str], None]) -> None:
        """Prepare for the first model. ``lacking`` is the error if the framework's package is not installed, and ``doing`` is
        told which of the user's code is about to run, and '' when that is done.
        """

    def arguments(self, p: Params) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Positional and named arguments of one call of the model that was built last."""
        return tuple(self.inputs(p)), {}

    def called_notes(self, inputs: Callable[[], str]) -> Tuple[str, ...]:
        """Notes for the report on how the model was made, and called with these inputs."""
        return ()

    def tried(self, call: Callable[[], Any], inputs: Callable[[], str]) -> None:
        """Call the model without any counter. Raises FactoryError if the user has to correct the model."""

    def may_run(self, trace: Any) -> None:
        """Raise FactoryError if a counter that runs the model would never finish."""


class FromModule(Pair):
    """A pair file that states a bare ``PAIR`` and defines functions: they are the methods, its constants the attributes."""

    def __init__(self, module: ModuleType) -> None:
        stated = module.PAIR
        super().__init__(stated.name, stated.params, stated.layers, stated.notes, stated.published)
        members = vars(module)
        self.__dict__.update(
            (name, value) for name, value in members.items() if name in METHODS or name.startswith(BUILD)
        )
        self.__dict__.update((name.lower(), members[name]) for name in CONSTANTS if name in members)
