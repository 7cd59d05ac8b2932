"""The table of bench/run: figures beside what they are compared with, and whether each target was met."""

import json

COLUMNS = ("ours", "floor", "docker exec", "reference")
FORMATS = {"ms": "{:.2f} ms", "s": "{:.2f} s", "/s": "{:.1f}/s", "MiB": "{:.2f} MiB", "": "{:.2f}"}


def shown(value, unit):
    if unit in ("ms", "/s") and value >= 100:
        return f"{value:.0f}" + FORMATS[unit].split("}")[1]
    return FORMATS[unit].format(value)


class Target:
    """What a figure of ours must be: a ratio to another column of its row, or a bound of its own."""

    def __init__(self, words, test, figure):
        self.words = words
        self.test = test      # (ours, row) -> met
        self.figure = figure  # (ours, row) -> the number that decides, as text

    def judge(self, row):
        if self.test(row) is None:
            return f"{self.words}: not measured", None
        met = bool(self.test(row))
        figure = self.figure(row)
        return f"{self.words}: {'met' if met else 'MISSED'}" + (f" ({figure})" if figure else ""), met


def _ratio(row, column):
    return row["ours"] / row[column] if row.get(column) else None


def at_most(factor, column="floor", name=None):
    """A time, at most `factor` of the column's."""
    return Target(f"<= {factor} x {name or column}", lambda row: row.get(column) and _ratio(row, column) <= factor,
                  lambda row: f"{_ratio(row, column):.2f}")


def at_least(factor, column="floor", name=None):
    """A rate, at least `factor` of the column's."""
    return Target(f">= {factor} x {name or column}", lambda row: row.get(column) and _ratio(row, column) >= factor,
                  lambda row: f"{_ratio(row, column):.{2 if factor < 2 else 0}f}")


def faster(factor, column="reference"):
    """A time that the column's is at least `factor` times as long as."""
    return Target(f"{factor} x faster than {column}", lambda row: row.get(column) and row[column] / row["ours"] >= factor,
                  lambda row: f"{row[column] / row['ours']:.0f}")


def below(bound, unit, why=""):
    return Target(f"<= {shown(bound, unit)}{why}", lambda row: row["ours"] <= bound, lambda row: "")


class Table:
    def __init__(self):
        self.rows = []

    def section(self, title):
        self.rows.append({"section": title})

    def add(self, what, unit, ours=None, *, targets=(), name=None, **beside):
        """One row. `beside` has the other columns by name ("docker exec" as `engine`); `name` says what the floor is, where
        it is not the floor's own program."""
        row = {"what": what, "unit": unit, "ours": ours, "floor": beside.pop("floor", None),
               "docker exec": beside.pop("engine", None), "reference": beside.pop("reference", None)}
        assert not beside, beside
        row["floor is"] = name
        row["targets"] = [dict(zip(("text", "met"), target.judge(row))) for target in targets]
        self.rows.append(row)

    def missed(self):
        return [f"{row['what']}: {target['text']}" for row in self.rows for target in row.get("targets", ())
                if target["met"] is False]

    def show(self):
        heads = ["what", *COLUMNS, "target"]
        lines = [heads]
        for row in self.rows:
            if "section" in row:
                lines.append([row["section"]])
                continue
            cells = ["  " + row["what"]]
            for column in COLUMNS:
                text = "" if row[column] is None else shown(row[column], row["unit"])
                cells.append(f"{text} ({row['floor is']})" if text and column == "floor" and row["floor is"] else text)
            lines.append([*cells, "; ".join(target["text"] for target in row["targets"])])
        widths = [max(len(line[i]) for line in lines if len(line) > 1) for i in range(len(heads))]
        for number, line in enumerate(lines):
            if len(line) == 1:
                print(f"\n{line[0]}")
            else:
                print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
            if number == 0:
                print("-" * (sum(widths[:-1]) + 2 * len(widths) + 6))
        missed = self.missed()
        judged = sum(target["met"] is not None for row in self.rows for target in row.get("targets", ()))
        print(f"\n{judged - len(missed)} targets met, {len(missed)} missed")

    def write(self, path, facts):
        """Every figure as a number, with what it was measured on."""
        sections, section = [], None
        for row in self.rows:
            if "section" in row:
                section = {"section": row["section"], "rows": []}
                sections.append(section)
            else:
                section["rows"].append({key: value for key, value in row.items() if value is not None})
        path.write_text(json.dumps({**facts, "results": sections}, indent=1) + "\n")
