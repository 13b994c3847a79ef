"""Torch's GPUs, of which there are none here."""

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Whether there is a GPU: no."""
    return False


def device_count() -> int:
    """How many GPUs there are: none."""
    return 0
