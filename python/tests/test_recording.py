"""Records a Python program with the installed wheel on a Vulkan device, and reads its trace in pandas, Polars and a notebook.

With GAPSCOPE_REQUIRE_PACKAGES=1, wgpu, pandas, polars and pyarrow must be installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

import gapscope
from packages import needs

PROGRAM = Path(__file__).parent / "programs" / "steps.py"
DISPATCHES = 1 + 3 * 4 + 5 + 1


def run(command, **environment):
    # The program uses lavapipe even where there are other devices.
    environment = {**os.environ, "VK_LOADER_DRIVERS_SELECT": "lvp*", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


@needs("wgpu", "numpy")
class Recording(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.capture = Path(cls.folder.name) / "window.gapscope"
        program = [sys.executable, str(PROGRAM), str(cls.capture)]
        # The wheel's command finds the wheel's hooks by itself.
        recorder = [str(gapscope.command()), "record", "--no-report", "-o", f"{cls.folder.name}/steps.gapscope", "--"]
        cls.alone = run(program)
        cls.ran = run([*recorder, *program])
        assert cls.ran.returncode == 0, cls.ran.stderr
        cls.told = json.loads(cls.ran.stdout.splitlines()[-1])
        cls.trace = gapscope.load(f"{cls.folder.name}/steps.gapscope")

    def test_the_program_does_the_same_with_and_without_a_recording(self):
        alone = json.loads(self.alone.stdout.splitlines()[-1])
        self.assertEqual(
            alone, {name: "NOT_RECORDED" for name in ("before", "after", "mark", "start", "stop")} | {"right": True}
        )
        self.assertEqual(
            self.told,
            {"before": "NO_HOOK", "after": "DONE", "mark": "DONE", "start": "DONE", "stop": "DONE", "right": True},
        )

    def test_every_dispatch_is_there(self):
        self.assertEqual(self.trace.report["dispatch_count"], DISPATCHES)
        # A stack that changes while it is read is lost now and then.
        losses = [loss for loss in self.trace.report["losses"] if loss["what"] != "stack samples"]
        self.assertEqual(losses, [])

    def test_dispatches_have_the_labels_of_the_ranges_in_their_nesting(self):
        for label, dispatches in (("step", 12), ("inner", 3), ("captured", 5)):
            command = [gapscope.command(), "report", "--json", "--label", label, self.trace.path]
            done = run(list(map(str, command)))
            self.assertEqual(json.loads(done.stdout)["dispatch_count"], dispatches, label)

    def test_the_capture_holds_its_window_and_nothing_else(self):
        captured = gapscope.load(self.capture)
        self.assertEqual(captured.report["dispatch_count"], 5)

    def test_a_notebook_shows_verdict_and_picture(self):
        page = self.trace._repr_html_()
        root = ElementTree.fromstring(page)
        text = "".join(root.itertext())
        self.assertIn(self.trace.verdict.upper(), text)
        self.assertIn("square", text)
        self.assertTrue(any(element.tag.endswith("rect") for element in root.iter()))

    @needs("pandas", "polars", "pyarrow")
    def test_pandas_polars_and_arrow_read_the_same_rows(self):
        for table in self.trace.tables:
            frame, polar, rows = self.trace.to_pandas(table), self.trace.to_polars(table), self.trace.to_arrow(table)
            self.assertEqual(len(frame), rows.num_rows, table)
            self.assertEqual(polar.height, rows.num_rows, table)
            self.assertEqual(list(frame.columns), rows.column_names, table)
        dispatches = self.trace.to_pandas("dispatches")
        self.assertEqual(len(dispatches), DISPATCHES)
        # Integers stay exact even where some are missing.
        self.assertEqual(str(dispatches["start_ns"].dtype), "Int64")
        total = self.trace.report["kernels"][0]["total_ns"]
        self.assertEqual(dispatches["duration_ns"].sum(), total)
        self.assertEqual(self.trace.to_polars("dispatches")["duration_ns"].sum(), total)

    @needs("pandas", "pyarrow")
    def test_ranges_and_marks_are_markers(self):
        markers, labels = self.trace.to_pandas("markers"), self.trace.to_pandas("labels")
        named = markers.merge(labels, left_on="label", right_on="id")
        counts = named["text"].value_counts()
        self.assertEqual([counts.get(text, 0) for text in ("step", "inner", "stepped", "captured")], [3, 3, 3, 1])
        # This range began before there was a hook.
        self.assertEqual(counts.get("init", 0), 0)

    def test_the_module_is_the_command(self):
        done = run([sys.executable, "-m", "gapscope", "--version"])
        self.assertEqual(done.stdout, run([str(gapscope.command()), "--version"]).stdout)
        self.assertIn("gapscope", done.stdout)


if __name__ == "__main__":
    unittest.main()
