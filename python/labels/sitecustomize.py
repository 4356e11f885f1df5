"""Runs at the start of each Python interpreter of a program recorded with `gapscope record --label-modules` or `--label-ops`.

Its folder is the first of PYTHONPATH. It restores the module path, arranges for labels when torch is imported, and then runs the
program's own sitecustomize.
"""

import sys


def _begin():
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        import _gapscope_labels

        _gapscope_labels.begin(folder)
    except Exception:
        # A failure here must not disturb the program.
        pass
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    sys.path_importer_cache.pop(folder, None)


_begin()
del sys.modules[__name__]
# Without another sitecustomize, the interpreter gets the ImportError that it expects.
import sitecustomize  # noqa: E402, F401
