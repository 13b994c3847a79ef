"""A pytest fixture for tests of derivatives.

In your ``conftest.py``::

    pytest_plugins = ["symgrad.pytest_plugin"]

and in a test::

    def test_loss(check_derivatives):
        check_derivatives(loss, w, x, y, argnums=0)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest

from symgrad.testing import check_grads


@pytest.fixture
def check_derivatives(request: pytest.FixtureRequest) -> Callable[..., None]:
    """``check_derivatives(fun, *args, **options)``: ``symgrad.testing.check_grads``, its random directions the test's own.

    Options are those of ``check_grads``: ``argnums``, ``order``, ``modes``, ``rtol``, ``atol``. A failure is the test's, with
    the entry, the expected and the actual value.
    """

    def check(fun: Callable[..., Any], *args: Any, **options: Any) -> None:
        check_grads(fun, args, **{"seed": zlib.crc32(request.node.nodeid.encode()), **options})

    return check
