"""Scores, after bayesmark.

incumbent    true value of the trial that looked best after i trials; a failed trial never is one
normed       (incumbent - opt) / (clip - opt) within [-1, 1]; clip is the median of random draws,
             opt the known optimum or the best value seen when the baseline was frozen
score        100 (1 - mean normed): 100 is perfect
vs_random    mean normed over that of random search with as many trials: 1 is random, 0 perfect
"""

import numpy as np


def incumbent(visible, true, clip):
    best, value = np.inf, clip
    for seen, truth in zip(visible, true):
        if seen is not None and seen == seen and seen < best:
            best, value = seen, clip if truth is None or truth != truth else truth
    return value


def normed(value, base):
    scaled = (value - base["opt"]) / max(base["clip"] - base["opt"], 1e-12)
    return float(np.clip(scaled, -1.0, 1.0))


def expected_min(sample, draws):
    """The expected minimum of that many draws from a large sample."""
    ordered = np.sort(sample)
    k = np.arange(len(ordered) + 1)
    survives = ((len(ordered) - k) / len(ordered)) ** draws
    return float(np.sum(ordered * (survives[:-1] - survives[1:])))


def summary(runs, baseline):
    """Of one contender: mean score, vs_random and the standard error of the score."""
    by_problem = {}
    for run in runs:
        base = baseline[run["problem"]]
        by_problem.setdefault(run["problem"], []).append(
            (normed(incumbent(run["visible"], run["true"], base["clip"]), base),
             normed(base["random_mean"][str(len(run["true"]))], base)))
    means = np.array([np.mean([loss for loss, _ in rows]) for rows in by_problem.values()])
    random = np.array([rows[0][1] for rows in by_problem.values()])
    spreads = [np.var([loss for loss, _ in rows], ddof=1) / len(rows) if len(rows) > 1 else np.nan
               for rows in by_problem.values()]
    return {"score": 100 * (1 - means.mean()), "vs_random": means.mean() / random.mean(),
            "error": 100 * float(np.sqrt(np.sum(spreads)) / len(spreads)),
            "problems": dict(zip(by_problem, means.tolist()))}


def below_random(runs, baseline, errors=2):
    """Problems on which the mean over seeds is worse than random search by so many standard errors."""
    losses = {}
    for run in runs:
        base = baseline[run["problem"]]
        losses.setdefault(run["problem"], []).append(
            normed(incumbent(run["visible"], run["true"], base["clip"]), base)
            - normed(base["random_mean"][str(len(run["true"]))], base))
    return [problem for problem, worse in losses.items() if len(worse) > 1
            and np.mean(worse) > errors * np.std(worse, ddof=1) / np.sqrt(len(worse))
            and np.mean(worse) > 1e-9]
