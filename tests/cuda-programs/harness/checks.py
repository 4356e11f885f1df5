"""What a part checked and measured."""

from dataclasses import dataclass, field


@dataclass
class Check:
    name: str
    # None: it could not be checked.
    ok: bool | None
    got: object
    wanted: object


@dataclass
class Result:
    part: str
    seconds: float = 0.0
    failure: str | None = None
    checks: list = field(default_factory=list)
    measured: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)

    @property
    def ok(self):
        return self.failure is None and all(check.ok is not False for check in self.checks)

    def check(self, name, ok, got=None, wanted=None):
        self.checks.append(Check(name, ok, got, wanted))
        return bool(ok)

    def equal(self, name, got, wanted):
        return self.check(name, got == wanted, got, wanted)

    def within(self, name, got, wanted, share):
        """`got` differs from `wanted` by at most this share of it."""
        text = f"{wanted} ± {share:.0%}"
        if got is None or wanted is None:
            return self.check(name, False, got, text)
        return self.check(name, abs(got - wanted) <= share * abs(wanted), got, text)

    def at_most(self, name, got, most):
        return self.check(name, got is not None and got <= most, got, f"at most {most}")

    def at_least(self, name, got, least):
        return self.check(name, got is not None and got >= least, got, f"at least {least}")

    def one_of(self, name, got, wanted):
        return self.check(name, got in wanted, got, f"one of {', '.join(map(str, wanted))}")

    def unchecked(self, name, why):
        self.checks.append(Check(name, None, why, None))

    def measure(self, name, value):
        self.measured[name] = value

    def note(self, text):
        self.notes.append(text)


def table(rows):
    """Rows of texts as aligned columns; the first column to the left, the others to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if column == 0 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]  # fmt: skip
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def figure(value):
    """A number for people."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10000 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
