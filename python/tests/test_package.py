"""Tests the package without a recording and without a GPU."""

import asyncio
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import timeit
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import gapscope
from gapscope import Status, _hooks, _html, _picture
from gapscope._quantity import count, duration, share
from packages import needs

FIXTURES = Path(os.environ["GAPSCOPE_FIXTURES"])
FIXTURE = FIXTURES / "v3.gapscope"
HOSTILE = "<script>alert('x')</script>\u202e\x00\"&"


def report(**changes):
    """Makes findings with the keys that the notebook page uses."""
    slices = [{"length_ns": 100, "busy_ns": busy, "idle_cause": cause}
              for busy, cause in ((100, None), (30, "host-late"), (0, "launch-latency"), (0, "no such cause"))]  # fmt: skip
    found = {
        "command": ["python", "train.py"], "verdict": "host-bound", "verdict_sentence": "The device waited.",
        "wall_ns": 400, "gpu_busy_ns": 130, "dispatch_count": 12345, "sampling_mode": "dispatch",
        "clock_error_ns": 3, "start_ns": 1000, "losses": [], "devices": [{"name": "Some device"}],
        "gaps": [{"cause": "host-late", "total_ns": 200}, {"cause": "launch-latency", "total_ns": 70}],
        "kernels": [{"name": "a", "count": 3, "total_ns": 100}, {"name": "b", "count": 1, "total_ns": None}],
        "activity": {"window": {"start_ns": 1000, "end_ns": 1400},
                     "rows": [{"device": 0, "queue_id": None, "slices": slices}, {"device": 0, "queue_id": 3, "slices": slices}]},
    }  # fmt: skip
    return {**found, **changes}


class Ranges(unittest.TestCase):
    def test_outside_of_a_recording_everything_says_why_it_does_nothing(self):
        self.assertIs(gapscope.status(), Status.NOT_RECORDED)
        self.assertIs(gapscope.mark("here"), Status.NOT_RECORDED)
        self.assertIs(gapscope.stop_capture(), Status.NOT_RECORDED)
        with tempfile.TemporaryDirectory() as folder:
            started = gapscope.start_capture(Path(folder) / "a.gapscope")
            self.assertEqual(os.listdir(folder), [])
        self.assertFalse(started)
        self.assertIn("gapscope record", str(started))

    def test_a_range_passes_errors_and_results_on(self):
        with self.assertRaises(KeyError):
            with gapscope.range("step"):
                raise KeyError("its own")

        @gapscope.range("f")
        def f(a, *, b):
            """Adds."""
            return a + b

        self.assertEqual((f(1, b=2), f.__name__, f.__doc__), (3, "f", "Adds."))

    def test_a_function_that_gives_way_to_others_is_refused(self):
        async def step():
            pass

        def batches():
            yield 1

        for function in (step, batches):
            with self.assertRaisesRegex(TypeError, "gives way"):
                gapscope.range("step")(function)

    def test_a_range_outside_of_a_recording_costs_next_to_nothing(self):
        def body():
            with gapscope.range("step"):
                pass

        seconds = min(timeit.repeat(body, number=20_000, repeat=5)) / 20_000
        # The usual time is a tenth of this; the rest is for slow machines.
        self.assertLess(seconds, 5e-6)

    def test_nothing_is_imported_that_is_heavy(self):
        code = "import sys, gapscope; print([m for m in ('pandas', 'polars', 'pyarrow', 'numpy', 'torch') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")


class FakeHook:
    """A FAKE hook that records its calls."""

    name = "fake"

    def __init__(self, answer=0):
        self.asked, self.answer = [], answer

    def state(self):
        return self.answer

    def push_label(self, text, size):
        self.asked.append(("push", text[:size].decode()))
        return self.answer

    def pop_label(self):
        self.asked.append("pop")
        return self.answer

    def pop_label_at(self, end_ns):
        self.left_ns = end_ns
        return self.pop_label()

    def instant_label(self, text, size):
        self.asked.append(("mark", text[:size].decode()))
        return self.answer

    def start_capture(self, path, size, number):
        self.asked.append(("start", path[:size].decode()))
        number._obj.value = 7
        return self.answer

    def stop_capture(self, number):
        self.asked.append(("stop", number))
        return 0

    def capture_state(self, number):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def flush(self, _nanoseconds):
        return 0

    def own_time(self, _start):
        self.waits = getattr(self, "waits", 0) + 1
        return 0


class WithHooks(unittest.TestCase):
    """Tests rules about hooks with a fake one. test_recording.py has real hooks."""

    def setUp(self):
        self.present = []
        for target, value in (("session", True), ("hooks", lambda: tuple(self.present))):
            for module in (_hooks, gapscope._capture):
                if hasattr(module, target):
                    patched = mock.patch.object(module, target, value)
                    patched.start()
                    self.addCleanup(patched.stop)

    def hook(self, answer=0, states=(0,)):
        hook = FakeHook(answer)
        hook.states = list(states)
        self.present.append(hook)
        return hook

    def units(self, count, **variables):
        """Runs units as a process of its own would, and returns them with what was said on standard error."""
        cleared = {name: value for name, value in os.environ.items() if "_CAPTURE" not in name}
        said, units = io.StringIO(), []
        with (
            mock.patch.dict(os.environ, {**cleared, **variables}, clear=True),
            mock.patch.object(gapscope._unit, "_process", gapscope._unit._Process()),
            contextlib.redirect_stderr(said),
        ):
            for _ in range(count):
                with gapscope.unit() as unit:
                    units.append(unit)
        return units, said.getvalue()

    def test_without_a_hook_the_reason_is_another(self):
        self.assertIs(gapscope.status(), Status.NO_HOOK)
        self.assertIs(gapscope.mark("x"), Status.NO_HOOK)
        self.assertIs(gapscope.start_capture("a.gapscope"), Status.NO_HOOK)

    def test_a_hook_that_appears_in_a_range_is_not_asked_to_end_it(self):
        with gapscope.range("init"):
            late = self.hook()
        with gapscope.range("step"):
            pass
        self.assertEqual(late.asked, [("push", "step"), "pop"])

    def test_a_hook_that_did_not_take_the_label_is_not_asked_to_end_it(self):
        refusing, taking = self.hook(answer=1), self.hook()
        with gapscope.range("a\0b"):
            pass
        self.assertEqual(refusing.asked, [("push", "a\ufffdb")])
        self.assertEqual(taking.asked, [("push", "a\ufffdb"), "pop"])

    def test_calls_of_a_decorated_function_may_nest_and_be_on_several_threads(self):
        hook = self.hook()

        @gapscope.range("f")
        def f(depth):
            if depth:
                f(depth - 1)

        threads = [threading.Thread(target=f, args=(2,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(hook.asked.count("pop"), 12)
        self.assertEqual(len(hook.asked), 24)

    def test_any_object_is_a_name_inside_of_a_recording_too(self):
        class Silent:
            def __str__(self):
                raise ValueError

        hook = self.hook()
        for name in (3, None, b"bytes", Path("a/b"), ("t", 1), Silent()):
            with gapscope.range(name):
                gapscope.mark(name)
        texts = [asked[1] for asked in hook.asked if asked[0] == "push"]
        self.assertEqual(texts, ["3", "None", "bytes", "a/b", "('t', 1)", "<Silent>"])

    def test_ranges_of_tasks_end_in_any_order(self):
        hook = self.hook()

        async def task(name, begin, end):
            await begin.wait()
            with gapscope.range(name):
                await end.wait()

        async def run():
            first, second, third = asyncio.Event(), asyncio.Event(), asyncio.Event()
            a = asyncio.create_task(task("a", first, second))
            b = asyncio.create_task(task("b", first, third))
            first.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            second.set()
            await a
            third.set()
            await b

        asyncio.run(run())
        # `a` ends while `b`, which began later, goes on.
        self.assertEqual(hook.asked, [("push", "a"), ("push", "b"), "pop", "pop", ("push", "b"), "pop"])

    def test_a_range_of_several_threads_ends_on_each(self):
        hook = self.hook()
        both = threading.Barrier(2)
        shared = gapscope.range("shared")

        def work():
            with shared:
                both.wait()

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(hook.asked.count("pop"), 2)

    def test_a_range_that_another_thread_leaves_is_ended_by_its_own(self):
        hook = self.hook()
        left = gapscope.range("left")
        left.__enter__()
        inner = gapscope.range("inner").__enter__()
        thread = threading.Thread(target=left.__exit__, args=(None, None, None))
        before_ns = time.monotonic_ns()
        thread.start()
        thread.join()
        after_ns = time.monotonic_ns()
        self.assertEqual(hook.asked, [("push", "left"), ("push", "inner")])
        with gapscope.range("next"):
            pass
        # The range has the end that it had, and the one inside of it goes on.
        ended = ["pop", "pop", ("push", "inner")]
        self.assertEqual(hook.asked[2:], [*ended, ("push", "next"), "pop"])
        self.assertTrue(before_ns <= hook.left_ns <= after_ns)
        inner.__exit__(None, None, None)
        self.assertEqual(hook.asked.count("pop"), 4)

    def test_under_capture_the_path_is_that_of_a_capture(self):
        hook = self.hook()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(_hooks, "capturing", True):
            for name in ("a.gapscope", "b.gapcapture"):
                path = os.fsencode(os.path.join(folder, name))
                self.assertTrue(gapscope.start_capture(path))
                gapscope.stop_capture()
                expected = Path(folder) / f"{name[0]}.gapcapture"
                self.assertEqual(gapscope.last_capture(), expected)
                self.assertIn(("start", str(expected)), hook.asked)
        # The waits of both ends of each window are told.
        self.assertEqual(hook.waits, 6)

    def test_a_capture_starts_on_every_hook_and_only_the_first_has_the_path(self):
        first, second = self.hook(states=[7, 7, 0]), self.hook()
        waits = []
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.gapscope")
            self.assertTrue(gapscope.start_capture(path, synchronize=lambda: waits.append(1)))
            with self.assertRaisesRegex(gapscope.CaptureError, "another capture"):
                gapscope.start_capture(os.path.join(folder, "b.gapscope"))
            self.assertIs(gapscope.stop_capture(synchronize=lambda: waits.append(1)), Status.DONE)
        self.assertEqual(first.asked, [("start", path), ("stop", 7)])
        self.assertEqual(second.asked, [("start", ""), ("stop", 7)])
        self.assertEqual(len(waits), 2)
        self.assertIs(gapscope.stop_capture(), Status.NOT_CAPTURING)

    def test_a_capture_that_fails_is_a_runtime_error_and_leaves_nothing_open(self):
        first = self.hook()
        self.hook(answer=9)
        with self.assertRaisesRegex(RuntimeError, "gone") as caught:
            gapscope.start_capture("")
        self.assertIs(caught.exception.status, Status.NO_SESSION)
        self.assertEqual(first.asked, [("start", ""), ("stop", 7)])
        self.present.pop()
        first.states = [8]
        self.assertTrue(gapscope.start_capture(""))
        with self.assertRaisesRegex(gapscope.CaptureError, "not written"):
            gapscope.stop_capture()

    def test_a_capture_that_takes_long_is_pending(self):
        self.hook(states=[7])
        gapscope.start_capture("")
        self.assertIs(gapscope.stop_capture(timeout=0.01), Status.PENDING)

    def test_units_are_captured_as_the_environment_says(self):
        hook = self.hook()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.gapscope")
            units, _ = self.units(8, GAPSCOPE_CAPTURE=path, GAPSCOPE_CAPTURE_SKIP=" 3 ", GAPSCOPE_CAPTURE_TAKE="2")
            self.assertEqual([unit.captured for unit in units], [False] * 3 + [True] * 2 + [False] * 3)
            self.assertEqual(hook.asked, [("start", path), ("stop", 7)])
            self.assertIn("unit 4 is", units[0].reason)
            self.assertIn("has been made", units[7].reason)
            units, said = self.units(2, GAPSCOPE_CAPTURE="", MLX_METAL_CAPTURE=path)
            self.assertEqual([unit.captured for unit in units], [True, False])
        units, said = self.units(1)
        self.assertIn("no capture was asked for", units[0].reason)
        self.assertEqual(said, "")

    def test_a_unit_that_is_not_captured_says_why_once_and_the_next_is_tried(self):
        hook = self.hook()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.gapscope"
            for variables, sentence in (
                ({"GAPSCOPE_CAPTURE_SKIP": "abc"}, "GAPSCOPE_CAPTURE_SKIP=abc is not understood: a whole number of units, 0 or more"),
                ({"GAPSCOPE_CAPTURE_SKIP": "-1"}, "SKIP=-1 is not"),
                ({"GAPSCOPE_CAPTURE_SKIP": "1\x1b[2J"}, "SKIP=1·[2J is not"),
                ({"GAPSCOPE_CAPTURE_SKIP": str(2**64)}, "is not understood"),
                ({"GAPSCOPE_CAPTURE_TAKE": "0"}, "a whole number of units, 1 or more"),
                ({"GAPSCOPE_CAPTURE": f"{folder}/no/a.gapscope"}, "is not a folder"),
            ):
                units, said = self.units(5, **{"GAPSCOPE_CAPTURE": str(path), **variables})
                self.assertEqual({unit.reason for unit in units}, {units[0].reason})
                self.assertIn(sentence, units[0].reason)
                self.assertEqual(said, f"[gapscope] no capture: {units[0].reason}\n")
            self.assertEqual(hook.asked, [])
            hook.states = [8, 0]
            units, said = self.units(3, GAPSCOPE_CAPTURE=str(path))
            self.assertEqual([unit.captured for unit in units], [False, True, False])
            self.assertIn("could not be written", said)
        self.present.clear()
        self.assertIn("has not used a GPU", self.units(2, GAPSCOPE_CAPTURE=str(path))[1])

    def test_units_inside_of_units_and_of_other_threads_are_no_captures_of_their_own(self):
        hook = self.hook()
        process, inner, others = gapscope._unit._Process(), [], []

        def other():
            with gapscope.unit() as unit:
                others.append(unit.captured)

        with tempfile.TemporaryDirectory() as folder:
            variables = {"GAPSCOPE_CAPTURE": os.path.join(folder, "a.gapscope")}
            with mock.patch.dict(os.environ, variables), mock.patch.object(gapscope._unit, "_process", process):
                same = gapscope.unit(synchronize=lambda: hook.asked.append("wait"))
                with self.assertRaises(KeyError), same:
                    with gapscope.unit() as unit, same:
                        inner.append(unit.captured)
                    thread = threading.Thread(target=other)
                    thread.start()
                    thread.join()
                    raise KeyError("the program's own")
        self.assertEqual((inner, others, process.units), ([True], [False], 1))
        self.assertEqual([asked if asked == "wait" else asked[0] for asked in hook.asked], ["wait", "start", "wait", "stop"])

    def test_a_wait_that_fails_leaves_no_capture_open(self):
        hook = self.hook()
        self.assertTrue(gapscope.start_capture(""))
        with self.assertRaises(ZeroDivisionError):
            gapscope.stop_capture(synchronize=lambda: 1 / 0)
        self.assertEqual(hook.asked, [("start", ""), ("stop", 7)])
        self.assertIs(gapscope.stop_capture(), Status.NOT_CAPTURING)

    def test_under_a_capture_with_a_chosen_window_the_reason_is_the_true_one(self):
        self.hook(answer=1)
        with mock.patch.object(_hooks, "capturing", True):
            self.assertIs(gapscope.status(), Status.WINDOW_CHOSEN)
            self.assertIs(gapscope.start_capture(""), Status.WINDOW_CHOSEN)

    def test_a_path_that_cannot_be_is_refused_before_anything_starts(self):
        hook = self.hook()
        with tempfile.TemporaryDirectory() as folder:
            there = Path(folder) / "there.gapscope"
            there.symlink_to("nowhere")
            for path, sentence in (
                (there, "there already"),
                (Path(folder) / "no" / "a.gapscope", "is not a folder"),
                (Path(folder) / "a.gputrace", "end it with .gapscope"),
                (Path(folder) / "a.gapcapture", "end it with .gapscope"),
                (os.path.join(folder, "a\0.gapscope"), "NUL"),
                (Path(folder) / f"{'x' * 240}.gapscope", "it may have"),
                (Path(folder) / f"{'x' * 300}.gapscope", "longer than the file system allows"),
                (Path(folder) / f"{'x' * 300}/a.gapscope", "longer than the file system allows"),
                (os.path.join(folder, "a\x1b[2J.gputrace"), r"a·\[2J"),
            ):
                with self.assertRaisesRegex(gapscope.CaptureError, sentence):
                    gapscope.start_capture(path)
        self.assertEqual(hook.asked, [])


class Traces(unittest.TestCase):
    def broken(self, **changes):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        copy = Path(folder.name) / "copy.gapscope"
        shutil.copytree(FIXTURE, copy)
        manifest = json.loads((copy / "trace.json").read_text())
        (copy / "trace.json").write_text(json.dumps({**manifest, **changes}))
        return copy

    def test_a_trace_tells_what_it_has(self):
        trace = gapscope.load(FIXTURE)
        self.assertEqual(trace.manifest["host"]["cores"], 8)
        self.assertIn("dispatches", trace.tables)
        self.assertEqual(trace.report["verdict"], trace.verdict)
        self.assertEqual(trace.report["dispatch_count"], 3)
        self.assertEqual(len(trace.report["activity"]["rows"][0]["slices"]), 240)
        self.assertEqual(eval(repr(trace), {"gapscope": gapscope}).path, FIXTURE)

    @needs("pandas", "polars", "pyarrow")
    def test_version_1_has_the_times_of_this_version(self):
        old, new = (gapscope.load(FIXTURES / f"v{version}.gapscope") for version in (1, 2))
        for trace in (old, new):
            pandas, polars, arrow = (read("submissions") for read in (trace.to_pandas, trace.to_polars, trace.to_arrow))
            for column, values in (("start_ns", [1_100_000_000, 1_200_000_000]), ("duration_ns", [20_000, 20_000])):
                self.assertEqual(pandas[column].tolist(), values)
                self.assertEqual(polars[column].to_list(), values)
                self.assertEqual(arrow[column].to_pylist(), values)
            self.assertEqual(list(pandas.columns), polars.columns)
            self.assertEqual(arrow.column_names, polars.columns)
            self.assertNotIn("end_ns", arrow.column_names)

    @needs("pandas", "polars", "pyarrow")
    def test_samples_join_their_stacks_and_frames(self):
        trace = gapscope.load(FIXTURES / "v3.gapscope")
        samples, stacks, frames = (trace.to_pandas(table) for table in ("samples", "stacks", "frames"))
        leaves = stacks.merge(frames, left_on="frame", right_on="id", suffixes=("", "_of_frame"))
        rows = samples.merge(leaves, left_on="stack", right_on="id").sort_values("time_ns")
        self.assertEqual(rows["time_ns"].tolist(), [1_105_000_000, 1_107_000_000, 1_200_000_000])
        self.assertEqual(rows["function"].astype("string").fillna("unknown").tolist(), ["read", "unknown", "main"])
        self.assertEqual(rows["line"].isna().tolist(), [True, True, False])
        self.assertEqual(rows["line"].iloc[2], 41)
        for table in ("samples", "stacks", "frames"):
            self.assertEqual(trace.to_polars(table).columns, trace.to_arrow(table).column_names)

    def test_what_is_not_a_complete_trace_says_what_to_do(self):
        for path, sentence in (
            (FIXTURE / "nothing", "no trace.json"),
            (self.broken(complete=False), "gapscope recover"),
            (self.broken(format_version=99), "upgrade"),
            (self.broken(format_version=None), "which version"),
        ):
            with self.assertRaisesRegex(gapscope.TraceError, sentence):
                gapscope.load(path)

    def test_a_table_that_cannot_be_read_is_named_and_what_rests_on_it_is_none(self):
        path = self.broken()
        table = path / "dispatches.parquet"
        table.write_bytes(table.read_bytes()[:100])
        trace = gapscope.load(path)
        self.assertEqual(trace.verdict, "unknown")
        self.assertEqual([table["table"] for table in trace.report["unread"]], ["dispatches"])
        self.assertIsNone(trace.report["dispatch_count"])
        page = trace._repr_html_()
        self.assertIn("dispatches.parquet cannot be read (its end is missing). Figures that need this data are unknown.", page)
        for untrue in ("Nothing was lost", "No GPU work has known times", "0 dispatches"):
            self.assertNotIn(untrue, page)

    def test_ranks_are_traces_in_the_order_of_their_numbers(self):
        whole = self.broken()
        for name in ("rank=10", "rank=2", "rank=x"):
            shutil.copytree(FIXTURE, whole / name)
        self.assertEqual([rank.path.name for rank in gapscope.load(whole).ranks], ["rank=2", "rank=10"])
        self.assertEqual(gapscope.load(FIXTURE).ranks, ())

    def test_an_unknown_table_is_named_with_those_there_are(self):
        with self.assertRaisesRegex(gapscope.TraceError, "kernles.*kernels"):
            gapscope.load(FIXTURE).to_pandas("kernles")

    def test_a_missing_package_says_how_to_install_it(self):
        trace = gapscope.load(FIXTURE)
        for package, read in (("pandas", trace.to_pandas), ("polars", trace.to_polars), ("pyarrow", trace.to_arrow)):
            with mock.patch.dict(sys.modules, {package: None}):
                with self.assertRaisesRegex(gapscope.MissingPackage, r"pip install 'gapscope\["):
                    read("kernels")

    def test_without_the_command_a_notebook_says_so(self):
        with mock.patch("gapscope._trace.command", side_effect=gapscope.CommandError("no <command>")):
            self.assertIn("no &lt;command&gt;", gapscope.load(FIXTURE)._repr_html_())


class Command(unittest.TestCase):
    def test_sql_is_answered_by_the_program_of_the_wheel(self):
        query = [str(gapscope.command()), "query", "--format", "csv", str(FIXTURE), "select count(*) as n from kernels"]
        # With an empty PATH, the program is found beside the command.
        done = subprocess.run(query, capture_output=True, text=True, env={**os.environ, "PATH": ""})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        kernels = gapscope.load(FIXTURE).report["kernels"]
        self.assertEqual(done.stdout.splitlines(), ["n", str(len(kernels))])


class Rewritten(unittest.TestCase):
    """Tests tables that other tools have read and rewritten with their defaults."""

    def same_report(self, write):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "again.gapscope"
            shutil.copytree(FIXTURE, trace)
            for table in trace.glob("*.parquet"):
                write(table)
            again, before = gapscope.load(trace).report, gapscope.load(FIXTURE).report
        self.assertEqual({**again, "trace": None}, {**before, "trace": None})

    @needs("pyarrow")
    def test_by_pyarrow(self):
        from pyarrow import parquet

        self.same_report(lambda table: parquet.write_table(parquet.read_table(table), table, row_group_size=7))

    @needs("pandas", "pyarrow")
    def test_by_pandas(self):
        import pandas

        self.same_report(lambda table: pandas.read_parquet(table).to_parquet(table, index=False))
        nullable = {"dtype_backend": "numpy_nullable"}
        self.same_report(lambda table: pandas.read_parquet(table, **nullable).to_parquet(table, compression="gzip"))

    @needs("polars")
    def test_by_polars(self):
        import polars

        self.same_report(lambda table: polars.read_parquet(table).write_parquet(table))


class Pages(unittest.TestCase):
    def parsed(self, page):
        """Parses the HTML as XML, so that every open tag must be closed."""
        return ElementTree.fromstring(page)

    def test_the_page_says_what_matters(self):
        root = self.parsed(_html.page(report(), "run.gapscope"))
        text = "".join(root.itertext())
        for part in ("HOST-BOUND", "The device waited.", "12,345 dispatches", "±3 ns", "host-late", "Nothing was lost."):
            self.assertIn(part, text)
        self.assertIn("130 ns (32.5 %)", text)
        self.assertIn("unknown", text)

    def test_the_page_of_a_real_trace_is_well_formed(self):
        text = "".join(self.parsed(gapscope.load(FIXTURE)._repr_html_()).itertext())
        self.assertIn("Some device", text)

    def test_hostile_names_have_no_effect(self):
        page = _html.page(report(
            command=[HOSTILE], verdict=HOSTILE, verdict_sentence=HOSTILE, sampling_mode=HOSTILE,
            devices=[{"name": HOSTILE}], kernels=[{"name": HOSTILE, "count": 1, "total_ns": 1}],
            gaps=[{"cause": HOSTILE, "total_ns": 1}], losses=[{"what": HOSTILE, "count": 1, "reason": HOSTILE}],
        ), HOSTILE)  # fmt: skip
        self.assertNotIn("<script", page)
        self.assertNotIn("\u202e", page)
        self.assertEqual([e.tag for e in self.parsed(page).iter() if "script" in e.tag], [])

    def test_the_picture_has_the_shares_as_heights(self):
        svg = self.parsed(_picture.picture(report()))
        bars = [e for e in svg.iter("{http://www.w3.org/2000/svg}rect") if e.get("fill") == _picture.BUSY]
        heights = [float(bar.get("height")) for bar in bars]
        self.assertEqual(heights, [_picture.BAR, round(0.3 * _picture.BAR, 2)] * 2)
        strips = [e for e in svg.iter("{http://www.w3.org/2000/svg}rect") if e.get("fill") in (
            _picture.COLOURS["host-late"], _picture.COLOURS["launch-latency"], _picture.OTHER)]  # fmt: skip
        self.assertEqual(len(strips), 6)

    def test_a_trace_without_times_has_no_picture(self):
        for activity in (None, {"window": {"start_ns": 0, "end_ns": 0}, "rows": []}):
            self.assertEqual(_picture.picture(report(activity=activity)), "")
            self.assertIn("no known times", _html.page(report(activity=activity), "x").replace("No GPU work has", "no"))

    def test_numbers_have_units(self):
        cases = [(0, "0 ns"), (999, "999 ns"), (999.6, "1.00 µs"), (1234, "1.23 µs"), (56_700_000, "56.7 ms"),
                 (999_600_000, "1.00 s"), (123_456_000_000, "123 s"), (None, "unknown")]  # fmt: skip
        for value, text in cases:
            self.assertEqual(duration(value), text)
        self.assertEqual((share(1, 8), share(None, 8), share(1, 0), count(None)), ("12.5 %", "unknown", "unknown", "unknown"))


if __name__ == "__main__":
    unittest.main()
