"""Settings of torch's that change no result here: every algorithm is deterministic, and NumPy has its own threads."""

from __future__ import annotations

from typing import Any


class _Settings:
    deterministic = False
    threads = 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Say that algorithms must be deterministic, as all are."""
    _Settings.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` was told."""
    return _Settings.deterministic


def set_num_threads(int: Any) -> None:
    """Say how many threads are wanted; NumPy's own settings decide."""
    _Settings.threads = int


def get_num_threads() -> int:
    """What ``set_num_threads`` was told."""
    return _Settings.threads
