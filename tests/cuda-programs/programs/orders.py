"""Work that is done in turns, when somebody says so.

A folder has the named pipes `orders` and `answers`. Each order is a line, what and how many of it; the answer is the
nanoseconds that it took. The first answer is `ready`, and the order `end 0` ends it.
"""

import time


def obey(folder, work, prepare=None):
    """Does `work(what, count)` for each order, after `prepare(what)`, which is not timed."""
    with open(folder / "answers", "w") as answers, open(folder / "orders") as orders:
        print("ready", file=answers, flush=True)
        for order in orders:
            what, count = order.rsplit(maxsplit=1)
            if what == "end":
                return
            if prepare:
                prepare(what)
            start = time.perf_counter_ns()
            work(what, int(count))
            print(time.perf_counter_ns() - start, file=answers, flush=True)
