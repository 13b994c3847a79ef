"""Every cell prints what torch prints: as recorded, and as torch does where it is installed."""

import json

import pytest

import symgrad.eager
from eager import cells, reprs  # isort: skip

CELLS = cells.cells()
