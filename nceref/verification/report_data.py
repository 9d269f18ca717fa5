"""The data of a report; `nceref.verification.report` turns them into text and files."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.cases.records import Diagnosis, Result
from nceref.verification.scope import Scope


def options_in(intend: str) -> list[tuple[str, str]]:
    """The options under which a difference is intended, `Diagnosis.intend`, each with its word."""
    words = shlex.split(intend)
    return list(zip(words[::2], words[1::2], strict=True))


@dataclass(frozen=True, eq=False)
class ReportData:
    """The fields of a `Report`, which describes them."""

    target: str
    loss: str
    verdict: str
    exit_code: int
    reason: str
    diagnosis: tuple[Diagnosis, ...] = ()
    results: tuple[Result, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    repro: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    terms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)
    training: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    self_test: tuple[Mapping[str, str], ...] = ()
    command: str = ""
    ranks: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    costs: tuple[tuple[str, Mapping[str, float]], ...] = ()
    limits: tuple[Diagnosis, ...] = ()

    @property
    def shared_by(self) -> str:
        """The word for what has shared each batch, ``ranks`` or ``steps``; empty where one call has all of it."""
        return next((parts for parts in ("ranks", "steps") if self.environment.get(parts)), "")
