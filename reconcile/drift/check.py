"""``reconcile check`` and ``flops.check``: compare a fresh run with a baseline, or two saved files; save a new baseline."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.atomic import safe
from ..core.causes import State
from ..core.conventions import conventions_of
from ..core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, UsageError, brief
from ..core.registry import known_counters
from ..engine.reconcile import Missing
from ..engine.settle import Collected, without_absent
from ..launch.choose import checked_pair_path, formulas_of
from ..launch.request import RunRequest
from ..launch.runner import collect
from ..launch.workers.supervisor import Event
from .baselines import CURRENT, Baseline, check_comparable, describe_pass, load, load_any, save, versions
from .changes import Drift
from .compare import compare


class NoBaseline(UsageError):
    """There is no baseline to compare with yet."""


Collect = Callable[[RunRequest, Callable[[Event], None]], Collected]


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check. ``drift`` is None if there was no baseline yet; ``written`` tells whether the file was written,
    ``kept`` where the baseline of the older versions is now; ``failed`` lists counters and tracers that failed in this run.
    """

    path: Path
    collected: Collected
    drift: Drift | None
    failed: tuple[Missing, ...]
    written: bool = False
    kept: Path | None = None

    @property
    def exit_code(self) -> int:
        """0 unchanged or accepted, 1 moved, 3 something failed to run."""
        if self.written:
            return EXIT_OK
        if self.drift is not None and self.drift.has_moved:
            return EXIT_UNEXPLAINED
        return EXIT_FAILED if self.failed or (self.drift is not None and self.drift.failed) else EXIT_OK

    @property
    def versions(self) -> dict[str, str]:
        """Versions of this run."""
        return versions(self.collected)


def check(
    request: RunRequest,
    path: Path,
    *,
    remedy: str,
    environment: str = CURRENT,
    update: bool = False,
    progress: Callable[[Event], None] = lambda _event: None,
    take: Collect | None = None,
) -> Checked:
    """Run a model and compare it with the baseline at ``path``; with ``update``, accept the results of the run.

    ``remedy`` says how to take a baseline if there is none; ``take`` runs the request in place of the runner's ``collect``.
    An environment without a baseline of its own is compared with the baseline of the current environment: this shows what an
    upgrade changes.
    Without counters in the request, those of the baseline run; with ``update``, all of them.
    Nothing is written if a counter failed or nothing differs.  Raises UsageError for a baseline that is
    missing, damaged, newer or another model's, and wherever the runner raises it.
    """
    # an unknown name is reported before a missing baseline
    convention = conventions_of(request.convention, request.convention_files).chosen
    current = None if update else _find_current_baseline(path, environment)
    path = current or path
    old = load(path) if update and os.path.lexists(path) else None if update else _read_existing(request, path, remedy)
    request = replace(request, counters=_choose_counters(request, old, path, update))
    with formulas_of(request):
        asked = request.counters or (old.counters if old is not None else ())
        collected = without_absent((take or collect)(request, progress), asked)
        if old is not None:
            check_comparable(old, path, collected, params=not update)
        drift = (
            compare(_keep_requested(old.collected, request.counters), collected, convention)
            if old is not None
            else None
        )
    if old is not None and drift is not None and current is not None:
        drift = replace(
            drift, notes=(OF_CURRENT % (environment, ", ".join(map(" ".join, old.versions.items()))), *drift.notes)
        )
    done = Checked(path, collected, drift, find_failed(collected))
    if not update or done.failed or (drift is not None and drift.failed):
        return done
    if old is not None and drift is not None and _is_unchanged(old, drift, collected):
        return replace(done, written=False)
    return replace(done, written=True, kept=save(path, collected, environment))


def compare_files(older: Path, newer: Path, request: RunRequest) -> Drift:
    """The differences between two saved baselines, or two ledgers without traces, under the convention and with the formulas
    of the request. Raises UsageError if they cannot be compared."""
    # an unknown name is reported before errors in the files
    convention = conventions_of(request.convention, request.convention_files).chosen
    old, new = load_any(older), load_any(newer)
    if old.model and new.model and old.model != new.model:
        raise UsageError(f"{older} is of {old.model} and {newer} of {new.model}. Give two files of the same model.")
    if old.model and new.model and describe_pass(old.collected) != describe_pass(new.collected):
        raise UsageError(
            f"{older} is of {describe_pass(old.collected)} and {newer} of {describe_pass(new.collected)}: "
            f"two different amounts of work. Give two files of the same pass and optimizer."
        )
    if not set(old.counters) & set(new.counters):
        raise UsageError(
            f"{older} holds {', '.join(old.counters) or 'no counter'} and {newer} {', '.join(new.counters) or 'none'}; "
            f"no counter is in both. Give two files that share a counter."
        )
    with formulas_of(request):
        return compare(old.collected, new.collected, convention)


def find_failed(collected: Collected) -> tuple[Missing, ...]:
    """The counters and tracers that failed in this run; a framework that is not installed does not count as failed."""
    missing = [r for r in (*collected.traces, *collected.ledgers) if isinstance(r, Missing)]
    return tuple(m for m in missing if m.state is State.FAILED)


OF_CURRENT = "there is no baseline of %s yet: compared with the one of the current environment, taken on %s"


def _find_current_baseline(path: Path, environment: str) -> Path | None:
    """The path of the current environment's baseline, where ``environment`` has none of its own; otherwise None."""
    current = path.with_name(CURRENT + path.suffix)
    is_missing = environment != CURRENT and path.stem == safe(environment) and not os.path.lexists(path)
    return current if is_missing and os.path.lexists(current) else None


def _read_existing(request: RunRequest, path: Path, remedy: str) -> Baseline:
    """The baseline. Raises NoBaseline if it is missing, and UsageError for a name that is no model or a file that is no pair."""
    if not os.path.lexists(path):
        if not request.factories:
            checked_pair_path(request.model)
        raise NoBaseline(f"there is no baseline {brief(path)}. Take one with: {remedy}")
    return load(path)


def _choose_counters(request: RunRequest, old: Baseline | None, path: Path, update: bool) -> tuple[str, ...]:
    """The counters to run. Raises UsageError if the requested counters do not fit the baseline."""
    if old is None:
        return request.counters
    others = [name for name in old.counters if name not in request.counters]
    if update:
        if request.counters and others:
            raise UsageError(
                f"{path} also holds {', '.join(others)}; a baseline is accepted only as a whole. Leave out --counter, "
                f"or name these counters too."
            )
        return request.counters
    absent = [name for name in request.counters if name in known_counters() and name not in old.counters]
    if absent:
        raise UsageError(
            f"{path} holds no ledger of {', '.join(absent)}; it holds {', '.join(old.counters) or 'none at all'}. "
            f"Leave it out, or add it with --update."
        )
    known = tuple(name for name in old.counters if name in known_counters())
    if not known:
        raise UsageError(f"{path} holds no counter that this reconcile knows. Take a new baseline with --update.")
    return request.counters or known


def _keep_requested(collected: Collected, counters: tuple[str, ...]) -> Collected:
    """The records without the ledgers of counters that were not requested."""
    kept = [
        r for r in collected.ledgers if not counters or (r.name if isinstance(r, Missing) else r.counter) in counters
    ]
    return replace(collected, ledgers=tuple(kept))


def _is_unchanged(old: Baseline, drift: Drift, collected: Collected) -> bool:
    """Whether a baseline of this run would hold what the old one does."""
    same_counters = len(drift.counters) == len([r for r in collected.ledgers if not isinstance(r, Missing)])
    same_meta = all(
        old.collected.meta[k] == json.loads(json.dumps(collected.meta[k])) for k in ("params", "layers", "source")
    )
    same_versions = old.versions == versions(collected)
    return not (drift.has_moved or drift.renamed_nodes) and same_counters and same_meta and same_versions
