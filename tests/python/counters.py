"""Statistics of a counter log by Python's csv module: what `etwhy counters` is compared with.

    counters.py write FILE ROWS      writes a log with missing values, of many kinds of numbers
    counters.py stats FILE           prints for each counter: samples, missing, min, mean, max, p50, p95, p99, first, last
"""

import csv
import json
import math
import random
import sys

COUNTERS = [
    r"\\PY\Processor(0)\% Processor Time",
    r"\\PY\Processor(_Total)\% DPC Time",
    r"\\PY\Memory\Available MBytes",
    r"\\PY\Memory\Pool Nonpaged Bytes",
    r"\\PY\PhysicalDisk(0 C:)\Avg. Disk sec/Read",
    r"\\PY\System\Context Switches/sec",
    r"\\PY\Process(svchost#3)\Handle Count",
    r"\\PY\Network Interface(a (b) [c])\Bytes Total/sec",
]


def write(path, rows):
    rng = random.Random(20120227)
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
        out.writerow(["(PDH-CSV 4.0) (UTC)(0)"] + COUNTERS)
        for row in range(rows):
            seconds = row * 5
            stamp = f"02/{27 + seconds // 86400:02}/2012 {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rng.randrange(1000):03}"
            values = [
                f"{rng.random() * 100:.14f}",
                f"{rng.random() ** 8 * 100:.6f}",
                f"{8000 - row // 10}",
                f"{300000000 + row * 4096}",
                f"{rng.lognormvariate(-6, 1.5):.17g}",
                f"{rng.random() * 1e5:.3f}",
                f"{rng.randrange(500, 600)}",
                f"{rng.random() * 1e9:.6f}",
            ]
            # Rates have no first value; others are missing now and then.
            values = [" " if row == 0 or rng.random() < 0.02 else value for value in values]
            out.writerow([stamp] + values)


def stats(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    result = {}
    for column, name in enumerate(rows[0][1:], 1):
        cells = [row[column] for row in rows[1:]]
        values = [float(cell) for cell in cells if cell.strip()]
        ordered = sorted(values)
        rank = lambda share: ordered[max(1, math.ceil(share * len(ordered))) - 1]
        result[name] = {
            "samples": len(values),
            "missing": len(cells) - len(values),
            "min_value": ordered[0],
            "mean_value": math.fsum(values) / len(values),
            "max_value": ordered[-1],
            "p50_value": rank(0.5),
            "p95_value": rank(0.95),
            "p99_value": rank(0.99),
            "first_value": values[0],
            "last_value": values[-1],
            "above_90_samples": sum(value > 90 for value in values) if "%" in name else None,
            "sum": math.fsum(values),
        }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        stats(sys.argv[2])
