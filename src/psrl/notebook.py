"""What a notebook needs besides the science: its scale, and whether a person is there to move a slider."""

import os
from typing import TypeVar

Size = TypeVar("Size")


def scaled(full: Size, small: Size) -> Size:
    """``full`` as published, ``small`` when the environment variable PSRL_SCALE is ``small`` (tests, smoke runs)."""
    scale = os.environ.get("PSRL_SCALE", "full")
    if scale not in ("full", "small"):
        raise ValueError(f"PSRL_SCALE is {scale!r}; valid: full, small")
    return small if scale == "small" else full


def interactive() -> bool:
    """Whether to show sliders and growing plots: yes for a reader in JupyterLab, no in the pipeline and in tests."""
    return os.environ.get("PSRL_BATCH") is None


def toy() -> bool:
    """Whether the results at hand are those of `make smoke`, whose numbers mean nothing.

    A claim about results is then not to be checked: ``assert toy() or median < 10``.
    """
    return os.environ.get("PSRL_TOY") is not None
