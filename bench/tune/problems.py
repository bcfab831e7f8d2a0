"""The problems: synthetic ones with known optima, and scikit-learn models cross-validated on small
data sets. Lower is better; NaN is a failed trial."""

import math

import numpy as np

from sklearn_tasks import Problem, task
from space import C, F, I

SEED_BASE = 1000  # run seeds are SEED_BASE + 0, 1, 2 ...


def branin(a, b):
    return (
        (b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6) ** 2
        + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a)
        + 10
    )


_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann6(x):
    return -float(np.dot([1.0, 1.2, 3.0, 3.2], np.exp(-np.sum(_A * (np.asarray(x) - _P) ** 2, 1))))


def ackley(z):
    z = np.asarray(z, float)
    return float(
        -20 * np.exp(-0.2 * np.sqrt(np.mean(z * z)))
        - np.exp(np.mean(np.cos(2 * np.pi * z)))
        + 20
        + math.e
    )


def levy(z):
    w = 1 + (np.asarray(z, float) - 1) / 4
    return float(
        np.sin(np.pi * w[0]) ** 2
        + np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
        + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    )


def rosen(z):
    z = np.asarray(z, float)
    return float(np.sum(100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2))


def styb(z):
    z = np.asarray(z, float)
    return float(0.5 * np.mean(z**4 - 16 * z**2 + 5 * z))


def xs(d, n):
    return [d["x%d" % i] for i in range(n)]


def mixed_cat(d):
    """Categories pick an offset and where the numeric bowl sits; best: opt=c, act=b, norm=True."""
    off = {"a": 0.6, "b": 0.25, "c": 0.0, "d": 0.9}[d["opt"]] + {"a": 0.3, "b": 0.0, "c": 0.15}[
        d["act"]
    ]
    off += 0.0 if d["norm"] else 0.2
    c = {"a": -2.0, "b": -2.5, "c": -3.0, "d": -1.5}[d["opt"]]
    v = ((math.log10(d["lr"]) - c) / 1.5) ** 2 + 0.3 * (math.log10(d["wd"]) + 4) ** 2 / 4
    v += (
        ((d["layers"] - 4) / 4) ** 2
        + 0.5 * (math.log2(d["width"] / 128.0) / 3) ** 2
        + (d["drop"] - 0.2) ** 2
    )
    return off + v + 0.05 * (1 - math.cos(6 * math.log10(d["lr"] / 10**c)))


def momentum(d):
    """Effective learning rate lr/(1-m) has a narrow valley: log and reverse-log scales."""
    e = math.log10(d["lr"] / (1 - d["m"]))
    return (
        (e + 1) ** 2
        + 0.15 * (math.log10(1 - d["m"]) + 1.7) ** 2
        + 0.1 * (math.log10(1 - d["b2"]) + 2.5) ** 2
    )


def crash(d):
    """Fails where lr is too large for the batch; the optimum is close to the edge of that."""
    l, b = math.log10(d["lr"]), math.log2(d["batch"])
    if l > -2.0 + 0.1 * (b - 5):
        return float("nan")
    return (l + 2.0 - 0.1 * (b - 5)) ** 2 + 0.05 * (b - 6) ** 2 + 0.3 * (d["x"] - 0.3) ** 2


def problems():
    X = lambda n, lo, hi: [F("x%d" % i, lo, hi) for i in range(n)]
    br = [F("x0", -5, 10), F("x1", 0, 15)]
    fb = lambda d: branin(d["x0"], d["x1"])
    h6 = lambda d: hartmann6(xs(d, 6))
    P = [
        Problem("branin2", br, fb, optimum=0.397887),
        Problem("branin2-noise5", br, fb, noise=5.0, optimum=0.397887),
        Problem("hartmann6", X(6, 0, 1), h6, optimum=-3.32237),
        Problem("hartmann6-noise0.2", X(6, 0, 1), h6, noise=0.2, optimum=-3.32237),
        Problem(
            "levy4-log",
            [F("x%d" % i, 1e-6, 1.0, "log") for i in range(4)],
            lambda d: levy([(math.log10(v) + 3) * 10 / 3 for v in xs(d, 4)]),
            optimum=0.0,
        ),
        Problem(
            "rosen4-int",
            X(2, -2, 2) + [I("x2", -5, 5), I("x3", -5, 10)],
            lambda d: math.log1p(rosen(xs(d, 4))),
            optimum=0.0,
        ),
        Problem(
            "ackley10", X(10, -5, 10), lambda d: ackley(np.array(xs(d, 10)) - 1.3), optimum=0.0
        ),
        Problem("styblinski20", X(20, -5, 5), lambda d: styb(xs(d, 20)), optimum=-39.16617),
        Problem(
            "mixed-cat8",
            [
                C("opt", "abcd"),
                C("act", "abc"),
                C("norm", [True, False]),
                F("lr", 1e-5, 1.0, "log"),
                F("wd", 1e-7, 1e-1, "log"),
                I("layers", 1, 12),
                I("width", 16, 1024, "log"),
                F("drop", 0.0, 0.7),
            ],
            mixed_cat,
            optimum=0.0,
        ),
        Problem(
            "momentum3-revlog",
            [
                F("lr", 1e-6, 1.0, "log"),
                F("m", 0.0, 0.9999, "reverse_log"),
                F("b2", 0.9, 0.999999, "reverse_log"),
            ],
            momentum,
            optimum=0.0,
        ),
        Problem(
            "crash3-nan",
            [F("lr", 1e-5, 1.0, "log"), I("batch", 4, 512, "log"), F("x", 0, 1)],
            crash,
            optimum=0.0,
        ),
    ]
    P += [
        task("SVM", "breast", "nll", 150),
        task("SVM", "diabetes", "mse", 250),
        task("SVMmix", "iris", "acc", 150),
        task("DT", "breast", "nll"),
        task("DT", "diabetes", "mae"),
        task("RF", "breast", "nll", 200),
        task("MLPsgd", "iris", "nll", 120),
        task("MLPadam", "diabetes", "mse", 150),
        task("ada", "iris", "nll", 120),
        task("lasso", "diabetes", "mse"),
        task("kNN", "breast", "nll", 200),
        task("linear", "breast", "nll", 200),
    ]
    return P
