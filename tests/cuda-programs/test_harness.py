"""Tests of the harness itself, with a FAKE command: no GPU is used and nothing is recorded."""

import contextlib
import io
import json
import os
import py_compile
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "mlx")]

from fatbin import MAGIC, keep_architecture  # noqa: E402
from harness import registry, trace  # noqa: E402
from harness.checks import Result  # noqa: E402
from harness.parts import causes, cost, endings, pressure, relay  # noqa: E402
from harness.processes import Failed  # noqa: E402
from harness.workbench import Workbench  # noqa: E402

# Two kernels in the region, one before it, one without a time, a copy and their launch calls.
PROGRAM = """
import json, os, time
dispatches = [
    {"command_buffer": 1, "submission": "", "kernel": 1, "start_ns": 5, "duration_ns": 9, "queue": 1},
    {"command_buffer": "", "submission": 20, "kernel": 1, "start_ns": 100, "duration_ns": 10, "queue": 1},
    {"command_buffer": 3, "submission": "", "kernel": 2, "start_ns": 199, "duration_ns": 30, "queue": 1},
] + ([{"command_buffer": 4, "submission": "", "kernel": 2, "start_ns": "", "duration_ns": "", "queue": 1}] if UNTIMED else [])
tables = {
    "kernels": [{"id": 1, "name": "a", "full_name": ""}, {"id": 2, "name": "b", "full_name": "b<x, y>"}],
    "dispatches": dispatches,
    "transfers": [{"start_ns": 150, "bytes": 64}, {"start_ns": 150, "bytes": ""}, {"start_ns": 200, "bytes": 8}],
    "command_buffers": [{"id": n, "submission": 10 * n, "start_ns": 100 * (n - 1)} for n in (1, 2, 3)],
    "submissions": [{"id": 10, "start_ns": 7}, {"id": 20, "start_ns": 90}, {"id": 30, "start_ns": 100}],
    "labels": [{"id": 1, "text": "step"}],
    "markers": [{"label": 1}, {"label": 1}],
}
if "FAKE_TABLES" in os.environ:
    json.dump(tables, open(os.environ["FAKE_TABLES"], "w"))
print("noise")
print(json.dumps({"regions": {"r": {"begin_ns": 100, "end_ns": 200, "profiler_stop_ns": 2}}, "milliseconds": 4.0}))
"""

# Says that it is one kernel, and that a stream waited twice; the trace knows of one.
PLANTED = """
import json, os, sys
tables = {
    "kernels": [{"id": 1, "name": "spin", "full_name": ""}],
    "dispatches": [{"command_buffer": "", "submission": 1, "kernel": 1, "start_ns": 100, "duration_ns": 10, "queue": 1}],
    "transfers": [{"start_ns": 1, "bytes": 1}],
    "command_buffers": [{"id": 1, "submission": 1, "start_ns": 1}],
    "dependencies": [{"waits_for": 5}, {"waits_for": ""}],
    "report": {"clock_error_ns": 7},
}
json.dump(tables, open(os.environ["FAKE_TABLES"], "w"))
region = {"begin_ns": 50, "end_ns": 200}
facts = {"graph_launches": 1} if sys.argv[1] == "graph" else {"stream_waits": 2}
print(json.dumps({"regions": {sys.argv[1]: region}, "result": 4, "kernels": 1, **facts}))
"""

# Obeys orders as `launch_costs.py` does; the turns take 100, 200, 300 ... ns each.
RELAY_RUNNER = """
import os, sys
factor, done = os.environ.get("FACTOR", "1"), {"tiny": 0, "gpt": 0}
if factor == "bad":
    sys.exit("out of paper")
with open(sys.argv[1] + "/answers", "w") as answers, open(sys.argv[1] + "/orders") as orders:
    print("ready", file=answers, flush=True)
    for order in orders:
        what, count = order.split()
        if what == "end":
            break
        if factor == "dies":
            sys.exit(7)
        done[what] += 1
        print(round(float(factor) * 100 * done[what] * int(count)), file=answers, flush=True)
"""


class Harness(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.bench = Workbench(HERE / "fake_gapscope.py", folder.name, limit_s=60)
        self.bench.start()
        # The other way to read tables is the one on machines with pyarrow, from real Parquet files.
        without = mock.patch.dict(sys.modules, {"pyarrow": None, "pyarrow.parquet": None})
        without.start()
        self.addCleanup(without.stop)

    def program(self, text):
        path = self.bench.file(".py")
        path.write_text(textwrap.dedent(text))
        return [sys.executable, path]

    def recorded(self, untimed=False):
        return self.bench.recorded(self.program(PROGRAM.replace("UNTIMED", str(untimed))))

    def test_work_is_attributed_to_a_region_by_its_start(self):
        ran, found, ending = self.recorded()
        span = found.within(100, 200)
        self.assertEqual((span.kernels, span.kernel_ns), (2, 40))
        self.assertEqual(span.by_name, {"a": [1, 10], "b<x, y>": [1, 30]})
        self.assertEqual((span.transfers, span.transfer_bytes, span.command_buffers), (2, 64, 1))
        self.assertEqual(ran.facts["regions"]["r"]["end_ns"], 200)
        self.assertLessEqual(ending["ended_ns"], ran.ended_ns)

    def test_a_kernel_without_a_time_makes_the_total_unknown(self):
        _, found, _ = self.recorded(untimed=True)
        self.assertIsNone(found.within(100, 200).kernel_ns)

    def test_a_kernel_that_starts_before_its_call_is_found(self):
        _, found, _ = self.recorded()
        self.assertEqual(found.launched_before(), ([-2, 10, 99], 0))

    def test_markers_are_counted_by_label(self):
        _, found, _ = self.recorded()
        self.assertEqual(found.markers(), {"step": 2})

    def test_a_program_that_hangs_is_killed_with_its_children(self):
        self.bench.limit_s = 1
        self.bench.start()
        begin = time.monotonic()
        with self.assertRaisesRegex(Failed, "longer than"):
            self.recorded_command("import subprocess; subprocess.run(['sleep', '60'])")
        self.assertLess(time.monotonic() - begin, 20)

    def recorded_command(self, text, **options):
        return self.bench.recorded(self.program(text), **options)

    def test_a_wrong_status_says_what_the_program_complained_of(self):
        with self.assertRaisesRegex(Failed, "ended with 3, not 0.*out of paper"):
            self.bench.alone(self.program("import sys; print('out of paper', file=sys.stderr); sys.exit(3)"))

    def test_signals_pass_through_the_stamp(self):
        for name, status in (("KILL", 137), ("ABRT", 134)):
            self.recorded_command(f"import os, signal; os.kill(os.getpid(), signal.SIG{name})", status=status)
        self.recorded_command("import os; os._exit(3)", status=3)

    def test_a_series_interleaves_and_compares_with_the_run_alone(self):
        order, speed = [], {"none": 10.0, "slow": 15.0}

        def way(name):
            def run(_bench, _command):
                order.append(name)
                return SimpleNamespace(facts={"milliseconds": speed[name] + len(order)}), {"lost": 0}

            return run

        result = Result("series")
        cost.series(self.bench, result, ["x"], {name: way(name) for name in speed}, 1000, rounds=3)
        self.assertEqual(order, ["none", "slow", "slow", "none", "none", "slow"])
        self.assertEqual(result.measured["none"]["ms"], 14.0)
        self.assertEqual(result.measured["none"]["ratio"], 1.0)
        self.assertAlmostEqual(result.measured["slow"]["ratio"], 21 / 15)
        self.assertAlmostEqual(result.measured["slow"]["ns_per_launch"], 18_000)

    def test_a_way_that_fails_is_reported_and_the_others_go_on(self):
        def well(_bench, _command):
            return SimpleNamespace(facts={"milliseconds": 1.0}), {}

        def badly(_bench, _command):
            raise Failed("out of paper")

        result = Result("series")
        cost.series(self.bench, result, ["x"], {"none": well, "bad": badly, "good": well}, 1, rounds=2)
        self.assertEqual(list(result.measured), ["none", "good"])
        self.assertEqual([(check.name, check.got) for check in result.checks], [("bad", "out of paper")])
        with self.assertRaisesRegex(Failed, "out of paper"):
            cost.series(self.bench, Result("series"), ["x"], {"none": badly}, 1, rounds=2)

    def test_a_series_ends_with_its_time(self):
        def slow(_bench, _command):
            time.sleep(0.6)
            return SimpleNamespace(facts={"milliseconds": 1.0}), {}

        self.bench.limit_s = 1
        self.bench.start()
        times = cost.series(self.bench, Result("series"), ["x"], {"none": slow}, 1, rounds=50)
        self.assertEqual(len(times["none"]), 1)

    def test_a_relay_compares_within_each_turn_and_goes_on_without_a_way_that_fails(self):
        runner = self.folder / "runner.py"
        runner.write_text(RELAY_RUNNER)

        def way(**environment):
            return lambda _bench, _folder: ([], environment, lambda: 3_000_000)

        def lacking(_bench, _folder):
            raise Failed("no such thing")

        ways = {"none": way(), "slow": way(FACTOR="1.5"), "bad": way(FACTOR="bad"), "dies": way(FACTOR="dies")}
        ways["lacks"] = lacking
        result = Result("relay")
        self.bench.limit_s = relay.SECONDS_TO_END + 5
        self.bench.start()
        with (
            mock.patch.object(relay, "program", lambda _name, folder: [sys.executable, str(runner), str(folder)]),
            mock.patch.object(relay, "MAX_TURNS", 5),
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            spans = relay.relay(self.bench, result, ways)
        self.assertIn("tiny, ns a launch", printed.getvalue())
        relay.compare(result, spans, "slow", "none")
        relay.compare(result, spans, "slow", "bad")
        self.assertEqual(result.measured["tiny: slow / none"], {"ratio": 1.5, "lower": 1.5, "upper": 1.5, "turns": 5})
        self.assertNotIn("tiny: slow / bad", result.measured)
        # Each turn is slower than the one before: only within a turn is there a ratio.
        slow = result.measured["tiny slow"]
        self.assertEqual((slow["ratio"], slow["lower"], slow["upper"], slow["megabytes"]), (1.5, 1.5, 1.5, 3.0))
        self.assertEqual(slow["median"], 1.5 * 300)
        self.assertEqual(result.measured["gpt none"]["least"], 0.1)
        failed = {check.name: check.got for check in result.checks}
        self.assertEqual(list(failed), ["lacks", "bad", "dies"])
        self.assertIn("no such thing", failed["lacks"])
        self.assertIn("out of paper", failed["bad"])
        self.assertIn("ended with 7", failed["dies"])

    def test_a_wait_of_a_stream_that_the_trace_does_not_know_is_a_failure(self):
        planted = self.folder / "planted.py"
        planted.write_text(PLANTED)
        result = Result("causes")
        with (
            mock.patch.object(causes, "PLANTED", {"two-streams": (("unknown",), None)}),
            mock.patch.object(causes, "program", lambda _name, way: [sys.executable, str(planted), way]),
        ):
            causes.causes(self.bench, result)
        checks = {check.name: check for check in result.checks}
        self.assertTrue(checks["two-streams: kernels"].ok)
        waits = checks["two-streams: waits of streams for known work"]
        self.assertEqual((waits.ok, waits.got, waits.wanted), (False, 1, 2))
        self.assertEqual(result.measured["two-streams: clock error ns"], 7)

    def test_progress_of_a_killed_program_is_read_as_far_as_it_goes(self):
        path = self.folder / "progress"
        path.write_bytes(struct.pack("<qq", 1000, 5) + struct.pack("<qq", 2000, 9) + bytes(32))
        self.assertEqual(endings.progress(path), [(1000, 5), (2000, 9)])

    def test_checks_know_what_is_not_known(self):
        result = Result("checks")
        result.within("unknown", None, 5, 0.1)
        result.at_most("unknown", None, 5)
        self.assertFalse(result.ok)
        result = Result("checks")
        result.unchecked("a thing", "no time left")
        self.assertTrue(result.within("near", 1.009, 1.0, 0.01))
        self.assertTrue(result.ok)

    def test_clocks_that_are_not_those_of_nvidia_smi_are_a_failure(self):
        def compared(clock):
            tables = {
                "counters": {"id": [0, 1, 2], "name": ["SM clock", "GPU temperature", "clock limited: power cap"], "device": [3, 3, 3]},
                "counter_values": {
                    "counter": [0, 0, 1, 2, 2],
                    "start_ns": [0, 10**9, 0, 0, 2 * 10**9],
                    "value": ["1980000000.0", "1200000000.0", 60, 0, 100],
                },
            }
            found = SimpleNamespace(
                manifest={"devices": [{"id": 3, "uuid": "ab"}]},
                columns=lambda table, *names: [tables[table][name] for name in names],
            )
            # Asked at 1.5 s, before there is a power cap, and at 2.5 s, when there is.
            answers = [(int(at * 1e9), int(at * 1e9) + 1, "ab", clock, 61.0, reasons) for at, reasons in ((1.5, 0), (2.5, 4))] * 3
            result = Result("pressure")
            pressure.compare(found, {"begin_ns": 0, "end_ns": 10**10}, answers, result)
            return [check.name for check in result.checks if "agree" in check.name and not check.ok]

        self.assertEqual(compared(1185.0), [])
        self.assertEqual(compared(1980.0), ["SM clock: share of nvidia-smi's answers that agree"])

    def test_no_trace_is_a_failure(self):
        self.assertEqual(trace.traces_under("gapscope", self.folder), [])


class Runner(unittest.TestCase):
    def run_it(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, HERE / "run.py", "--out", out, *arguments]
            variables = {**os.environ, **environment}
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=variables)
            results = Path(out) / "results.json"
            return done, json.loads(results.read_text()) if results.exists() else None

    def test_a_failing_part_is_reported_and_the_next_runs(self):
        # Without CUDA both fail, each for itself.
        done, results = self.run_it("--gapscope", HERE / "fake_gapscope.py", "--limit", "20", "cost-driver", "clock")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([part["part"] for part in results["parts"]], ["cost-driver", "clock"])
        for part in results["parts"]:
            self.assertIn("libcuda", part["failure"])
        self.assertIn("FAILED", done.stdout)

    def test_every_part_starts_and_says_in_a_sentence_what_it_lacks(self):
        with tempfile.TemporaryDirectory() as modules:
            for name in ("torch", "jax", "mlx"):
                # FAKE modules: they are there, and find no GPU.
                (Path(modules) / f"{name}.py").write_text('raise RuntimeError("no NVIDIA driver")')
            fake = ["--gapscope", HERE / "fake_gapscope.py", "--limit", "60"]
            # That of Vulkan may find all that it needs.
            names = [name for name in registry.PARTS if name != "cost-vulkan"]
            done, results = self.run_it(*fake, *names, PYTHONPATH=modules)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([part["part"] for part in results["parts"]], names)
        for part in results["parts"]:
            said = [part["failure"]] if part["failure"] else [check["got"] for check in part["checks"]]
            self.assertTrue(said, part["part"])
            for sentence in said:
                # An exception of the harness itself.
                self.assertFalse(sentence.startswith("Traceback"), f"{part['part']}: {sentence}")
                self.assertRegex(sentence, "libcuda|libcupti|NVIDIA|--mlx|planted|skipped|No module named", part["part"])

    def test_a_part_whose_needs_are_missing_is_skipped(self):
        with mock.patch.dict(registry.PARTS):

            def needy(bench, result):
                """Needs what is not there."""

            registry.part("needy", needs=["no_such_module"])(needy)
            import run

            result = run.run_part(registry.PARTS["needy"], "gapscope", SimpleNamespace(limit=5, keep=False), None)
        self.assertIn("no no_such_module", result.failure)

    def test_an_unknown_part_is_named(self):
        done, results = self.run_it("--gapscope", HERE / "fake_gapscope.py", "nonsense")
        self.assertIn("no part nonsense", done.stderr)
        self.assertIsNone(results)

    def test_every_program_compiles_as_python(self):
        with tempfile.TemporaryDirectory() as folder:
            for source in HERE.rglob("*.py"):
                py_compile.compile(str(source), cfile=f"{folder}/{source.stem}.pyc", doraise=True)


class Fatbin(unittest.TestCase):
    def test_only_the_wanted_architecture_is_kept(self):
        def entry(kind, architecture, payload):
            head = struct.pack("<HHIQ", kind, 0, 0x40, len(payload)).ljust(0x1C, b"\0")
            return (head + struct.pack("<I", architecture)).ljust(0x40, b"\0") + payload

        entries = entry(2, 80, b"A" * 16) + entry(2, 90, b"B" * 16) + entry(1, 90, b"C" * 8)
        section = struct.pack("<IHHQ", MAGIC, 1, 16, len(entries)) + entries
        names = b"\0.nv_fatbin\0.shstrtab\0"
        at = 64
        table = at + len(section) + len(names)
        head = b"\x7fELF\x02".ljust(0x28, b"\0") + struct.pack("<Q", table)
        head = head.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, 3, 2)
        headers = bytes(64)
        headers += struct.pack("<IIQQQQ", 1, 1, 0, 0, at, len(section)).ljust(64, b"\0")
        headers += struct.pack("<IIQQQQ", 12, 3, 0, 0, at + len(section), len(names)).ljust(64, b"\0")
        library = head + section + names + headers
        kept, dropped = keep_architecture(library, 90)
        self.assertEqual(dropped, 24)
        self.assertEqual(kept, library.replace(b"A" * 16, bytes(16)).replace(b"C" * 8, bytes(8)))

    def test_a_file_that_is_not_a_library_is_refused(self):
        with self.assertRaisesRegex(ValueError, "not a 64-bit ELF"):
            keep_architecture(b"PK\x03\x04" + bytes(100), 90)


if __name__ == "__main__":
    unittest.main()
