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

PROGRAMS = Path(__file__).parent / "programs"
DISPATCHES = 1 + 3 * 4 + 5 + 1


def program(name, *arguments):
    return [sys.executable, str(PROGRAMS / name), *map(str, arguments)]


def told(ran):
    """Returns the line of JSON that a program has printed last."""
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def run(command, **environment):
    cleared = {name: value for name, value in os.environ.items() if "_CAPTURE" not in name}
    # The program uses lavapipe even where there are other devices.
    environment = {**cleared, "VK_LOADER_DRIVERS_SELECT": "lvp*", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


@needs("wgpu", "numpy")
class Recording(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.capture = Path(cls.folder.name) / "window.gapscope"
        steps = program("steps.py", cls.capture)
        # The wheel's command finds the wheel's hooks by itself.
        recorder = [str(gapscope.command()), "record", "--no-report", "-o", f"{cls.folder.name}/steps.gapscope", "--"]
        cls.alone = told(run(steps))
        cls.told = told(run([*recorder, *steps]))
        cls.trace = gapscope.load(f"{cls.folder.name}/steps.gapscope")

    def test_the_program_does_the_same_with_and_without_a_recording(self):
        self.assertEqual(
            self.alone,
            {name: "NOT_RECORDED" for name in ("before", "after", "mark", "start", "stop")} | {"path": "None", "right": True},
        )
        done = {name: "DONE" for name in ("after", "mark", "start", "stop")}
        self.assertEqual(self.told, {"before": "NO_HOOK", **done, "path": str(self.capture), "right": True})

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


@needs("wgpu", "numpy")
class Windows(unittest.TestCase):
    """Tests windows that the program or the environment chooses, under both commands that write them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def under(self, command, *options, sleep=(), **environment):
        """Runs the program of units by a command and returns what it told, and what was said on standard error."""
        output = "rest.gapcapture" if command == "capture" else "rest.gapscope"
        by = [str(gapscope.command()), command, "-o", f"{self.folder}/{output}", *options, "--"]
        ran = run([*by, *program("units.py", *sleep)], **environment)
        return told(ran), ran.stderr

    def replayed(self, capture):
        replay = [str(gapscope.command()), "replay", "--json", str(capture)]
        replayed = run(replay)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        return json.loads(replayed.stdout)

    def test_the_environment_chooses_the_units_of_a_recording(self):
        path = self.folder / "units.gapscope"
        units = {"GAPSCOPE_CAPTURE_SKIP": "2", "GAPSCOPE_CAPTURE_TAKE": "2"}
        said, _ = self.under("record", "--capture-only", GAPSCOPE_CAPTURE=str(path), **units)
        self.assertEqual(said, {"captured": [False, False, True, True, False, False], "path": str(path), "right": True})
        self.assertEqual(gapscope.load(path).report["dispatch_count"], 3 + 4)

    def test_under_capture_the_units_can_be_replayed(self):
        said, _ = self.under("capture", GAPSCOPE_CAPTURE=f"{self.folder}/units.gapscope", GAPSCOPE_CAPTURE_SKIP="4")
        path = self.folder / "units.gapcapture"
        self.assertEqual(said, {"captured": [False] * 4 + [True, False], "path": str(path), "right": True})
        self.assertEqual(self.replayed(path)["dispatch_count"], 5)

    def test_under_capture_a_range_chooses_the_window_and_the_program_is_told(self):
        said, lines = self.under("capture", "--label", "unit 3", GAPSCOPE_CAPTURE=f"{self.folder}/units.gapcapture")
        self.assertEqual(said, {"captured": [False] * 6, "path": "None", "right": True})
        self.assertEqual(lines.count("was told which window to capture"), 1)
        self.assertEqual(self.replayed(self.folder / "rest.gapcapture")["dispatch_count"], 3)

    def test_under_capture_start_and_stop_write_a_capture(self):
        by = [str(gapscope.command()), "capture", "-o", f"{self.folder}/rest.gapcapture", "--"]
        said = told(run([*by, *program("steps.py", self.folder / "window.gapcapture")]))
        self.assertEqual((said["start"], said["stop"]), ("DONE", "DONE"))
        self.assertEqual(said["path"], str(self.folder / "window.gapcapture"))
        self.assertEqual(self.replayed(said["path"])["dispatch_count"], 5)

    def test_the_guide_to_instruments_is_followed_step_by_step(self):
        trace = f"{self.folder}/fusion.gapscope"
        run([str(gapscope.command()), "record", "-o", trace, "--", *program("profile_fusion.py", 20)]).check_returncode()
        compared = run([str(gapscope.command()), "report", "--json", "--compare-labels", "eager,compiled", trace])
        work = json.loads(compared.stdout)["equal_work"]
        dispatches = [work[side]["dispatch_count"] for side in ("before", "after")]
        self.assertEqual(dispatches, [20 * 4, 20], "the kernels are fused")

    def test_a_bad_value_is_said_once_and_nothing_is_captured(self):
        bad = {"GAPSCOPE_CAPTURE": f"{self.folder}/units.gapscope", "GAPSCOPE_CAPTURE_SKIP": "abc"}
        alone = run(program("units.py"), **bad)
        for said, lines in (self.under("record", **bad), (told(alone), alone.stderr)):
            self.assertEqual(said, {"captured": [False] * 6, "path": "None", "right": True})
            self.assertEqual(lines.count("GAPSCOPE_CAPTURE_SKIP=abc is not understood"), 1, lines)

    def test_a_capture_does_not_change_the_verdict(self):
        verdicts = []
        for environment in ({}, {"GAPSCOPE_CAPTURE": f"{self.folder}/units.gapscope", "GAPSCOPE_CAPTURE_SKIP": "1"}):
            # The device waits for a program that sleeps, whatever else the machine does.
            self.under("record", sleep=[0.1], **environment)
            trace = (self.folder / "rest.gapscope").rename(self.folder / f"{len(verdicts)}.gapscope")
            verdicts.append(gapscope.load(trace).verdict)
        self.assertTrue((self.folder / "units.gapscope").is_dir())
        self.assertEqual(verdicts, ["host-bound", "host-bound"])



if __name__ == "__main__":
    unittest.main()
