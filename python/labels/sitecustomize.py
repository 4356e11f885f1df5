"""Runs at the start of each Python of a program recorded with `gapscope record --label-modules` or `--label-ops`.

Its folder is the first of PYTHONPATH. It leaves the module path as it would be without, sees to it that labels are put in place
when torch is imported, and then lets the sitecustomize of the program run in its place.
"""

import sys


def _begin():
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        import _gapscope_labels

        _gapscope_labels.begin(folder)
    except Exception:
        # The program is not ours to disturb.
        pass
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    sys.path_importer_cache.pop(folder, None)


_begin()
del sys.modules[__name__]
# Fails as it would for the interpreter when there is none.
import sitecustomize  # noqa: E402, F401
