"""The packages that gapscope can work with, and tests that need them."""

import importlib.util
import os
import unittest


def needs(*packages):
    """Skips without the packages, unless GAPSCOPE_REQUIRE_PACKAGES says that they must be there."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    required = os.environ.get("GAPSCOPE_REQUIRE_PACKAGES")
    return unittest.skipIf(missing and not required, f"not installed: {', '.join(missing)}")
