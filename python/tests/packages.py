"""Skips tests whose optional packages are not installed."""

import importlib.util
import os
import unittest


def needs(*packages):
    """Skips a test without the packages, unless GAPSCOPE_REQUIRE_PACKAGES requires them."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    required = os.environ.get("GAPSCOPE_REQUIRE_PACKAGES")
    return unittest.skipIf(missing and not required, f"not installed: {', '.join(missing)}")
